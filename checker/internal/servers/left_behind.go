package servers

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// leftBehind reports whether a server keeps a hold that its owner gave up, although the lock states that it repeats a
// release, and the withdrawal of an acquire, for 1.5 s ([promise.RetriesRelease1500ms]). The owner's last operation has
// an unknown outcome and leaves it nothing: an acquire, whose time counts from the instant at which the client gave up,
// or a release, whose time counts from its request. From half the slack after that on, no fault was in force, and the
// servers replied. The client was active later. An acquire that ended because the lock object was closed is not judged:
// nothing is left that could withdraw it, and a queue keeps its entry until that lapses.
func (s *NodeSamples) leftBehind(x *history.Sample, k WrongHold, l *OwnerLedger, o given.Options) (WrongHold, bool) {
	n := len(l.Ops) - 1
	k.Kind, k.Span = HeldLeftBehind, l.Ops[n].Span
	last := &s.H.Spans[k.Span]
	if last.Outcome != history.Info || !o.States(promise.RetriesRelease1500ms) || o.MayBeDown > 0 ||
		s.Client(k.Span) != l.client || s.WasClosed(k.Span) {
		return k, false
	}
	u := slices.IndexFunc(s.H.Unknown, func(u history.Unknown) bool {
		return u.Span == k.Span && !u.Timeout && !u.Abandoned
	})
	if u < 0 {
		return k, false
	}
	before, want := int32(0), int32(0)
	if n > 0 {
		before = l.Ops[n-1].Depth
	}
	switch k.Since = s.H.Unknown[u].Time; last.Op {
	case history.OpAcquire, history.OpTry:
	case history.OpRelease:
		k.Since, want = last.Call, 1
	default:
		return k, false
	}
	settled := segment.Later(k.Since, o.Slack()/2)
	if before != want || x.Sent <= segment.Later(settled, o.Slack()) || s.activeUntil(l.client) < x.Time {
		return k, false
	}
	o.Options.Slack = 1 // an outage has no consequences after its end
	away := s.Outages(o).Touches(segment.Of(settled, x.Time))
	return k, !away && !slices.ContainsFunc(s.FaultTimes(), func(f excuse.FaultTime) bool {
		at := f.Client()
		return f.Until > settled && f.From < x.Time && f.Affects != history.AffectsDelays && (at < 0 || at == l.client)
	})
}

// activeUntil is the end of the last operation of a client whose outcome is known.
func (s *NodeSamples) activeUntil(client int) (t time.Duration) {
	for i, x := range refs.All(s.H.Spans) {
		if x.Outcome != history.Info && s.Client(i) == client {
			t = max(t, x.Return)
		}
	}
	return t
}
