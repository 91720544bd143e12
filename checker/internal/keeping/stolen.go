package keeping

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// This file is about holds that a server replaces by other owners' holds, because a renewal or an acquire does not
// compare the value of the key.

// JudgeStolen finds the values that replaced the value of a holder between two samples of a master, although the holder
// had not given up the lock, its lease was running, and nothing else can have removed the value: neither a release nor
// a request of the holder was in flight, and no fault may have changed the data of servers.
func JudgeStolen(c *claims.Check) {
	v := c.Kept()
	if v == nil {
		return
	}
	for _, s := range v.Replacing() {
		was := s.Replaced
		if was.Span == kept.None || s.Span == kept.None || s.Client == kept.None {
			continue
		}
		mine, other := &c.H.Spans[was.Span], &c.H.Spans[s.Span]
		n, held := c.LastHold(mine.Owner, mine.Key, was.Last.Sent)
		if !held || other.Owner == mine.Owner || c.Holds[n].Until < s.First.Time || c.Holds[n].Reader {
			continue
		}
		if h := &c.Holds[n]; leaseRuns(c, h, was, s.First.Time) &&
			!mayBeFreed(c, h, segment.Of(was.Last.Sent, s.First.Time)) {
			end := min(h.Until, s.Last.Time)
			c.Found.Add(finding.Finding{Rule: claims.Stolen, X: n, Y: s.Span, Start: s.First.Time, End: max(end, s.First.Time),
				Note: s})
		}
	}
}

// leaseRuns reports whether the lease of a hold certainly lasted until t: by its rest in the last sample of its value,
// if that can be the rest of the lease, or by its promise. A value that the server has removed by t is no hold. A lease
// of unknown length that the lock renews may end while its client does not run or does not reach the servers.
func leaseRuns(c *claims.Check, h *ledger.Hold, s *kept.Stay, t time.Duration) bool {
	rest, lease := s.Last.Keys[c.H.Keys[h.Key]].TTL, c.H.Spans[h.Span].Lease
	if rest >= 0 {
		runs := s.Last.Sent+rest-ledger.KeepError(rest, c.O) > t
		if !runs || rest <= lease+ledger.KeepError(lease, c.O) {
			return runs
		}
	}
	if h.LastPromise() == segment.Never && c.All.MayAffect(segment.Of(h.Asked, t), c.Client(h.Span),
		history.AffectsClients,
		history.AffectsTraffic, history.AffectsDelays, history.AffectsCommands) {
		return false
	}
	return h.PromisedAt(t)
}

// mayBeFreed reports whether a hold may have been ended in an interval by a request or a fault.
func mayBeFreed(c *claims.Check, h *ledger.Hold, during segment.Segment) bool {
	if c.Touched(c.All, during) || c.All.MayAffect(during, excuse.AnyClient, history.AffectsSlots) ||
		c.All.MayAffect(segment.Of(h.Asked, during.Until), excuse.AnyClient, history.AffectsRequests) ||
		c.Quorum && c.All.MayAffect(segment.Of(h.Asked, during.Until), excuse.AnyClient, history.AffectsTraffic,
			history.AffectsDelays) {
		return true
	}
	for i, s := range c.InFlight(during) {
		frees := s.Op == history.OpRelease || s.Op == history.OpForceRelease || s.Op == history.OpReopen
		if s.Key != h.Key || !frees && s.Owner != h.Owner || !claims.AboutHold(s.Op) {
			continue
		}
		if s.Outcome != history.Info || s.Owner == h.Owner || s.Op != history.OpRelease || c.Client(i) == c.Client(h.Span) {
			return true // one of unknown outcome of another client does not remove this hold later
		}
	}
	return false
}

// StolenViolation describes a finding of this file.
func StolenViolation(c *claims.Check, f finding.Finding) property.Violation {
	s, h := f.Note.(*kept.Stay), &c.Holds[f.X]
	rest := s.Replaced.Last.Keys[c.H.Keys[h.Key]].TTL
	f.Note = fmt.Sprintf("at %s %s kept %s for client %d in place of client %d, for which it had kept it at %s",
		format.Instant(s.First.Time), s.Node, finding.LockName(c.H.Keys[h.Key]), s.Client, c.Client(h.Span),
		format.Instant(s.Replaced.Last.Time))
	if rest >= 0 {
		f.Note = fmt.Sprintf("%s with %s of its lease left", f.Note, format.Duration(rest))
	}
	w := finding.Word(c.View, f, claims.Rules()[f.Rule])
	w.Events = []int{c.Granted(h), int(c.H.Spans[f.Y].Ended)}
	slices.Sort(w.Events)
	return w
}
