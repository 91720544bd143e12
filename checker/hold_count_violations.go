package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/internal/format"
)

// holdCountViolation puts a finding of [HoldCount] into words.
func (v *view) holdCountViolation(f finding) Violation {
	switch f.rule {
	case serverCount:
		return v.keptViolation(f)
	case upgraded:
		return v.upgradeViolation(f)
	case otherToken:
		return v.reentryTokenViolation(f)
	case strangerRefused:
		return v.reenteredViolation(f)
	case freedTooSoon:
		r, y := &v.h.Spans[f.x], &v.holds[f.y]
		w := v.involving(BrokenPromise, f.x, y.span)
		w.Rule = "a lock that was acquired several times is free only after as many releases"
		w.Events = []int{int(r.Ended), v.granted(y)}
		w.Text = fmt.Sprintf("client %d released one of its holds of %s at %s and still held it, but client %d was granted "+
			"it at %s", w.Clients[0], lockName(w.Key), format.Instant(r.Return), w.Clients[1], format.Instant(y.from))
		return w
	case heldTooLong:
		x, s := &v.holds[f.x], &v.h.Spans[f.y]
		w := v.involving(BrokenPromise, x.span, f.y)
		w.Rule = "a lock is free when it has been released as often as it was acquired"
		w.Events = []int{int(x.endEvent), int(s.Invoked), int(s.Ended)}
		w.Text = fmt.Sprintf("client %d had released %s as often as it had acquired it by %s, but client %d was refused it "+
			"at %s", w.Clients[0], lockName(w.Key), format.Instant(x.freeBy), w.Clients[1], format.Instant(s.Return))
		return w
	}
	grant, depth := f.x, int32(0)
	if f.rule != overReleased {
		l := &v.levels[f.x]
		grant, depth = v.holds[l.hold].span, l.depth
	}
	g, s := &v.h.Spans[grant], &v.h.Spans[f.y]
	w := v.involving(BrokenPromise, f.y)
	w.Events = []int{int(g.Ended), int(s.Ended)}
	if grant == f.y {
		w.Events[0] = int(s.Invoked)
	}
	who, key := w.Clients[0], lockName(w.Key)
	switch f.rule {
	case wrongCount:
		w.Rule = "the hold count in a reply equals the owner's hold count"
		w.Text = fmt.Sprintf("client %d got hold count %d for %s at %s, but held it %s", who, s.Count, key,
			format.Instant(s.Return), format.Count(depth, "time"))
	case ownerRefused:
		w.Rule = "an owner can acquire a reentrant lock that it holds"
		w.Text = fmt.Sprintf("client %d was refused %s at %s although it had held it since %s", who, key,
			format.Instant(s.Return), format.Instant(g.Return))
	case takenAgain:
		w.Rule = "a mutex that is not reentrant is not granted to its holder"
		w.Text = fmt.Sprintf("client %d was granted %s at %s although it had held it since %s", who, key,
			format.Instant(s.Return), format.Instant(g.Return))
	case overReleased:
		w.Rule = "a lock is released as often as it was acquired, and not more"
		w.Text = fmt.Sprintf("client %d released %s at %s once more than it had acquired it, without an error",
			who, key, format.Instant(s.Return))
	}
	return w
}
