package checker

import (
	"maps"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// disabled is a rule of one property that is not to be applied. Tests switch
// off each rule in turn, and some history of testdata must then be judged
// otherwise: a rule that nothing depends on is not there for a reason.
type disabledRules struct {
	of    Property
	rules uint64 // a bit for each, by its number
}

func (d disabledRules) has(rule int) bool { return d.rules&(1<<rule) != 0 }

// obeys says whether a rule is to be applied.
func (o Options) applies(rule int) bool { return !o.off.has(rule) }

// forProperty is o with the switched-off rules of p alone.
func (o Options) forProperty(p Property) Options {
	if o.off.of != p {
		o.off = disabledRules{}
	}
	return o
}

func (o Options) slack() time.Duration {
	if o.Slack <= 0 {
		return time.Second
	}
	return o.Slack
}

func (o Options) queueDelay() time.Duration {
	if o.QueueDelay <= 0 {
		return 100 * time.Millisecond
	}
	return o.QueueDelay
}

// limited is h with the permits that o tells of; a copy, if there are any. Of a
// lock that is meant to be a semaphore every key has permits.
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
			if name == "" || name == h.Keys[key] { // "" comes first, so that a name wins
				c.Limits[key] = permitLimit(o.Permits[name])
			}
		}
		if c.Limits[key] == 0 && o.LockKind == SemaphoreLock {
			c.Limits[key] = history.UnknownLimit
		}
	}
	return &c
}

// countable is a number of permits as a limit; what is too great to be counted
// leaves open how many there are.
func permitLimit(permits int) int32 {
	if permits > history.MaxPermits {
		return history.UnknownLimit
	}
	return int32(max(0, permits))
}
