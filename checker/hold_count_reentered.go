package checker

import (
	"slices"

	"github.com/lockchaos/lockchaos/history"
)

// judgeReentered finds the requests that were refused because their owner held the lock (code reentered), or read and
// asked to write (code upgrade), although it certainly did not: each of its holds had certainly been released before,
// and none was granted later. Owners with an unknown outcome, or a lost hold, are not judged: servers may keep a hold
// of theirs. Neither are requests for several keys: the owner may hold one of the others.
func (c *holdCounts) judgeReentered() {
	refused := slices.Concat(c.h.Reentered, c.h.Upgrades)
	if len(refused) == 0 {
		return
	}
	if c.uncertain == nil {
		c.findUncertain()
	}
	several := c.multiAcquires()
	for i, s := range refsAt(c.h.Spans, refused) {
		if s.Part || several[i] != nil || c.uncertain[s.Owner] || c.h.Limit(s.Key) != 0 || c.mayHaveHeld(i) {
			continue
		}
		why := either(slices.Contains(c.h.Upgrades, i), "was reading", "held it already")
		c.found.add(finding{rule: strangerRefused, x: none, y: i, start: s.Call, end: s.Return, note: why})
	}
}

// judgeReentryTokens finds the re-entries of a writer that got another token than its hold: a resource that has seen
// the new token refuses writes with the old one. Of mutexes, linearizable judges it. The lock is excused if servers may
// have lost the hold, and granted the lock again.
func (c *holdCounts) judgeReentryTokens() {
	if c.kind != ReadersWriterLock {
		return
	}
	for i, l := range refs(c.levels) {
		h, s := &c.holds[l.hold], &c.h.Spans[l.span]
		if l.kind != reentered || l.modeUnknown || l.lapsed || h.reader || !s.Write || c.uncertain[s.Owner] ||
			s.Token == 0 || h.token == 0 || s.Token == h.token || c.mayBeGone(l) {
			continue
		}
		c.found.add(finding{rule: otherToken, x: i, y: l.span, start: s.Return, end: s.Return})
	}
}

// mayBeGone reports whether servers may have lost a hold when it was entered again: a fault may have changed their
// data; or the end of its promise is not known, and a fault may have kept its client from renewing it.
func (c *holdCounts) mayBeGone(l *level) bool {
	h, again := &c.holds[l.hold], &c.h.Spans[l.span]
	first, dis := &c.h.Spans[h.span], c.disturbances(c.o)
	since := segment{h.asked, again.Return}
	return dis.mayAffect(since, anyClient, history.AffectsData) || first.Valid == 0 && first.Lease == 0 &&
		dis.mayAffect(since, c.client(h.span), history.AffectsTraffic, history.AffectsClients)
}

// mayHaveHeld reports whether the owner of a request may have held its key at some instant of it, through another
// request.
func (c *holdCounts) mayHaveHeld(request int32) bool {
	s := &c.h.Spans[request]
	for _, h := range refsAt(c.holds, c.byKey[s.Key]) {
		if h.owner == s.Owner && h.asked <= s.Return && later(h.freeBy, c.o.ClockError) >= s.Call {
			return true
		}
	}
	return false
}
