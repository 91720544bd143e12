package checker

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/exclusion"
	"github.com/lockchaos/lockchaos/checker/internal/exercised"
	"github.com/lockchaos/lockchaos/checker/internal/fencing"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/holdcount"
	"github.com/lockchaos/lockchaos/checker/internal/honesty"
	"github.com/lockchaos/lockchaos/checker/internal/latch"
	"github.com/lockchaos/lockchaos/checker/internal/leak"
	"github.com/lockchaos/lockchaos/checker/internal/linear"
	"github.com/lockchaos/lockchaos/checker/internal/order"
	"github.com/lockchaos/lockchaos/checker/internal/recovery"
	"github.com/lockchaos/lockchaos/checker/internal/wakeup"
	"github.com/lockchaos/lockchaos/checker/property"
)

// Catalog is every property that can be judged. The first violated one is the headline of a verdict.
func Catalog() []Spec { return slices.Concat(holdingRows(), servingRows(), searchRows()) }

// holdingRows are about the holders of the lock, and about the guarded resource.
func holdingRows() []Spec {
	return []Spec{
		{
			Name:   property.Exclusion,
			Doc:    "two holds overlap: each lasts from acquire returned to release invoked, loss reported or client crash",
			Source: "Herlihy & Wing 1990 (locality); argument in package exclusion",
			check:  exclusion.Check,
			rules:  exclusion.Rules(),
			absent: []string{finding.NeverGranted, finding.OnlySemaphores},
		},
		{
			Name:   property.LeaseExclusion,
			Doc:    "two holds overlap inside the validity promised to both",
			Source: "Gray & Cheriton 1989 (leases); Kleppmann 2016",
			check:  exclusion.CheckLeases,
			rules:  exclusion.LeaseRules(),
			absent: []string{finding.NeverGranted, finding.OnlySemaphores, finding.NothingPromised},
		},
		{
			Name:   property.Permits,
			Doc:    "more permits of a semaphore are held at once than exist",
			Source: "Dijkstra 1965 (semaphores); redisson#5066 (a double release creates permits); argument in exclusion",
			check:  exclusion.CheckPermits,
			rules:  exclusion.PermitsRules(),
			absent: []string{finding.NoSemaphore},
		},
		{
			Name:   property.ReadersWriter,
			Doc:    "a writer holds the lock at the same time as another owner",
			Source: "Courtois, Heymans & Parnas 1971; redisson#891 (a read unlock ends the write lock)",
			check:  exclusion.CheckReadersWriter,
			rules:  exclusion.ReadersWriterRules(),
			absent: []string{finding.NoReader, finding.OnlySemaphores},
		},
		{
			Name:   property.Fencing,
			Doc:    "a later grant has no greater token, or an enforcing resource accepts an old token or refuses a current one",
			Source: "Kleppmann 2016, How to do distributed locking; Hazelcast FencedLock",
			check:  fencing.Check,
			rules:  fencing.Rules(),
			absent: []string{finding.NoTokens},
		},
		{
			Name:   property.Damage,
			Doc:    "a guarded write is lost, or is stale and accepted",
			Source: "jepsen#435, jepsen-io/etcd lock-set: mutate shared state under the lock and count lost updates",
			check:  fencing.CheckDamage,
			rules:  fencing.DamageRules(),
			absent: []string{finding.NoWrites},
		},
	}
}

// servingRows are about the lock's replies, and about its waiters.
func servingRows() []Spec {
	return []Spec{
		{
			Name:   property.Honesty,
			Doc:    "a release or renewal succeeds without a hold, or a loss is reported late or without cause",
			Source: "redis-py#490 and ShedLock#2583 (another's lock released or extended)",
			check:  honesty.Check,
			rules:  claims.Rules(),
			absent: []string{finding.NoReplies},
		},
		{
			Name:   property.HoldCount,
			Doc:    "nested holds are miscounted: in a reply, free while still held, or held after the last release",
			Source: "redisson#7367 (an acquire sent twice counts twice)",
			check:  holdcount.Check,
			rules:  holdcount.Rules(),
			absent: []string{finding.NoCounts, finding.UncertainCounts},
		},
		{
			Name:   property.Recovery,
			Doc:    "a hold is not released, and no waiter is granted the lock within its lease and the slack",
			Source: "redis.io, Distributed Locks, liveness property A: deadlock free; Gray & Cheriton 1989",
			check:  recovery.Check,
			rules:  recovery.Rules(),
			absent: []string{finding.NothingToRecover},
		},
		{
			Name:   property.WakeUp,
			Doc:    "a waiter keeps waiting although the lock is certainly free for longer than the slack",
			Source: "redisson#4744 (a reader is not woken when a writer releases)",
			check:  wakeup.Check,
			rules:  wakeup.Rules(),
			absent: []string{finding.NoWaits},
		},
		{
			Name:   property.Order,
			Doc:    "a waiter is overtaken by more later requests than a lock with a promised order allows",
			Source: "Lamport 1974 (bakery algorithm: first come, first served after a doorway)",
			check:  order.Check,
			rules:  order.Rules(),
			absent: []string{finding.NoOrder, finding.NeverGranted, finding.NoWriterWaited},
		},
		{
			Name:   property.Leak,
			Doc:    "keys, queue entries, permits or renewals remain at the end, or an unknown acquire blocks the lock forever",
			Source: "redisson#4462 (permits of crashed clients), CURATOR-79 (the node of an interrupted acquire)",
			check:  leak.Check,
			rules:  leak.Rules(),
			absent: []string{finding.NotChecked, finding.MaybeHeld},
		},
		{
			Name:   property.Latch,
			Doc:    "a latch opens early or late, is armed while it counts, refused while it is open, or disappears",
			Source: "java.util.concurrent, CountDownLatch; redisson#2304 (of several waiters one is woken)",
			check:  latch.Check,
			rules:  latch.Rules(),
			absent: []string{finding.NoLatch},
		},
	}
}

// searchRows are about the history as a whole.
func searchRows() []Spec {
	return []Spec{
		{
			Name:   property.Linearizable,
			Doc:    "no order of the operations, each at one instant between invocation and reply, is legal for such a lock",
			Source: "Herlihy & Wing 1990; Lowe 2016; Horn & Kroening 2015 (porcupine)",
			check:  linear.Check,
			rules:  linear.Rules(),
			absent: []string{finding.NoModel},
		},
		{
			Name:   property.Exercised,
			Doc:    "undecided if the run tested too little: not enough contention, or a fault without effect",
			Source: "etcd tests/robustness (minimal traffic), yugabyte-db#8636 (a run in which nothing happened passed)",
			check:  exercised.Check,
			rules:  exercised.Rules(),
		},
	}
}

// Find is the row of the catalog with that name, and whether there is one.
func Find(name property.Name) (Spec, bool) {
	for _, s := range Catalog() {
		if s.Name == name {
			return s, true
		}
	}
	return Spec{}, false
}
