package locktest

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// mutexLeftKeys are documented in package lock.
func mutexLeftKeys(name string) []string { return []string{"*:token", "*:tombstone:*"} }

// redissonLeftKeys: the counter of tokens is there for good.
func redissonLeftKeys(name string) []string {
	return []string{"redisson_lock_token:{" + name + "}", "redisson_unlock_latch:{" + name + "}:*"}
}

// semaphoreLeftKeys: a semaphore exists until it is deleted.
func semaphoreLeftKeys(name string) []string { return []string{name, name + "-other", "*:tombstone:*"} }

// Every kind of lock, on every topology that it runs on, has the same behaviors.
func TestKinds(t *testing.T) {
	t.Parallel()
	redis.SetLogger(discardLogger{})
	fencedMutex := func(c *lock.Client, name string) fencedKind { return c.FencedMutex(name) }
	mutex, nonReentrant := holds(fencedMutex, lock.WithReentry()), holds(fencedMutex)
	spin := holds(fencedMutex, lock.WithReentry(), lock.WithPolling())
	fair := holds(func(c *lock.Client, name string) fencedKind { return c.FairMutex(name) }, lock.WithReentry())
	write := holds(func(c *lock.Client, name string) fencedKind { return c.RW(name).Write() }, lock.WithReentry())
	base := Spec{
		Lease: ownLease, LeftKeys: mutexLeftKeys, ErrHeld: lock.ErrHeld, ErrLost: lock.ErrLost,
		Reentrant: true, Renews: true, ReportsLoss: true, Fenced: true, Idempotent: true,
		ToleratesRefusals: true, IsolatesMasters: true, HeldByOthers: true, OutlastsMigration: true,
		RenewsTogether: true, LocalMessages: true, KeepsPrefix: true,
	}
	for _, row := range []struct {
		name   string
		kind   Topology
		open   func(*Spec)
		change func(*Spec)
	}{
		{"mutex-single", Single, with(mutex), nil},
		{"plain-mutex-single", Single, with(plainMutex), withoutScript},
		{"plain-mutex-cluster", Cluster, with(plainMutex), withoutScript},
		{"spin-single", Single, with(spin), nil},
		{"non-reentrant-single", Single, with(nonReentrant), func(s *Spec) { s.Reentrant = false }},
		{"mutex-sentinel", Sentinel, with(mutex), nil},
		{"mutex-cluster", Cluster, with(mutex), nil},
		{"mutex-quorum", Quorum, with(plainMutex), func(s *Spec) { s.Fenced = false }},
		{"redisson-single", Single, withRedisson(mutex), redissonKeys},
		{"redisson-plain-single", Single, withRedisson(plainMutex), func(s *Spec) {
			redissonKeys(s)
			s.Fenced = false
		}},
		{"redisson-sentinel", Sentinel, withRedisson(mutex), redissonKeys},
		{"redisson-cluster", Cluster, withRedisson(mutex), redissonKeys},
		{"fair-single", Single, with(fair), nil},
		{"write-single", Single, with(write), func(s *Spec) { s.HeldByOthers = false }},
		{"write-cluster", Cluster, with(write), func(s *Spec) { s.HeldByOthers = false }},
		{"multi-single", Single, with(multi()), func(s *Spec) { partsOf(s, 2) }},
		{"multi-kinds-single", Single, with(multiKinds), func(s *Spec) { partsOf(s, 3) }},
		{"multi-cluster", Cluster, with(multi()), func(s *Spec) { partsOf(s, 2) }},
		{"multi-atomic-cluster", Cluster, with(multi(lock.WithAtomic())), func(s *Spec) {
			partsOf(s, 2)
			s.OutlastsMigration = false // one script takes them
		}},
		{"multi-kinds-cluster", Cluster, with(multiKinds), func(s *Spec) { partsOf(s, 3) }},
		{"multi-permits-single", Single, with(multiPermits), partsWithPermits},
		{"multi-permits-cluster", Cluster, with(multiPermits), partsWithPermits},
		{"semaphore-single", Single, with(onlyPermit((*lock.Client).Semaphore, false)), withoutLeases},
		{"semaphore-cluster", Cluster, with(onlyPermit((*lock.Client).Semaphore, false)), withoutLeases},
		{"permits-single", Single, with(onlyPermit((*lock.Client).PermitSemaphore, true)), leasedPermits},
		{"permits-cluster", Cluster, with(onlyPermit((*lock.Client).PermitSemaphore, true)), leasedPermits},
		{"fair-permits-single", Single, with(onlyPermit((*lock.Client).FairSemaphore, true)), leasedPermits},
		{"fair-permits-cluster", Cluster, with(onlyPermit((*lock.Client).FairSemaphore, true)), leasedPermits},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && slices.Contains(longRows(), row.name) {
				t.Skip("SKIPPED with -short: other rows have the kind, or the topology with a like kind")
			}
			s := base
			s.Topology, s.Guard = row.kind, guard
			row.open(&s)
			if row.change != nil {
				row.change(&s)
			}
			Run(t, s)
		})
	}
}

// longRows are the rows that -short leaves out. Another row of each kind remains, and in a cluster the rows of mutexes,
// several locks and permits.
func longRows() []string {
	return []string{
		"multi-atomic-cluster", "multi-cluster", "multi-permits-cluster", "multi-kinds-single", "plain-mutex-cluster",
		"redisson-cluster", "redisson-sentinel", "semaphore-cluster", "permits-cluster", "write-cluster",
	}
}

// withoutScript sets the claims of a mutex that SET acquires.
func withoutScript(s *Spec) { s.Fenced, s.RequestWord = false, "locktest-" }

// redissonKeys sets the claims about Redisson's keys, which do not begin with the name of the lock.
func redissonKeys(s *Spec) { s.LeftKeys, s.KeepsPrefix = redissonLeftKeys, false }

// partsOf sets the claims of several locks as one: the names of the others have the hash tag of the first.
func partsOf(s *Spec, n int) { s.Parts, s.RenewsTogether, s.KeepsPrefix = n, false, false }

// partsWithPermits sets the claims of a mutex and the permits of two semaphores, which last.
func partsWithPermits(s *Spec) {
	partsOf(s, 3)
	s.Reentrant = false
	s.LeftKeys = func(name string) []string {
		return append(mutexLeftKeys(name), "{"+name+"}:second", "{"+name+"}:third")
	}
}

// withoutLeases sets the claims of the only permit of a semaphore without leases.
func withoutLeases(s *Spec) {
	leasedPermits(s)
	s.Lease, s.Renews, s.ReportsLoss = 0, false, false
}

// leasedPermits sets the claims of the only permit of a semaphore.
func leasedPermits(s *Spec) {
	s.Reentrant, s.Fenced, s.HeldByOthers = false, false, false
	s.ErrHeld, s.LeftKeys = lock.ErrNoPermits, semaphoreLeftKeys
}

// with makes the spec one of a lock of package lock.
func with(acquire acquirer) func(*Spec) { return withLayout(acquire, lock.OwnLayout) }

// withRedisson is with in Redisson's layout.
func withRedisson(acquire acquirer) func(*Spec) { return withLayout(acquire, lock.Redisson) }

func withLayout(acquire acquirer, layout lock.Layout) func(*Spec) {
	return func(s *Spec) {
		s.Open = opener(s.Topology, layout, acquire)
		s.On, s.OnObserved = on(s.Topology, options(layout), acquire), onObserved(options(layout), acquire)
	}
}

// discardLogger keeps go-redis from logging every connection that a test breaks.
type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}
