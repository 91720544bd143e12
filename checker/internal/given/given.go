// Package given has the options of a judgement as the checkers use them: with defaults, and with conclusions from them.
package given

import (
	"maps"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// Options are the options of a judgement as the checkers use them: with defaults, and with what follows from them.
type Options struct {
	property.Options
	Values []history.Sample // the samples of the history, also of a foreign lock
	Off    DisabledRules    // a rule that a test switches off, to show that it is needed
}

// DisabledRules are rules of one property that are not applied. Tests switch off each rule in turn, and the judgement
// of some history in testdata must change: so every rule is needed.
type DisabledRules struct {
	Of    property.Name
	Rules uint64 // a bit for each, by its number
}

func (d DisabledRules) Has(rule int) bool { return d.Rules&(1<<rule) != 0 }

// Applies reports whether a rule is applied.
func (o Options) Applies(rule int) bool { return !o.Off.Has(rule) }

// ExcusedBy are the segments that acquit by a rule, if it is applied.
func (o Options) ExcusedBy(rule int, segments []segment.Segment) []segment.Segment {
	if !o.Applies(rule) {
		return nil
	}
	return segments
}

// ForProperty is o with only the rules of p switched off.
func (o Options) ForProperty(p property.Name) Options {
	if o.Off.Of != p {
		o.Off = DisabledRules{}
	}
	return o
}

// slackDelays is how many times ReportDelay the slack is at least: so often one process waits for another, each as late
// as a timer, until an operation of several requests has its reply. The client, the harness, the server and the harness
// take part in each request; a release while a slot migrates takes four.
const slackDelays = 16

func (o Options) Slack() time.Duration {
	if o.Options.Slack <= 0 {
		return max(time.Second, slackDelays*o.ReportDelay)
	}
	return o.Options.Slack
}

// States reports whether the lock states all of these promises.
func (o Options) States(all promise.Set) bool { return o.Promises.Has(all) }

// Kind is the kind of the lock.
func (o Options) Kind() property.LockKind {
	switch {
	case o.LockKind != property.AnyKind:
		return o.LockKind
	case o.States(promise.ReadWrite):
		return property.ReadersWriterLock
	case o.States(promise.Reentrant):
		return property.Reentrant
	case o.States(promise.RefusesReentry):
		return property.Mutex
	}
	return property.AnyKind
}

// Isolation is how long one of several servers that share the keys may hang without delaying or losing a lock of
// another one; 0: not at all.
func (o Options) Isolation() time.Duration {
	if !o.States(promise.PerServerFailures) {
		return 0
	}
	return o.NodeTimeout
}

// Settles reports whether no acquire may end with an unknown outcome while a majority of the servers of a quorum
// replies in time. On a busy machine, and where a connection is slow without a fault, no lock can promise that.
func (o Options) Settles() bool {
	return o.States(promise.RetriesTransientErrors) && o.VirtualTime && !o.SimPriorities
}

// Poll is the interval at which waiters poll; 0: not known.
func (o Options) Poll() time.Duration {
	if !o.States(promise.BoundedCost) {
		return 0
	}
	return o.Options.Poll
}

func (o Options) QueueDelay() time.Duration {
	if o.Options.QueueDelay <= 0 {
		return 100 * time.Millisecond
	}
	return o.Options.QueueDelay
}

// WithLimits is h with the permits that o names; a copy, if there are any. If the lock is meant to be a semaphore,
// every key has permits.
func (o Options) WithLimits(h *history.History) *history.History {
	if len(o.Permits) == 0 && o.LockKind != property.SemaphoreLock {
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
		if c.Limits[key] == 0 && o.LockKind == property.SemaphoreLock {
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
