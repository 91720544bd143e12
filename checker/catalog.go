package checker

import "slices"

// Catalog is every property that can be judged, in the order in which they are
// told: what breaks a promise first, what could not be tested last.
func Catalog() []Spec {
	return slices.Concat(holdingRows(), servingRows(), searchRows())
}

// holdingRows speak of who is in the lock, and of what it protects.
func holdingRows() []Spec {
	return []Spec{
		{
			Name:   Exclusion,
			Doc:    "two holds overlap: each from acquire returned to release invoked, loss told or crash",
			Source: "Herlihy & Wing 1990 (locality); argument in exclusion.go",
			check:  checkExclusion,
			rules:  exclusionRules(),
		},
		{
			Name:   LeaseExclusion,
			Doc:    "two holds overlap inside the validity that each was promised: the lock lied",
			Source: "Gray & Cheriton 1989 (leases); Kleppmann 2016",
			check:  checkLeaseExclusion,
			rules:  leaseExclusionRules(),
		},
		{
			Name:   Permits,
			Doc:    "more permits of a semaphore are out at once than there are",
			Source: "Dijkstra 1965 (semaphores); redisson#5066 (a double release makes permits); argument in permits.go",
			check:  checkPermits,
			rules:  permitsRules(),
		},
		{
			Name:   ReadersWriter,
			Doc:    "a writer is in the lock together with anybody",
			Source: "Courtois, Heymans & Parnas 1971; redisson#891 (a read unlock ends the write lock)",
			check:  checkReadersWriter,
			rules:  readersWriterRules(),
		},
		{
			Name:   Fencing,
			Doc:    "a later grant has no greater token, or an enforcing resource took an old token or refused a current one",
			Source: "Kleppmann 2016, How to do distributed locking; Hazelcast FencedLock",
			check:  checkFencing,
			rules:  fencingRules(),
		},
		{
			Name:   Damage,
			Doc:    "a guarded write was lost, or was stale and accepted",
			Source: "jepsen#435, jepsen-io/etcd lock-set: mutate shared state under the lock and count lost updates",
			check:  checkDamage,
			rules:  damageRules(),
		},
	}
}

// servingRows speak of what the lock tells, and of whom it lets wait.
func servingRows() []Spec {
	return []Spec{
		{
			Name:   Honesty,
			Doc:    "a release, renewal or loss report was not true: of another's hold, of none, late or for nothing",
			Source: "redis-py#490 and ShedLock#2583 (another's lock released or extended)",
			check:  checkHonesty,
			rules:  honestyRules(),
		},
		{
			Name:   HoldCount,
			Doc:    "nested holds are miscounted: in an answer, free while still held, or held after the last release",
			Source: "redisson#7367 (an acquire sent twice counts twice)",
			check:  checkHoldCount,
			rules:  holdCountRules(),
		},
		{
			Name:   Recovery,
			Doc:    "a hold was not given back, and nobody was granted the lock within lease and slack although somebody waited",
			Source: "redis.io, Distributed Locks, liveness property A: deadlock free; Gray & Cheriton 1989",
			check:  checkRecovery,
			rules:  recoveryRules(),
		},
		{
			Name:   WakeUp,
			Doc:    "a waiter slept on although the lock was certainly free for longer than the slack",
			Source: "redisson#4744 (a reader sleeps on after a writer has left)",
			check:  checkWakeUp,
			rules:  wakeUpRules(),
		},
		{
			Name:   Order,
			Doc:    "a waiter was overtaken by more later comers than a lock that promises an order allows",
			Source: "Lamport 1974 (bakery algorithm: first come, first served after a doorway)",
			check:  checkOrder,
			rules:  orderRules(),
		},
		{
			Name:   Leak,
			Doc:    "keys, queue entries, permits or renewals are left at the end, or an unknown acquire blocks for ever",
			Source: "redisson#4462 (permits of the dead), CURATOR-79 (the node of an interrupted acquire)",
			check:  checkLeak,
			rules:  leakRules(),
		},
	}
}

// searchRows speak of the history as a whole.
func searchRows() []Spec {
	return []Spec{
		{
			Name:   Linearizable,
			Doc:    "no order of the operations, each at one instant inside its span, is legal for an owner-aware mutex",
			Source: "Herlihy & Wing 1990; Lowe 2016; Horn & Kroening 2015 (porcupine)",
			check:  checkLinearizable,
			rules:  linearRules(),
		},
		{
			Name:   Bite,
			Doc:    "undecided when the run tested nothing: too little contention, or a fault that did not hit",
			Source: "etcd tests/robustness (minimal traffic), yugabyte-db#8636 (a run in which nothing happened passed)",
			check:  checkBite,
			rules:  biteRules(),
		},
	}
}

// Find is the row of the catalogue with that name.
func Find(name Property) (Spec, bool) {
	for _, s := range Catalog() {
		if s.Name == name {
			return s, true
		}
	}
	return Spec{}, false
}
