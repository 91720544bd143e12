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

	"github.com/lockchaos/lockchaos/lock/historic"
)

// subjectVar names a lock of the articles; then this test binary holds it to
// the table, as if it claimed everything, and fails as it should.
const subjectVar = "LOCKTEST_SUBJECT"

// Locks that are known to be wrong are convicted, each of what it is known for.
func TestTheSuiteBites(t *testing.T) {
	for name, want := range map[string][]string{
		"set-nx-ex": {"lease-runs-out", "release-after-lease-is-told", "released-twice"},
		"set-nx-px": {"acquire-sent-again-counts-once", "release-sent-again-is-no-error"},
		"redisson":  {"acquire-sent-again-counts-once", "release-sent-again-is-no-error"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			asked := "lease-runs-out|release-after-lease-is-told|released-twice|sent-again|try-does-not-wait|contenders"
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.run", "^TestSubject$/("+asked+")")
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
				t.Errorf("convicted of (-want +got):\n%s\n%s", diff, out)
			}
			if !strings.Contains(string(out), "--- PASS: TestSubject/try-does-not-wait") {
				t.Errorf("it does not even do what it does:\n%s", out)
			}
		})
	}
}

// TestSubject is the other end of TestTheSuiteBites.
func TestSubject(t *testing.T) {
	name := os.Getenv(subjectVar)
	if name == "" {
		t.Skip("only as a child of TestTheSuiteBites")
	}
	row, err := historic.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	Run(t, Spec{
		Topology: Single, Lease: historic.DefaultLease, Idempotent: row.Retries, Requests: "locktest-",
		Held: historic.ErrHeld, Lost: historic.ErrNotOwner,
		Open: func(t testing.TB, addrs []string) Locker {
			rdb := Dial(t, addrs[0])
			l, err := row.Open(historic.Config{Masters: []redis.UniversalClient{rdb}})
			if err != nil {
				t.Fatal(err)
			}
			return article{l}
		},
	})
}

// article is a lock of the articles behind the suite's words.
type article struct{ lock historic.Lock }

type articleHold struct {
	article
	name, owner string
}

func (articleHold) Context() context.Context { return nil }
func (articleHold) Token() uint64            { return 0 }
func (h articleHold) Release(ctx context.Context) error {
	return h.lock.Release(ctx, h.name, h.owner)
}

func (a article) hold(name string, o Ask, err error) (Hold, error) {
	if err != nil {
		return nil, err
	}
	return articleHold{a, name, o.Owner}, nil
}

func (a article) owner(o Ask) Ask {
	if o.Owner == "" {
		o.Owner = time.Now().Format("150405.000000000")
	}
	return o
}

func (a article) Acquire(ctx context.Context, name string, o Ask) (Hold, error) {
	o = a.owner(o)
	_, err := historic.Acquire(ctx, a.lock, name, o.Owner, o.Lease)
	return a.hold(name, o, err)
}

func (a article) TryAcquire(ctx context.Context, name string, o Ask) (Hold, error) {
	o = a.owner(o)
	return a.hold(name, o, a.lock.TryAcquire(ctx, name, o.Owner, o.Lease))
}

func (a article) Close(context.Context) error {
	a.lock.Close()
	return nil
}
