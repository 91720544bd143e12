package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// This file is about holds that a server replaces by other owners' holds, because a renewal or an acquire does not
// compare the value of the key.

// judgeStolen finds the values that replaced the value of a holder between two samples of a master, although the holder
// had not given up the lock, its lease was running, and nothing else can have removed the value: neither a release nor
// a request of the holder was in flight, and no fault may have changed the data of servers.
func (c *honestyCheck) judgeStolen() {
	v := c.kept()
	if v == nil {
		return
	}
	for _, s := range v.Replacing() {
		was := s.Replaced
		if was.Span == kept.None || s.Span == kept.None || s.Client == kept.None {
			continue
		}
		mine, other := &c.h.Spans[was.Span], &c.h.Spans[s.Span]
		n, held := c.lastHold(mine.Owner, mine.Key, was.Last.Sent)
		if !held || other.Owner == mine.Owner || c.holds[n].until < s.First.Time || c.holds[n].reader {
			continue
		}
		if h := &c.holds[n]; c.leaseRuns(h, was, s.First.Time) && !c.mayBeFreed(h, segment{was.Last.Sent, s.First.Time}) {
			end := min(h.until, s.Last.Time)
			c.found.add(finding{rule: stolen, x: n, y: s.Span, start: s.First.Time, end: max(end, s.First.Time), note: s})
		}
	}
}

// leaseRuns reports whether the lease of a hold certainly lasted until t: by its rest in the last sample of its value,
// if that can be the rest of the lease, or by its promise. A value that the server has removed by t is no hold. A lease
// of unknown length that the lock renews may end while its client does not run or does not reach the servers.
func (c *honestyCheck) leaseRuns(h *hold, s *kept.Stay, t time.Duration) bool {
	rest, lease := s.Last.Keys[c.h.Keys[h.key]].TTL, c.h.Spans[h.span].Lease
	if rest >= 0 {
		runs := s.Last.Sent+rest-keepError(rest, c.o) > t
		if !runs || rest <= lease+keepError(lease, c.o) {
			return runs
		}
	}
	if h.lastPromise() == never && c.all.mayAffect(segment{h.asked, t}, c.client(h.span), history.AffectsClients,
		history.AffectsTraffic, history.AffectsDelays, history.AffectsCommands) {
		return false
	}
	return h.promisedAt(t)
}

// mayBeFreed reports whether a hold may have been ended in an interval by a request or a fault.
func (c *honestyCheck) mayBeFreed(h *hold, during segment) bool {
	if c.touched(c.all, during) || c.all.mayAffect(during, anyClient, history.AffectsSlots) ||
		c.all.mayAffect(segment{h.asked, during.until}, anyClient, history.AffectsRequests) ||
		c.quorum && c.all.mayAffect(segment{h.asked, during.until}, anyClient, history.AffectsTraffic,
			history.AffectsDelays) {
		return true
	}
	for i, s := range c.inFlight(during) {
		frees := s.Op == history.OpRelease || s.Op == history.OpForceRelease || s.Op == history.OpReopen
		if s.Key != h.key || !frees && s.Owner != h.owner || !aboutHold(s.Op) {
			continue
		}
		if s.Outcome != history.Info || s.Owner == h.owner || s.Op != history.OpRelease || c.client(i) == c.client(h.span) {
			return true // one of unknown outcome of another client does not remove this hold later
		}
	}
	return false
}

// stolenViolation describes a finding of this file.
func (c *honestyCheck) stolenViolation(f finding) Violation {
	s, h := f.note.(*kept.Stay), &c.holds[f.x]
	rest := s.Replaced.Last.Keys[c.h.Keys[h.key]].TTL
	f.note = fmt.Sprintf("at %s %s kept %s for client %d in place of client %d, for which it had kept it at %s",
		format.Instant(s.First.Time), s.Node, lockName(c.h.Keys[h.key]), s.Client, c.client(h.span),
		format.Instant(s.Replaced.Last.Time))
	if rest >= 0 {
		f.note = fmt.Sprintf("%s with %s of its lease left", f.note, format.Duration(rest))
	}
	w := c.word(f, wording{BrokenPromise, otherHold, "a server keeps a hold until its owner releases it or its lease ends",
		"$note; client $other had not released it"})
	w.Events = []int{c.granted(h), int(c.h.Spans[f.y].Ended)}
	slices.Sort(w.Events)
	return w
}
