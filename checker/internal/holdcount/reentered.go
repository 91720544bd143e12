package holdcount

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
)

// judgeReentered finds the requests that were refused because their owner held the lock (code reentered), or read and
// asked to write (code upgrade), although it certainly did not: each of its holds had certainly been released before,
// and none was granted later. Owners with an unknown outcome, or a lost hold, are not judged: servers may keep a hold
// of theirs. Neither are requests for several keys: the owner may hold one of the others.
func (c *holdCounts) judgeReentered() {
	refused := slices.Concat(c.H.Reentered, c.H.Upgrades)
	if len(refused) == 0 {
		return
	}
	if c.uncertain == nil {
		c.findUncertain()
	}
	for i, s := range refs.At(c.H.Spans, refused) {
		if c.OfSeveral(i) || c.uncertain[s.Owner] || c.H.Limit(s.Key) != 0 || c.mayHaveHeld(i) {
			continue
		}
		why := finding.Either(slices.Contains(c.H.Upgrades, i), "was reading", "held it already")
		c.found.Add(finding.Finding{Rule: strangerRefused, X: refs.None, Y: i, Start: s.Call, End: s.Return, Note: why})
	}
}

// judgeReentryTokens finds the re-entries of a writer that got another token than its hold: a resource that has seen
// the new token refuses writes with the old one. Of mutexes, linearizable judges it. The lock is excused if servers may
// have lost the hold, and granted the lock again.
func (c *holdCounts) judgeReentryTokens() {
	if c.Kind != property.ReadersWriterLock {
		return
	}
	for i, l := range refs.All(c.Levels) {
		h, s := &c.Holds[l.Hold], &c.H.Spans[l.Span]
		if l.Kind != ledger.Reentered || l.ModeUnknown || l.Lapsed || h.Reader || !s.Write || c.uncertain[s.Owner] ||
			s.Token == 0 || h.Token == 0 || s.Token == h.Token || c.mayBeGone(l) {
			continue
		}
		c.found.Add(finding.Finding{Rule: otherToken, X: i, Y: l.Span, Start: s.Return, End: s.Return})
	}
}

// mayBeGone reports whether servers may have lost a hold when it was entered again: a fault may have changed their
// data; or the end of its promise is not known, and a fault may have kept its client from renewing it.
func (c *holdCounts) mayBeGone(l *ledger.Level) bool {
	h, again := &c.Holds[l.Hold], &c.H.Spans[l.Span]
	first, dis := &c.H.Spans[h.Span], c.Disturbances(c.o)
	since := segment.Of(h.Asked, again.Return)
	return dis.MayAffect(since, excuse.AnyClient, history.AffectsData) || first.Valid == 0 && first.Lease == 0 &&
		dis.MayAffect(since, c.Client(h.Span), history.AffectsTraffic, history.AffectsClients)
}

// mayHaveHeld reports whether the owner of a request may have held its key at some instant of it, through another
// request.
func (c *holdCounts) mayHaveHeld(request int32) bool {
	s := &c.H.Spans[request]
	for _, h := range refs.At(c.Holds, c.ByKey[s.Key]) {
		if h.Owner == s.Owner && h.Asked <= s.Return && segment.Later(h.FreeBy, c.o.ClockError) >= s.Call {
			return true
		}
	}
	return false
}
