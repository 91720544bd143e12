package checker

import (
	"maps"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// disabledRules are rules of one property that are not applied. Tests switch off each rule in turn, and the judgement
// of some history in testdata must change: so every rule is needed.
type disabledRules struct {
	of    Property
	rules uint64 // a bit for each, by its number
}

func (d disabledRules) has(rule int) bool { return d.rules&(1<<rule) != 0 }

// applies reports whether a rule is applied.
func (o Options) applies(rule int) bool { return !o.off.has(rule) }

// excusedBy are the segments that acquit by a rule, if it is applied.
func (o Options) excusedBy(rule int, segments []segment) []segment {
	if !o.applies(rule) {
		return nil
	}
	return segments
}

// forProperty is o with only the rules of p switched off.
func (o Options) forProperty(p Property) Options {
	if o.off.of != p {
		o.off = disabledRules{}
	}
	return o
}

// slackDelays is how many times ReportDelay the slack is at least: so often one process waits for another, each as late
// as a timer, until an operation of several requests has its reply. The client, the harness, the server and the harness
// take part in each request; a release while a slot migrates takes four.
const slackDelays = 16

func (o Options) slack() time.Duration {
	if o.Slack <= 0 {
		return max(time.Second, slackDelays*o.ReportDelay)
	}
	return o.Slack
}

// states reports whether the lock states all of these promises.
func (o Options) states(all promise.Set) bool { return o.Promises.Has(all) }

// kind is the kind of the lock.
func (o Options) kind() LockKind {
	switch {
	case o.LockKind != AnyKind:
		return o.LockKind
	case o.states(promise.ReadWrite):
		return ReadersWriterLock
	case o.states(promise.Reentrant):
		return Reentrant
	case o.states(promise.RefusesReentry):
		return Mutex
	}
	return AnyKind
}

// isolation is how long one of several servers that share the keys may hang without delaying or losing a lock of
// another one; 0: not at all.
func (o Options) isolation() time.Duration {
	if !o.states(promise.PerServerFailures) {
		return 0
	}
	return o.NodeTimeout
}

// settles reports whether no acquire may end with an unknown outcome while a majority of the servers of a quorum
// replies in time. On a busy machine, and where a connection is slow without a fault, no lock can promise that.
func (o Options) settles() bool {
	return o.states(promise.RetriesTransientErrors) && o.VirtualTime && !o.SimPriorities
}

// poll is the interval at which waiters poll; 0: not known.
func (o Options) poll() time.Duration {
	if !o.states(promise.BoundedCost) {
		return 0
	}
	return o.Poll
}

func (o Options) queueDelay() time.Duration {
	if o.QueueDelay <= 0 {
		return 100 * time.Millisecond
	}
	return o.QueueDelay
}

// withLimits is h with the permits that o names; a copy, if there are any. If the lock is meant to be a semaphore,
// every key has permits.
func (o Options) withLimits(h *history.History) *history.History {
	if len(o.Permits) == 0 && o.LockKind != SemaphoreLock {
		return h
	}
	c := *h
	c.Limits = make([]int32, len(h.Keys))
	names := slices.Sorted(maps.Keys(o.Permits))
	for key := range c.Limits {
		c.Limits[key] = h.Limit(int32(key))
		for _, name := range names {
			if name == "" || name == h.Keys[key] { // "" comes first, so that a name overrides it
				c.Limits[key] = permitLimit(o.Permits[name])
			}
		}
		if c.Limits[key] == 0 && o.LockKind == SemaphoreLock {
			c.Limits[key] = history.UnknownLimit
		}
	}
	return &c
}

// permitLimit is a number of permits as a limit. A number that is too large to be counted leaves the limit unknown.
func permitLimit(permits int) int32 {
	if permits > history.MaxPermits {
		return history.UnknownLimit
	}
	return int32(max(0, permits))
}
