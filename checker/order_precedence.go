package checker

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// writerWait is the time in which a writer certainly waited in the queue.
type writerWait struct {
	segment
	span int32
	last int32 // of the waits up to this one, by their beginnings, the last to end
}

// judgePrecedence judges a lock that prefers writers: a reader that came while a writer was certainly waiting is not
// granted the lock before that writer is, or gives up. It returns how many writers waited. An owner that has the lock
// may read again, and a try need not look at the queue. A writer whose wait a fault may have disturbed does not count.
func (v *view) judgePrecedence(o Options, found *findings) (writers int) {
	if !o.states(promise.WriterPreference) {
		return 0
	}
	waits := v.writerWaits(o)
	for key, holds := range v.byKey {
		list := waits[int32(key)]
		writers += len(list)
		for i, h := range refsAt(v.holds, holds) {
			if s := &v.h.Spans[h.span]; !h.reader || h.inner || s.Op != history.OpAcquire {
				continue
			}
			n := sort.Search(len(list), func(n int) bool { return list[n].from >= h.asked })
			if n == 0 {
				continue
			}
			w := &list[list[n-1].last]
			if h.from <= w.until && v.h.Spans[w.span].Owner != h.owner {
				found.add(finding{rule: readerFirst, x: i, y: w.span, start: h.from, end: w.until})
			}
		}
	}
	return writers
}

// writerWaits are the waits of writers, by key and by their beginnings.
func (v *view) writerWaits(o Options) map[int32][]writerWait {
	all := make(map[int32][]writerWait)
	dis := v.disturbances(o)
	add := func(i int32, until time.Duration) {
		s := &v.h.Spans[i]
		from := later(s.Call, o.queueDelay())
		if dis.mayAffect(segment{s.Call, from}, v.client(i), history.AffectsDelays) { // its request may take long
			from = later(from, o.slack())
		}
		waits := s.Op == history.OpAcquire && s.Write && v.h.Limit(s.Key) == 0 && from < until
		if waits && !v.waitDisturbed(i, s.Return, dis) {
			all[s.Key] = append(all[s.Key], writerWait{segment: segment{from, until}, span: i})
		}
	}
	for i, s := range refs(v.h.Spans) {
		if s.Outcome == history.OK {
			add(i, s.Return)
		}
	}
	for _, i := range v.h.TimedOut { // when it gave up is not known exactly
		add(i, v.h.Spans[i].Return-o.queueDelay())
	}
	for _, list := range all { // in any order: each is sorted
		slices.SortFunc(list, func(a, b writerWait) int {
			return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.span, b.span))
		})
		for n := range list {
			if list[n].last = int32(n); n > 0 && list[list[n-1].last].until > list[n].until {
				list[n].last = list[n-1].last
			}
		}
	}
	return all
}

// waitDisturbed reports whether a fault may have disturbed the wait of a writer, which ended at t.
func (v *view) waitDisturbed(span int32, t time.Duration, dis disturbances) bool {
	return dis.mayAffect(segment{v.h.Spans[span].Call, t}, v.client(span), history.AffectsData, history.AffectsTraffic,
		history.AffectsCommands, history.AffectsClients)
}

// writerUnknown reports whether a writer that no fault disturbed has an unknown outcome: it could have shown whether
// the lock prefers writers.
func (v *view) writerUnknown(o Options) bool {
	dis := v.disturbances(o)
	for i, s := range refs(v.h.Spans) {
		if s.Op != history.OpAcquire || s.Outcome != history.Info || !s.Write {
			continue
		}
		t, completed := v.completed()[i]
		if !completed {
			t = v.h.End
		}
		if !v.waitDisturbed(i, t, dis) {
			return true
		}
	}
	return false
}
