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
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/scenarios"
)

// hasty is a lock that sets a flag over one connection without waiting for the reply, and a little later reads over
// another whether there are other flags (Dekker's algorithm without the fence). It is wrong if the first message
// arrives last.
type hasty struct {
	writer, reader *redis.Client
	rand           *rand.Rand
}

var errBusy = errors.New("another client has set a flag")

// delivery is how long its author believes that a message takes at most. Latencies of a simulation are a millisecond
// at most.
const delivery = 2 * time.Millisecond

func (l *hasty) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	for {
		start := time.Now()
		written := make(chan error, 1)
		go func() { written <- l.writer.HSet(ctx, a.Key, a.Owner, 1).Err() }()
		pause(delivery)
		others, err := l.reader.HKeys(ctx, a.Key).Result()
		if err != nil {
			return client.Grant{}, err
		}
		if len(others) == 0 || len(others) == 1 && others[0] == a.Owner {
			return client.Grant{Deadline: start.Add(a.Lease)}, nil
		}
		if err := errors.Join(<-written, l.writer.HDel(ctx, a.Key, a.Owner).Err()); err != nil {
			return client.Grant{}, err
		}
		if ctx.Err() != nil {
			return client.Grant{}, errBusy
		}
		pause(time.Duration(10+l.rand.IntN(50)) * time.Millisecond)
	}
}

func pause(d time.Duration) { <-time.After(d) }

func (l *hasty) Renew(context.Context, client.Hold, time.Duration) (client.Grant, error) {
	return client.Grant{}, client.ErrNotHeld
}

func (l *hasty) Release(ctx context.Context, h client.Hold) (int, error) {
	return 0, l.writer.HDel(ctx, h.Key, h.Owner).Err()
}

func (l *hasty) Close(context.Context) error { return errors.Join(l.writer.Close(), l.reader.Close()) }

func hastyRow() *client.Spec {
	return &client.Spec{
		Name: "hasty", Doc: "of a test",
		Definite: func(err error) bool { return errors.Is(err, errBusy) },
		Code:     func(error) string { return "error" },
		Open: func(s client.Setup, _ func(client.Reply)) (client.Locker, error) {
			var two [2]*redis.Client
			for i := range two {
				two[i] = redis.NewClient(&redis.Options{
					Addr: s.Endpoints.Addrs[0], Password: s.Endpoints.Password, Dialer: s.Dial, MaxRetries: -1, PoolSize: 1,
					MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
				})
				if err := two[i].Ping(context.Background()).Err(); err != nil { // connect now
					return nil, err
				}
			}
			return &hasty{two[0], two[1], rand.New(rand.NewPCG(s.Seed, 5))}, nil
		},
	}
}

// hastyScenario is a run of hasty on one server.
func hastyScenario(t *testing.T) scenarios.Scenario {
	t.Helper()
	return load(t, "redlock-contention", "topology={kind: single}", "lock=reentrant", "workload.clients=4",
		"workload.hold=20ms", "duration=3s", "expect=null")
}

func isExclusion(r checker.Result) bool { return r.Property == checker.Exclusion }

// TestPrioritiesFindWhatLatenciesDoNot: of the same seeds, some show with priorities that hasty is wrong, and none
// with latencies alone; repeated, a run is the same.
func TestPrioritiesFindWhatLatenciesDoNot(t *testing.T) {
	race.Skip(t)
	const seeds = 30
	s := hastyScenario(t)
	run := func(seed uint64, variation scenarios.Variation) (unsafe bool, history []byte) {
		out, err := Run(context.Background(), Options{
			Scenario: s, Seed: seed, Variation: variation, Lock: hastyRow(), Backend: newSim(), InMemory: true,
			Version: "test",
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
			t.Errorf("seed %d is unsafe with latencies alone\n%s", seed, history)
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
		t.Error("no seed is unsafe with priorities")
	}
}
