package locktest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// mutexKeeps are the keys beside a lock that may stay: see package lock.
func mutexKeeps(name string) []string { return []string{"*:token", "*:tombstone:*"} }

// semaphoreKeeps: a semaphore is there until it is deleted.
func semaphoreKeeps(name string) []string { return []string{name, name + "-other", "*:tombstone:*"} }

// Every kind of lock, on every topology that it runs on, held to the same table.
func TestKinds(t *testing.T) {
	t.Parallel()
	redis.SetLogger(quiet{})
	mutex := takes(func(c *lock.Client, name string) taker { return c.Mutex(name) })
	fair := takes(func(c *lock.Client, name string) taker { return c.FairMutex(name) })
	spin := takes(func(c *lock.Client, name string) taker { return c.SpinMutex(name) })
	write := takes(func(c *lock.Client, name string) taker { return c.RW(name).Write() })
	base := Spec{
		Lease: ownLease, Keeps: mutexKeeps, Held: lock.ErrHeld, Lost: lock.ErrLost,
		Reentrant: true, Renews: true, Tells: true, Fences: true, Idempotent: true,
	}
	for _, row := range []struct {
		name   string
		kind   Topology
		take   func(c Topology) func(testing.TB, []string) Locker
		change func(*Spec)
	}{
		{"mutex-single", Single, with(mutex), nil},
		{"spin-single", Single, with(spin), nil},
		{"sole-single", Single, with(sole), func(s *Spec) { s.Reentrant = false }},
		{"mutex-sentinel", Sentinel, with(mutex), nil},
		{"mutex-cluster", Cluster, with(mutex), nil},
		{"mutex-quorum", Quorum, with(mutex), func(s *Spec) { s.Fences = false }},
		{"fair-single", Single, with(fair), nil},
		{"fair-cluster", Cluster, with(fair), nil},
		{"write-single", Single, with(write), nil},
		{"multi-single", Single, with(several), func(s *Spec) { s.Keeps = mutexKeeps }},
		{"semaphore-single", Single, with(permit), func(s *Spec) {
			s.Lease, s.Reentrant, s.Renews, s.Tells, s.Fences = 0, false, false, false, false
			s.Held, s.Keeps = lock.ErrNoPermits, semaphoreKeeps
		}},
		{"permits-single", Single, with(leasedPermit), func(s *Spec) {
			s.Reentrant, s.Fences, s.Held, s.Keeps = false, false, lock.ErrNoPermits, semaphoreKeeps
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := base
			s.Beside = true
			s.Topology, s.Open = row.kind, row.take(row.kind)
			if row.change != nil {
				row.change(&s)
			}
			Run(t, s)
		})
	}
}

func with(take acquirer) func(Topology) func(testing.TB, []string) Locker {
	return func(kind Topology) func(testing.TB, []string) Locker { return opener(kind, take) }
}

// quiet keeps go-redis from writing about every connection that a test cuts.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
