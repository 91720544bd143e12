package locktest

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/locks/historic"
)

// subjectVar is the name of a historic lock that this test binary tests as if it
// made claims that it does not fulfill.
const subjectVar = "LOCKTEST_SUBJECT"

// Locks with known flaws fail, each in the behaviors that it lacks.
func TestKnownFlawsAreFound(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"set-nx-ex": {"lease-expires", "release-after-lease-fails", "second-release-fails"},
		"set-nx-px": {"repeated-acquire-counts-once", "repeated-release-succeeds"},
		"redisson":  {"repeated-acquire-counts-once", "repeated-release-succeeds"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			behaviors := "lease-expires|release-after-lease-fails|second-release-fails|repeated|try-does-not-wait|" +
				"mutual-exclusion"
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.run", "^TestSubject$/("+behaviors+")")
			cmd.Env = append(os.Environ(), subjectVar+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("the lock passed:\n%s", out)
			}
			var failed []string
			for _, m := range regexp.MustCompile(`--- FAIL: TestSubject/(\S+)`).FindAllStringSubmatch(string(out), -1) {
				failed = append(failed, m[1])
			}
			slices.Sort(failed)
			if diff := cmp.Diff(want, failed); diff != "" {
				t.Errorf("failed behaviors (-want +got):\n%s\n%s", diff, out)
			}
			if !strings.Contains(string(out), "--- PASS: TestSubject/try-does-not-wait") {
				t.Errorf("try-does-not-wait failed as well:\n%s", out)
			}
		})
	}
}

// TestSubject is the child process of TestKnownFlawsAreFound.
func TestSubject(t *testing.T) {
	name := os.Getenv(subjectVar)
	if name == "" {
		t.Skip("only as a child of TestKnownFlawsAreFound")
	}
	row, err := historic.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	Run(t, Spec{
		Topology: Single, Lease: historic.DefaultLease, Idempotent: row.Retries, RequestWord: "locktest-",
		ErrHeld: historic.ErrHeld, ErrLost: historic.ErrNotOwner,
		Open: func(t testing.TB, addrs []string) Locker {
			// A late reply is not a lost one: a client that resends after a timeout shows a flaw that the step does not test.
			rdb := redis.NewClient(&redis.Options{Addr: addrs[0], DialTimeout: replyTimeout, ReadTimeout: timeout})
			t.Cleanup(func() { _ = rdb.Close() })
			l, err := row.Open(historic.Config{Masters: []redis.UniversalClient{rdb}})
			if err != nil {
				t.Fatal(err)
			}
			return historicLocker{l}
		},
	})
}

// historicLocker is a [Locker] on a historic lock.
type historicLocker struct{ lock historic.Lock }

type historicHold struct {
	historicLocker
	name, owner string
}

func (historicHold) Context() context.Context { return nil }
func (historicHold) Token() int64             { return 0 }
func (h historicHold) Release(ctx context.Context) error {
	return h.lock.Release(ctx, h.name, h.owner)
}

func (a historicLocker) hold(name string, o AcquireOptions, err error) (Hold, error) {
	if err != nil {
		return nil, err
	}
	return historicHold{a, name, o.Owner}, nil
}

func (a historicLocker) owner(o AcquireOptions) AcquireOptions {
	if o.Owner == "" {
		o.Owner = time.Now().Format("150405.000000000")
	}
	return o
}

func (a historicLocker) Acquire(ctx context.Context, name string, o AcquireOptions) (Hold, error) {
	o = a.owner(o)
	_, err := historic.Acquire(ctx, a.lock, name, o.Owner, o.Lease)
	return a.hold(name, o, err)
}

func (a historicLocker) TryAcquire(ctx context.Context, name string, o AcquireOptions) (Hold, error) {
	o = a.owner(o)
	return a.hold(name, o, a.lock.TryAcquire(ctx, name, o.Owner, o.Lease))
}

func (a historicLocker) Close(context.Context) error {
	a.lock.Close()
	return nil
}
