package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// leftBehind reports whether a server keeps a hold that its owner gave up, although the lock states that it repeats a
// release, and the withdrawal of an acquire, for 1.5 s ([promise.RetriesRelease1500ms]). The owner's last operation has
// an unknown outcome and leaves it nothing: an acquire, whose time counts from the instant at which the client gave up,
// or a release, whose time counts from its request. From half the slack after that on, no fault was in force, and the
// servers replied. The client was active later. An acquire that ended because the lock object was closed is not judged:
// nothing is left that could withdraw it, and a queue keeps its entry until that lapses.
func (s *nodeSamples) leftBehind(x *history.Sample, k wrongHold, l *ownerLedger, o Options) (wrongHold, bool) {
	n := len(l.ops) - 1
	k.kind, k.span = heldLeftBehind, l.ops[n].span
	last := &s.h.Spans[k.span]
	if last.Outcome != history.Info || !o.states(promise.RetriesRelease1500ms) || o.MayBeDown > 0 ||
		s.client(k.span) != l.client || s.wasClosed(k.span) {
		return k, false
	}
	u := slices.IndexFunc(s.h.Unknown, func(u history.Unknown) bool {
		return u.Span == k.span && !u.Timeout && !u.Abandoned
	})
	if u < 0 {
		return k, false
	}
	before, want := int32(0), int32(0)
	if n > 0 {
		before = l.ops[n-1].depth
	}
	switch k.since = s.h.Unknown[u].Time; last.Op {
	case history.OpAcquire, history.OpTry:
	case history.OpRelease:
		k.since, want = last.Call, 1
	default:
		return k, false
	}
	settled := later(k.since, o.slack()/2)
	if before != want || x.Sent <= later(settled, o.slack()) || s.activeUntil(l.client) < x.Time {
		return k, false
	}
	o.Slack = 1 // an outage has no consequences after its end
	away := s.outages(o).touches(segment{settled, x.Time})
	return k, !away && !slices.ContainsFunc(s.faultTimes(), func(f faultTime) bool {
		at := f.client()
		return f.until > settled && f.from < x.Time && f.affects != history.AffectsDelays && (at < 0 || at == l.client)
	})
}

// activeUntil is the end of the last operation of a client whose outcome is known.
func (s *nodeSamples) activeUntil(client int) (t time.Duration) {
	for i, x := range refs(s.h.Spans) {
		if x.Outcome != history.Info && s.client(i) == client {
			t = max(t, x.Return)
		}
	}
	return t
}
