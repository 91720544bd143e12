package checker

import (
	"maps"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
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

// forProperty is o with only those rules switched off that belong to p.
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
