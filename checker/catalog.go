package checker

import "slices"

// Catalog is every property that can be judged. The first violated one is the headline of a verdict.
func Catalog() []Spec { return slices.Concat(holdingRows(), servingRows(), searchRows()) }

// holdingRows are about the holders of the lock, and about the guarded resource.
func holdingRows() []Spec {
	return []Spec{
		{
			Name:   Exclusion,
			Doc:    "two holds overlap: each lasts from acquire returned to release invoked, loss reported or client crash",
			Source: "Herlihy & Wing 1990 (locality); argument in exclusion.go",
			check:  checkExclusion,
			rules:  exclusionRules(),
			absent: []string{neverGranted, onlySemaphores},
		},
		{
			Name:   LeaseExclusion,
			Doc:    "two holds overlap inside the validity promised to both",
			Source: "Gray & Cheriton 1989 (leases); Kleppmann 2016",
			check:  checkLeaseExclusion,
			rules:  leaseExclusionRules(),
			absent: []string{neverGranted, onlySemaphores, nothingPromised},
		},
		{
			Name:   Permits,
			Doc:    "more permits of a semaphore are held at once than exist",
			Source: "Dijkstra 1965 (semaphores); redisson#5066 (a double release creates permits); argument in permits.go",
			check:  checkPermits,
			rules:  permitsRules(),
			absent: []string{noSemaphore},
		},
		{
			Name:   ReadersWriter,
			Doc:    "a writer holds the lock at the same time as another owner",
			Source: "Courtois, Heymans & Parnas 1971; redisson#891 (a read unlock ends the write lock)",
			check:  checkReadersWriter,
			rules:  readersWriterRules(),
			absent: []string{noReader, onlySemaphores},
		},
		{
			Name:   Fencing,
			Doc:    "a later grant has no greater token, or an enforcing resource accepts an old token or refuses a current one",
			Source: "Kleppmann 2016, How to do distributed locking; Hazelcast FencedLock",
			check:  checkFencing,
			rules:  fencingRules(),
			absent: []string{noTokens},
		},
		{
			Name:   Damage,
			Doc:    "a guarded write is lost, or is stale and accepted",
			Source: "jepsen#435, jepsen-io/etcd lock-set: mutate shared state under the lock and count lost updates",
			check:  checkDamage,
			rules:  damageRules(),
			absent: []string{noWrites},
		},
	}
}

// servingRows are about the lock's replies, and about its waiters.
func servingRows() []Spec {
	return []Spec{
		{
			Name:   Honesty,
			Doc:    "a release or renewal succeeds without a hold, or a loss is reported late or without cause",
			Source: "redis-py#490 and ShedLock#2583 (another's lock released or extended)",
			check:  checkHonesty,
			rules:  honestyRules(),
			absent: []string{noReplies},
		},
		{
			Name:   HoldCount,
			Doc:    "nested holds are miscounted: in a reply, free while still held, or held after the last release",
			Source: "redisson#7367 (an acquire sent twice counts twice)",
			check:  checkHoldCount,
			rules:  holdCountRules(),
			absent: []string{noCounts, uncertainCounts},
		},
		{
			Name:   Recovery,
			Doc:    "a hold is not released, and no waiter is granted the lock within its lease and the slack",
			Source: "redis.io, Distributed Locks, liveness property A: deadlock free; Gray & Cheriton 1989",
			check:  checkRecovery,
			rules:  recoveryRules(),
			absent: []string{nothingToRecover},
		},
		{
			Name:   WakeUp,
			Doc:    "a waiter keeps waiting although the lock is certainly free for longer than the slack",
			Source: "redisson#4744 (a reader is not woken when a writer releases)",
			check:  checkWakeUp,
			rules:  wakeUpRules(),
			absent: []string{noWaits},
		},
		{
			Name:   Order,
			Doc:    "a waiter is overtaken by more later requests than a lock with a promised order allows",
			Source: "Lamport 1974 (bakery algorithm: first come, first served after a doorway)",
			check:  checkOrder,
			rules:  orderRules(),
			absent: []string{noOrder, neverGranted, noWriterWaited},
		},
		{
			Name:   Leak,
			Doc:    "keys, queue entries, permits or renewals remain at the end, or an unknown acquire blocks the lock forever",
			Source: "redisson#4462 (permits of crashed clients), CURATOR-79 (the node of an interrupted acquire)",
			check:  checkLeak,
			rules:  leakRules(),
			absent: []string{notChecked, maybeHeld},
		},
		{
			Name:   Latch,
			Doc:    "a latch opens early or late, is armed while it counts, refused while it is open, or disappears",
			Source: "java.util.concurrent, CountDownLatch; redisson#2304 (of several waiters one is woken)",
			check:  checkLatch,
			rules:  latchRules(),
			absent: []string{noLatch},
		},
	}
}

// searchRows are about the history as a whole.
func searchRows() []Spec {
	return []Spec{
		{
			Name:   Linearizable,
			Doc:    "no order of the operations, each at one instant between invocation and reply, is legal for such a lock",
			Source: "Herlihy & Wing 1990; Lowe 2016; Horn & Kroening 2015 (porcupine)",
			check:  checkLinearizable,
			rules:  linearRules(),
			absent: []string{noModel},
		},
		{
			Name:   Exercised,
			Doc:    "undecided if the run tested too little: not enough contention, or a fault without effect",
			Source: "etcd tests/robustness (minimal traffic), yugabyte-db#8636 (a run in which nothing happened passed)",
			check:  checkExercised,
			rules:  exercisedRules(),
		},
	}
}

// Find is the row of the catalog with that name, and whether there is one.
func Find(name Property) (Spec, bool) {
	for _, s := range Catalog() {
		if s.Name == name {
			return s, true
		}
	}
	return Spec{}, false
}
