package runner

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/scenarios"
)

// hasty is a lock that raises its flag over one connection without waiting for the
// answer, and some time later looks over another whether it is the only one (Dekker's
// idea, without the fence): wrong if what went first arrives last.
type hasty struct {
	flags, eyes *redis.Client
	dice        *rand.Rand
}

var errBusy = errors.New("somebody else has raised a flag")

// raised is how long the flag is under way for certain, as its author believes;
// latencies of a simulation are a millisecond at most.
const raised = 2 * time.Millisecond

func (l *hasty) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	for {
		asked := time.Now()
		told := make(chan error, 1)
		go func() { told <- l.flags.HSet(ctx, a.Key, a.Owner, 1).Err() }()
		rest(raised)
		others, err := l.eyes.HKeys(ctx, a.Key).Result()
		if err != nil {
			return client.Grant{}, err
		}
		if len(others) == 0 || len(others) == 1 && others[0] == a.Owner {
			return client.Grant{Deadline: asked.Add(a.Lease)}, nil
		}
		if err := errors.Join(<-told, l.flags.HDel(ctx, a.Key, a.Owner).Err()); err != nil {
			return client.Grant{}, err
		}
		if ctx.Err() != nil {
			return client.Grant{}, errBusy
		}
		rest(time.Duration(10+l.dice.IntN(50)) * time.Millisecond)
	}
}

// rest lets virtual time pass.
func rest(d time.Duration) { <-time.After(d) }

func (l *hasty) Renew(context.Context, string, string) (client.Grant, error) {
	return client.Grant{}, client.ErrNotHeld
}

func (l *hasty) Release(ctx context.Context, key, owner string) (int, error) {
	return 0, l.flags.HDel(ctx, key, owner).Err()
}

func (l *hasty) Close(context.Context) error { return errors.Join(l.flags.Close(), l.eyes.Close()) }

func hastyRow() *client.Spec {
	return &client.Spec{
		Name: "hasty", Doc: "of a test",
		Definite: func(err error) bool { return errors.Is(err, errBusy) },
		Code:     func(error) string { return "error" },
		Open: func(s client.Setup, _ func(client.Reply)) (client.Locker, error) {
			var two [2]*redis.Client
			for i := range two {
				two[i] = redis.NewClient(&redis.Options{
					Addr: s.Endpoints.Addrs[0], Dialer: s.Dial, MaxRetries: -1, PoolSize: 1,
					MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
				})
				if err := two[i].Ping(context.Background()).Err(); err != nil { // connected, before time counts
					return nil, err
				}
			}
			return &hasty{two[0], two[1], rand.New(rand.NewPCG(s.Seed, 5))}, nil
		},
	}
}

func isExclusion(r checker.Result) bool { return r.Property == checker.Exclusion }

// TestPrioritiesFindWhatLatenciesDoNot: of the same seeds, none with latencies
// alone and some with priorities show that hasty is wrong, the same way again.
func TestPrioritiesFindWhatLatenciesDoNot(t *testing.T) {
	const seeds = 30
	s := load(t, "redlock-contention", "topology={kind: single}", "lock=reentrant", "workload.clients=4",
		"workload.hold=20ms", "duration=3s", "expect={}")
	run := func(seed uint64, variation scenarios.Variation) (unsafe bool, history []byte) {
		out, err := Run(context.Background(), Options{
			Scenario: s, Seed: seed, Variation: variation, Lock: hastyRow(), Backend: NewSim(nil), InMemory: true, Version: "test",
		})
		runtime.GC()
		runtime.GC()
		if err != nil {
			t.Fatal(err)
		}
		if random := strings.Contains(out.Manifest.Delivery, "by priorities of"); random != (variation == 1) {
			t.Fatalf("variation %d: delivery %q", variation, out.Manifest.Delivery)
		}
		r := out.Judgement.Results
		return r[slices.IndexFunc(r, isExclusion)].Outcome == checker.Violated, out.History
	}
	found := 0
	for seed := range uint64(seeds) {
		if unsafe, history := run(seed, 2); unsafe {
			t.Errorf("seed %d is unsafe with latencies alone: nothing was planted\n%s", seed, history)
		}
		unsafe, first := run(seed, 1)
		if !unsafe {
			continue
		}
		if found++; found == 1 {
			_, again := run(seed, 1)
			equal(t, first, again)
		}
	}
	t.Logf("with priorities %d of %d seeds are unsafe", found, seeds)
	if found == 0 {
		t.Error("priorities have found nothing")
	}
}
