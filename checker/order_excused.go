package checker

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// absentAfter is how long a lock has to be free before it can rightly give up on the waiter whose turn it is.
const absentAfter = 100 * time.Millisecond

// disturbed reports whether a fault may have cost a waiter, which waited until t, its place in the queue, so that it
// was overtaken; last is the latest grant that overtook it. A lost message can have done so only if the lock was free
// for a while before, because the waiter did not request it in its turn. A lock that was handed over at once did not
// wait for it.
func (v *view) disturbed(span int32, t time.Duration, last int32, d disturbances, o Options) bool {
	if !o.applies(orderFault) {
		return false
	}
	s, client := segment{v.h.Spans[span].Call, t}, v.client(span)
	return d.mayAffect(s, client, history.AffectsData, history.AffectsTraffic, history.AffectsSubscriptions,
		history.AffectsCommands, history.AffectsClients) ||
		d.mayAffect(s, client, history.AffectsMessages) && (!o.applies(handedOn) ||
			v.mayBeFree(v.h.Spans[span].Key, segment{s.from, v.holds[last].from}))
}

// overtakenUnexcused returns which hold of class overtook a waiter, which waited until t, last: last itself, unless a
// fault may have cost the waiter its place in the queue. It is in the queue again some time after that (see
// waiterTimeout), and only requests that came later than that count.
func (v *view) overtakenUnexcused(
	class []int32, span int32, t time.Duration, last int32, d disturbances, o Options,
) (int32, bool) {
	if !v.disturbed(span, t, last, d, o) {
		return last, true
	}
	s := &v.h.Spans[span]
	again := d.endOf(segment{s.Call, t}, v.client(span))
	again = later(again, later(v.freeTimes().extents.waiterTimeout(s), o.queueDelay()))
	times := 0
	for n := v.firstAfter(class, again); n < len(class) && v.holds[class[n]].from < t; n++ {
		x := &v.holds[class[n]]
		if x.asked > again && later(x.until, o.queueDelay()) <= t {
			times, last = times+1, class[n]
		}
	}
	return last, times > o.MaxBypass
}

// firstAfter is the index of the first hold of a class that was granted after t.
func (v *view) firstAfter(class []int32, t time.Duration) int {
	return sort.Search(len(class), func(n int) bool { return v.holds[class[n]].from > t })
}

// mayBeFree reports whether nobody may have held the key in s for longer than absentAfter. Permits and readers leave
// room beside them: such a key may be free at any time.
func (v *view) mayBeFree(key int32, s segment) bool {
	holds, free := v.byKey[key], s.from
	n := sort.Search(len(holds), func(n int) bool { return v.holds[holds[n]].from > s.from })
	for _, h := range refsAt(v.holds, holds[max(n-1, 0):]) {
		if h.reader || v.h.Limit(key) != 0 || min(h.from, s.until)-free > absentAfter {
			return true
		}
		if h.from >= s.until {
			return false
		}
		free = max(free, h.until)
	}
	return s.until-free > absentAfter
}
