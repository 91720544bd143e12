package order

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// writerWait is the time in which a writer certainly waited in the queue.
type writerWait struct {
	segment.Segment
	span int32
	last int32 // of the waits up to this one, by their beginnings, the last to end
}

// judgePrecedence judges a lock that prefers writers: a reader that came while a writer was certainly waiting is not
// granted the lock before that writer is, or gives up. It returns how many writers waited. An owner that has the lock
// may read again, and a try need not look at the queue. A writer whose wait a fault may have disturbed does not count.
func judgePrecedence(v *bounds.View, o given.Options, found *finding.Findings) (writers int) {
	if !o.States(promise.WriterPreference) {
		return 0
	}
	waits := writerWaits(v, o)
	for key, holds := range v.ByKey {
		list := waits[int32(key)]
		writers += len(list)
		for i, h := range refs.At(v.Holds, holds) {
			if s := &v.H.Spans[h.Span]; !h.Reader || h.Inner || s.Op != history.OpAcquire {
				continue
			}
			n := sort.Search(len(list), func(n int) bool { return list[n].From >= h.Asked })
			if n == 0 {
				continue
			}
			w := &list[list[n-1].last]
			if h.From <= w.Until && v.H.Spans[w.span].Owner != h.Owner {
				found.Add(finding.Finding{Rule: readerFirst, X: i, Y: w.span, Start: h.From, End: w.Until})
			}
		}
	}
	return writers
}

// writerWaits are the waits of writers, by key and by their beginnings.
func writerWaits(v *bounds.View, o given.Options) map[int32][]writerWait {
	all := make(map[int32][]writerWait)
	dis := v.Disturbances(o)
	add := func(i int32, until time.Duration) {
		s := &v.H.Spans[i]
		from := segment.Later(s.Call, o.QueueDelay())
		if dis.MayAffect(segment.Of(s.Call, from), v.Client(i), history.AffectsDelays) { // its request may take long
			from = segment.Later(from, o.Slack())
		}
		waits := s.Op == history.OpAcquire && s.Write && v.H.Limit(s.Key) == 0 && from < until
		if waits && !waitDisturbed(v, i, s.Return, dis) {
			all[s.Key] = append(all[s.Key], writerWait{Segment: segment.Of(from, until), span: i})
		}
	}
	for i, s := range refs.All(v.H.Spans) {
		if s.Outcome == history.OK {
			add(i, s.Return)
		}
	}
	for _, i := range v.H.TimedOut { // when it gave up is not known exactly
		add(i, v.H.Spans[i].Return-o.QueueDelay())
	}
	for _, list := range all { // in any order: each is sorted
		slices.SortFunc(list, func(a, b writerWait) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.span, b.span))
		})
		for n := range list {
			if list[n].last = int32(n); n > 0 && list[list[n-1].last].Until > list[n].Until {
				list[n].last = list[n-1].last
			}
		}
	}
	return all
}

// waitDisturbed reports whether a fault may have disturbed the wait of a writer, which ended at t.
func waitDisturbed(v *bounds.View, span int32, t time.Duration, dis excuse.Disturbances) bool {
	return dis.MayAffect(segment.Of(v.H.Spans[span].Call, t), v.Client(span), history.AffectsData, history.AffectsTraffic,
		history.AffectsCommands, history.AffectsClients)
}

// writerUnknown reports whether a writer that no fault disturbed has an unknown outcome: it could have shown whether
// the lock prefers writers.
func writerUnknown(v *bounds.View, o given.Options) bool {
	dis := v.Disturbances(o)
	for i, s := range refs.All(v.H.Spans) {
		if s.Op != history.OpAcquire || s.Outcome != history.Info || !s.Write {
			continue
		}
		t, completed := v.Completed()[i]
		if !completed {
			t = v.H.End
		}
		if !waitDisturbed(v, i, t, dis) {
			return true
		}
	}
	return false
}
