package checker

import (
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeLosses judges the reported losses, and the losses that were not reported.
func (c *honestyCheck) judgeLosses() {
	reported, ofLeases := false, false // ofLeases: that a requested lease had ended
	for _, n := range refs(c.h.Notices) {
		if n.F != history.Lost {
			continue
		}
		reported = true
		c.losses++
		if x, held := c.lastHold(n.Owner, n.Key, n.Time); held && !ofLeases {
			h := &c.holds[x]
			ofLeases = c.h.Spans[h.span].Lease > 0 && n.Time >= c.validUntil(h) && !c.reenteredUnleased(h)
		}
	}
	pauses := c.clientPauses()
	excuses := c.excusesFor(c.o)
	for i, h := range refs(c.holds) {
		if valid := c.validUntil(h); valid < h.until {
			c.judgeLate(i, valid, ofLeases, pauses)
		}
		if reported && h.endEvent >= 0 {
			var away outageWindows
			if c.o.applies(honestOutage) {
				away = excuses(scope{h.key, true, false}).away
			}
			c.judgeUnfounded(i, away)
		}
	}
}

// lastSeen is, by client, when it did something for the last time: after that nobody can say that it relied on a lock,
// because it may have ended its work while its leases were in force. The end of the history, if its last operation has
// no completion.
func (c *honestyCheck) lastSeen() map[int]time.Duration {
	seen := make(map[int]time.Duration)
	for i, s := range refs(c.h.Spans) {
		t := s.Return
		if s.Outcome == history.Info {
			if t = c.h.End; s.Ended >= 0 {
				t = s.Call // see Unknown
			}
		}
		client := c.client(i)
		seen[client] = max(seen[client], min(t, c.h.End))
	}
	for _, u := range c.h.Unknown {
		client := c.client(u.Span)
		seen[client] = max(seen[client], u.Time)
	}
	for _, n := range refs(c.h.Notices) {
		client := n.Process.Client(c.h.Clients)
		seen[client] = max(seen[client], n.Time)
	}
	return seen
}

// reenteredUnleased reports whether the owner of h acquired the lock again, at any time, without a lease.
func (c *honestyCheck) reenteredUnleased(h *hold) bool {
	return slices.ContainsFunc(c.regrants, func(i int32) bool {
		s := &c.h.Spans[i]
		return s.Owner == h.owner && s.Key == h.key && s.Lease == 0
	})
}

// validUntil is the end of the promise of a hold, or of a hold that ended sooner, of the last one: a shorter promise to
// an inner level leaves that to an outer one in force.
func (c *honestyCheck) validUntil(h *hold) time.Duration {
	valid := h.lastPromise()
	if valid < h.until {
		valid = max(valid, c.longestLeft(h))
	}
	if s := &c.h.Spans[h.span]; s.Valid == 0 && len(h.extra().laterPromises) == 0 {
		// The lock replied with no validity: its lease began at the request that was granted, which the lock sent at some
		// time of its wait.
		valid = max(valid, s.Return+s.Lease)
	}
	return valid
}

// lastPromise is the end of the last promise made for the hold.
func (h *hold) lastPromise() time.Duration {
	if n := len(h.extra().laterPromises); n > 0 {
		return h.extra().laterPromises[n-1].until
	}
	return h.valid
}

// longestPromise is the end of the promise for the hold that lasts longest: an inner level with a shorter lease does
// not shorten the lease of the outer one.
func (h *hold) longestPromise() time.Duration { return max(h.lastPromise(), h.extra().furthest) }

// judgeLate judges a hold on which its owner relied after its promise, until its client was seen last. ofLeases: the
// lock has reported a loss because a requested lease had ended.
func (c *honestyCheck) judgeLate(i int32, valid time.Duration, ofLeases bool, pauses map[int][]segment) {
	h := &c.holds[i]
	s := &c.h.Spans[h.span]
	if valid < c.h.End { // the promise to a hold that has not ended may end after the history
		c.outlived++
	}
	if c.o.applies(honestSilent) && !ofLeases && !c.o.states(promise.ReportsLoss) && (s.Lease > 0 || s.Valid == 0) {
		return
	}
	until := min(h.until, c.seen()[c.client(h.span)])
	from := max(valid, h.from)
	if c.o.applies(honestPaused) {
		for _, p := range pauses[c.client(h.span)] {
			if p.from < until && p.until > from { // it can be reported when the client resumes
				from = p.until
			}
		}
	}
	if until-from > c.o.slack() && until > from {
		c.found.add(finding{rule: lossLate, x: i, y: h.span, start: from, end: until})
	}
}

// judgeUnfounded judges a hold that ended with a reported loss.
func (c *honestyCheck) judgeUnfounded(i int32, away outageWindows) {
	h := &c.holds[i]
	if !c.lossReported(h) || c.o.applies(honestReopened) && c.reopened(h) {
		return
	}
	t := h.until
	if h.lastPromise()-t <= c.o.slack() || away.touches(segment{h.from, t}) {
		return
	}
	// The promise to an inner level that was released says nothing about the outer one, whose lease may be shorter.
	if left := c.levelsLeft(h); len(left) > 0 && left.longest().until-t <= c.o.slack() {
		return
	}
	if c.mayBeGrantedBy(i, t) {
		return
	}
	c.found.add(finding{rule: lossUnfounded, x: i, y: h.span, start: t, end: t})
}

// reopened reports whether the client of a hold closed its lock object when the loss was reported, or within the slack
// before.
func (c *honestyCheck) reopened(h *hold) bool {
	return slices.ContainsFunc(c.reopens()[c.client(h.span)], func(s segment) bool {
		return s.from <= h.until && later(s.until, c.o.slack()) >= h.until
	})
}

// findReopens finds, by client, when it closed its lock object and opened another one.
func (c *honestyCheck) findReopens() map[int][]segment {
	reopens := make(map[int][]segment)
	for i, s := range refsAt(c.h.Spans, c.rare) {
		if s.Op == history.OpReopen {
			client := c.client(i)
			reopens[client] = append(reopens[client], segment{s.Call, s.Return})
		}
	}
	return reopens
}

// mayBeGrantedBy reports whether another owner may have been granted the lock during hold i and before t: one with a
// known grant, within the slack, or one whose acquire had an unknown outcome.
func (c *honestyCheck) mayBeGrantedBy(i int32, t time.Duration) bool {
	h := &c.holds[i]
	if c.unknown()[h.key] <= t {
		return true
	}
	holds := c.byKey[h.key]
	n := sort.Search(len(holds), func(n int) bool { return c.holds[holds[n]].from >= h.from })
	for m := max(0, n-maxLookBack); m < len(holds); m++ {
		y := &c.holds[holds[m]]
		if y.from > later(t, c.o.slack()) {
			break
		}
		if y.owner != h.owner && y.asked <= t && y.until >= h.from {
			return true
		}
	}
	return false
}
