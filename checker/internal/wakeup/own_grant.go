package wakeup

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/waiting"
	"github.com/lockchaos/lockchaos/history"
)

// judgeOwnGrants finds the acquires that waited for their own grant. A server had granted such an acquire, because its
// client had something to undo, and its wait ran out although for longer than the slack no other client can have held
// the key: the lock refused the request that was resent after a lost reply. The waiter of an acquire that failed may be
// ahead in the queue until it is removed. On a quorum, votes may be missing.
func judgeOwnGrants(v *bounds.View, o given.Options, found *finding.Findings) {
	if o.MayBeDown > 0 {
		return
	}
	var waited []int32
	for i, s := range refs.At(v.H.Spans, v.H.TimedOut) {
		least, _ := v.SizesIn(s.Key, segment.Of(s.Call, s.Return))
		fits := v.H.Limit(s.Key) == 0 || int64(s.Permits) <= least
		if s.Undone && !v.OfSeveral(i) && s.Return-s.Call > o.Slack() && fits {
			waited = append(waited, i)
		}
	}
	if len(waited) == 0 {
		return
	}
	others := newWaitReasons(v, o)
	for i, s := range refs.At(v.H.Spans, waited) {
		if p := segment.LongestOutside(segment.Of(s.Call, s.Return), others.blockedTimes(i)); p.Until-p.From > o.Slack() {
			found.Add(finding.Finding{Rule: ownGrant, X: refs.None, Y: i, Start: p.From, End: p.Until})
		}
	}
}

// waitReasons are the reasons for which an acquire may wait, other than its own grant.
type waitReasons struct {
	*bounds.View
	e    *bounds.Extents
	away []segment.Segment
	held map[int32][]segment.Segment // by key, computed when needed: when it may be held; disjoint, by time
	left map[int32][]leftWaiter
}

// leftWaiter is the time in which a failed acquire may still be in the queue.
type leftWaiter struct {
	segment.Segment
	span int32
}

func newWaitReasons(v *bounds.View, o given.Options) *waitReasons {
	w := &waitReasons{View: v, e: v.FreeTimes().Extents, away: v.Outages(o).Windows,
		held: make(map[int32][]segment.Segment), left: make(map[int32][]leftWaiter)}
	dis := v.Disturbances(o)
	for n := range v.H.Spans {
		s, i := &v.H.Spans[n], int32(n)
		if s.Outcome == history.Fail && v.MayLinger(i, dis) {
			w.left[s.Key] = append(w.left[s.Key], leftWaiter{segment.Of(s.Return, w.e.Dequeued(i)), i})
		}
	}
	return w
}

// blockedTimes are the times in which an acquire may have had to wait for others or a server, or its client was paused.
func (w *waitReasons) blockedTimes(i int32) []segment.Segment {
	s := &w.H.Spans[i]
	wait := segment.Of(s.Call, s.Return)
	all := slices.Clone(segment.Within(w.heldAt(s.Key), wait))
	add := func(x segment.Segment) {
		if x.From <= wait.Until && wait.From <= x.Until {
			all = append(all, x)
		}
	}
	for _, x := range w.e.Possible[s.Key] {
		if x.Last != i || x.Cause != bounds.AfterUnknownAcquire {
			add(x.Segment)
		}
	}
	for _, x := range w.left[s.Key] {
		if x.span != i && x.From < s.Return {
			add(x.Segment)
		}
	}
	return slices.Concat(segment.Within(w.away, wait), all, w.ClientPauses()[w.Client(i)])
}

// heldAt are the times in which a key may be held. An acquire of several keys may have had one while it waited for
// another.
func (w *waitReasons) heldAt(key int32) []segment.Segment {
	held, known := w.held[key]
	if !known {
		for i, h := range refs.At(w.e.Holds, w.e.ByKey[key]) {
			from := h.From
			if w.OfSeveral(h.Span) {
				from = h.Asked
			}
			held = append(held, segment.Of(from, waiting.HeldUntil(w.e, i, 0)))
		}
		held = segment.MergedSegments(held)
		w.held[key] = held
	}
	return held
}
