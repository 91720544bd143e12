package order

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// absentAfter is how long a lock has to be free before it can rightly give up on the waiter whose turn it is.
const absentAfter = 100 * time.Millisecond

// disturbed reports whether a fault may have cost a waiter, which waited until t, its place in the queue, so that it
// was overtaken; last is the latest grant that overtook it. A lost message can have done so only if the lock was free
// for a while before, because the waiter did not request it in its turn. A lock that was handed over at once did not
// wait for it.
func (c *check) disturbed(span int32, t time.Duration, last int32) bool {
	if !c.o.Applies(orderFault) {
		return false
	}
	s, client := segment.Of(c.H.Spans[span].Call, t), c.Client(span)
	return c.dis.MayAffect(s, client, history.AffectsData, history.AffectsTraffic, history.AffectsSubscriptions,
		history.AffectsCommands, history.AffectsClients) ||
		c.dis.MayAffect(s, client, history.AffectsMessages) && (!c.o.Applies(handedOn) ||
			mayBeFree(c.View, c.H.Spans[span].Key, segment.Of(s.From, c.Holds[last].From)))
}

// overtakenUnexcused returns which hold of class overtook a waiter, which waited until t, last: last itself, unless a
// fault may have cost the waiter its place in the queue. It is in the queue again some time after that (see
// WaiterTimeout), and only requests that came later than that count.
func (c *check) overtakenUnexcused(class []int32, span int32, t time.Duration, last int32) (int32, bool) {
	if !c.disturbed(span, t, last) {
		return last, true
	}
	s := &c.H.Spans[span]
	again := c.dis.EndOf(segment.Of(s.Call, t), c.Client(span))
	again = segment.Later(again, segment.Later(c.FreeTimes().Extents.WaiterTimeout(s), c.o.QueueDelay()))
	times := 0
	for n := firstAfter(c.View, class, again); n < len(class) && c.Holds[class[n]].From < t; n++ {
		x := &c.Holds[class[n]]
		if x.Asked > again && segment.Later(x.Until, c.o.QueueDelay()) <= t {
			times, last = times+1, class[n]
		}
	}
	return last, times > c.o.MaxBypass
}

// firstAfter is the index of the first hold of a class that was granted after t.
func firstAfter(v *bounds.View, class []int32, t time.Duration) int {
	return sort.Search(len(class), func(n int) bool { return v.Holds[class[n]].From > t })
}

// mayBeFree reports whether nobody may have held the key in s for longer than absentAfter. Permits and readers leave
// room beside them: such a key may be free at any time.
func mayBeFree(v *bounds.View, key int32, s segment.Segment) bool {
	holds, free := v.ByKey[key], s.From
	n := sort.Search(len(holds), func(n int) bool { return v.Holds[holds[n]].From > s.From })
	for _, h := range refs.At(v.Holds, holds[max(n-1, 0):]) {
		if h.Reader || v.H.Limit(key) != 0 || min(h.From, s.Until)-free > absentAfter {
			return true
		}
		if h.From >= s.Until {
			return false
		}
		free = max(free, h.Until)
	}
	return s.Until-free > absentAfter
}
