// Package claims has the facts that rules of honesty compare: promises, answers and inspections, by owner and key.
package claims

import (
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// New is a check that has judged nothing yet.
func New(v *bounds.View, o given.Options) *Check {
	c := &Check{View: v, O: o, Found: finding.New(o), Dis: v.Disturbances(o), All: v.AllDisturbances(o)}
	c.Unknown = sync.OnceValue(v.FirstUnknown)
	c.Promises = sync.OnceValue(func() *promiseIndex { return NewPromiseIndex(v) })
	c.Seen, c.Acts, c.ShownOps = sync.OnceValue(c.lastSeen), sync.OnceValue(c.noticedActs), sync.OnceValue(c.findShownOps)
	c.reopens = sync.OnceValue(c.findReopens)
	return c
}

// Check is one run of the check.
type Check struct {
	*bounds.View
	O     given.Options
	Found *finding.Findings

	Dis, All excuse.Disturbances // faults that may explain anything except operators' actions; all faults

	// computed when needed
	Unknown  func() []time.Duration                // by key: when the first acquire of unknown outcome was invoked
	Promises func() *promiseIndex                  // of all promises of the history
	Seen     func() map[int]time.Duration          // see lastSeen
	Acts     func() map[ledger.OwnerKey]*ownerActs // see noticedActs
	ShownOps func() map[ledger.OwnerKey]*shownOps  // see findShownOps
	reopens  func() map[int][]segment.Segment      // see findReopens

	Refused []LostGrant // see RefusedHold

	Replies, Losses, Outlived int
	Unjudged                  bool // an owner whose holds are unknown released or renewed
}

// Touched reports whether one of some faults may have changed the servers' data in s, which excuses the lock.
func (c *Check) Touched(by excuse.Disturbances, s segment.Segment) bool {
	return c.O.Applies(HonestData) && by.MayAffect(s, excuse.AnyClient, history.AffectsData)
}

// lastSeen is, by client, when it did something for the last time: after that nobody can say that it relied on a lock,
// because it may have ended its work while its leases were in force. The end of the history, if its last operation has
// no completion.
func (c *Check) lastSeen() map[int]time.Duration {
	seen := make(map[int]time.Duration)
	for i, s := range refs.All(c.H.Spans) {
		t := s.Return
		if s.Outcome == history.Info {
			if t = c.H.End; s.Ended >= 0 {
				t = s.Call // see Unknown
			}
		}
		client := c.Client(i)
		seen[client] = max(seen[client], min(t, c.H.End))
	}
	for _, u := range c.H.Unknown {
		client := c.Client(u.Span)
		seen[client] = max(seen[client], u.Time)
	}
	for _, n := range refs.All(c.H.Notices) {
		client := n.Process.Client(c.H.Clients)
		seen[client] = max(seen[client], n.Time)
	}
	return seen
}

// Reopened reports whether the client of a hold closed its lock object when the loss was reported, or within the slack
// before.
func (c *Check) Reopened(h *ledger.Hold) bool {
	return slices.ContainsFunc(c.reopens()[c.Client(h.Span)], func(s segment.Segment) bool {
		return s.From <= h.Until && segment.Later(s.Until, c.O.Slack()) >= h.Until
	})
}

// findReopens finds, by client, when it closed its lock object and opened another one.
func (c *Check) findReopens() map[int][]segment.Segment {
	reopens := make(map[int][]segment.Segment)
	for i, s := range refs.At(c.H.Spans, c.Rare) {
		if s.Op == history.OpReopen {
			client := c.Client(i)
			reopens[client] = append(reopens[client], segment.Of(s.Call, s.Return))
		}
	}
	return reopens
}
