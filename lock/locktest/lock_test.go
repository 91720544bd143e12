package locktest

import (
	"context"
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
	}
	for _, row := range []struct {
		name   string
		kind   Topology
		open   func(c Topology) func(testing.TB, []string) Locker
		change func(*Spec)
	}{
		{"mutex-single", Single, with(mutex), nil},
		{"plain-mutex-single", Single, with(plainMutex), func(s *Spec) {
			s.Fenced, s.RequestWord = false, "locktest-" // SET has no script
		}},
		{"plain-mutex-cluster", Cluster, with(plainMutex), func(s *Spec) {
			s.Fenced, s.RequestWord = false, "locktest-"
		}},
		{"spin-single", Single, with(spin), nil},
		{"non-reentrant-single", Single, with(nonReentrant), func(s *Spec) { s.Reentrant = false }},
		{"mutex-sentinel", Sentinel, with(mutex), nil},
		{"mutex-cluster", Cluster, with(mutex), nil},
		{"mutex-quorum", Quorum, with(plainMutex), func(s *Spec) { s.Fenced = false }},
		{"redisson-single", Single, withRedisson(mutex), func(s *Spec) { s.LeftKeys = redissonLeftKeys }},
		{"redisson-plain-single", Single, withRedisson(plainMutex), func(s *Spec) {
			s.Fenced, s.LeftKeys = false, redissonLeftKeys
		}},
		{"redisson-sentinel", Sentinel, withRedisson(mutex), func(s *Spec) { s.LeftKeys = redissonLeftKeys }},
		{"redisson-cluster", Cluster, withRedisson(mutex), func(s *Spec) {
			s.LeftKeys, s.OutlastsMigration = redissonLeftKeys, false
		}},
		{"fair-single", Single, with(fair), nil},
		{"fair-cluster", Cluster, with(fair), func(s *Spec) { s.OutlastsMigration = false }},
		{"write-single", Single, with(write), func(s *Spec) { s.HeldByOthers = false }},
		{"multi-single", Single, with(multi), func(s *Spec) { s.LeftKeys = mutexLeftKeys }},
		{"multi-kinds-single", Single, with(multiKinds), nil},
		{"multi-kinds-cluster", Cluster, with(multiKinds), func(s *Spec) { s.OutlastsMigration = false }},
		{"semaphore-single", Single, with(onlyPermit((*lock.Client).Semaphore, false)), withoutLeases},
		{"semaphore-cluster", Cluster, with(onlyPermit((*lock.Client).Semaphore, false)), withoutLeases},
		{"permits-single", Single, with(onlyPermit((*lock.Client).PermitSemaphore, true)), leasedPermits},
		{"fair-permits-single", Single, with(onlyPermit((*lock.Client).FairSemaphore, true)), leasedPermits},
		{"fair-permits-cluster", Cluster, with(onlyPermit((*lock.Client).FairSemaphore, true)), func(s *Spec) {
			leasedPermits(s)
			s.OutlastsMigration = false
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := base
			s.Parallel = true
			s.Topology, s.Open, s.On, s.Guard = row.kind, row.open(row.kind), on(row.kind), guard
			if row.change != nil {
				row.change(&s)
			}
			Run(t, s)
		})
	}
}

// withoutLeases changes the claims of a lock to those of the only permit of a semaphore without leases.
func withoutLeases(s *Spec) {
	leasedPermits(s)
	s.Lease, s.Renews, s.ReportsLoss = 0, false, false
}

// leasedPermits changes the claims of a lock to those of the only permit of a semaphore.
func leasedPermits(s *Spec) {
	s.Reentrant, s.Fenced, s.HeldByOthers = false, false, false
	s.ErrHeld, s.LeftKeys = lock.ErrNoPermits, semaphoreLeftKeys
}

func with(acquire acquirer) func(Topology) func(testing.TB, []string) Locker {
	return func(kind Topology) func(testing.TB, []string) Locker { return opener(kind, lock.OwnLayout, acquire) }
}

// withRedisson is with in Redisson's layout.
func withRedisson(acquire acquirer) func(Topology) func(testing.TB, []string) Locker {
	return func(kind Topology) func(testing.TB, []string) Locker { return opener(kind, lock.Redisson, acquire) }
}

// discardLogger keeps go-redis from logging every connection that a test breaks.
type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}
