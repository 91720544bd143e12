package checker

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// The rules of order.
const (
	overtaken   = iota // granted after too many later requests
	passedOver         // never granted, though later requests were
	readerFirst        // a reader was granted the lock while a writer waited that has precedence
	notEnqueued        // acquits: the waiter was not certainly in the queue when the other request came
	otherMode          // acquits: readers and writers wait in separate queues
	orderFault         // acquits: a fault may have cost the waiter its place
	handedOn           // a lost message explains nothing where the lock was handed on at once
)

func orderRules() []string {
	return []string{overtaken: "overtaken", passedOver: "passed-over",
		readerFirst: "reader-first", notEnqueued: "not-queued", otherMode: "other-mode",
		orderFault: "fault", handedOn: "handed-on"}
}

// checkOrder counts by how many later requests each waiter was overtaken. Only a lock that promises an order is
// judged (Options.Fair): no waiter may be overtaken more than Options.MaxBypass times; zero is first come, first
// served.
//
// A waiter counts as queued when Options.QueueDelay has passed since its request, and only later requests can have
// overtaken it. Which grant was first follows from the order of the holds, which is certain where they do not overlap
// (the later grant was not made inside the earlier hold). Tries do not wait and are not counted. Where no order is
// promised, semaphores are not counted either: a small request may rightly pass a large one.
//
// It sorts and uses a Fenwick tree, O(n log n); linear time if no waiter can have been overtaken, because each was
// granted before any later request.
func checkOrder(v *view, o Options) Result {
	found := newFindings(o)
	waited, most := 0, int32(0)
	dis, timedOut := v.disturbances(o), v.timedOut()
	for key, holds := range v.byKey {
		if v.h.Limit(int32(key)) != 0 && !o.states(promise.Fair) {
			continue
		}
		classes := [][]int32{v.waiters(holds, false, o.states(promise.Fair))}
		if slices.ContainsFunc(holds, func(i int32) bool { return v.holds[i].reader }) {
			classes = append(classes, v.waiters(holds, true, o.states(promise.Fair)))
		}
		if o.states(promise.Fair) {
			for readers, class := range classes {
				v.gaveUp(timedOut[int32(key)], class, readers == 1, dis, o, found)
			}
		}
		if len(classes) > 1 && !o.applies(otherMode) {
			classes = [][]int32{append(slices.Clone(classes[0]), classes[1]...)}
			slices.SortFunc(classes[0], func(a, b int32) int { return cmp.Compare(v.holds[a].from, v.holds[b].from) })
		}
		for _, class := range classes {
			waited += len(class)
			for _, b := range v.bypasses(class, o) {
				most = max(most, b.times)
				h := &v.holds[b.hold]
				if !o.states(promise.Fair) || int(b.times) <= o.MaxBypass || v.h.Spans[h.span].Op != history.OpAcquire {
					continue
				}
				if by, ok := v.overtakenUnexcused(class, h.span, h.from, b.by, dis, o); ok {
					found.add(finding{rule: overtaken, x: by, y: h.span, start: h.asked, end: h.from})
				}
			}
		}
	}
	preceded := v.judgePrecedence(o, found)
	r := found.result(Order, func(f finding) Violation { return v.orderViolation(f, o) })
	r.Counts = map[string]int64{"waits": int64(waited), "most_overtaken": int64(most)}
	switch {
	case r.Outcome == Violated:
	case o.states(promise.WriterPreference) && preceded > 0 && !o.states(promise.Fair):
		r.Summary = fmt.Sprintf("no new reader was granted the lock while %s waited", format.Count(preceded, "writer"))
	case o.states(promise.WriterPreference) && !o.states(promise.Fair) && v.writerUnknown(o):
		r.Outcome, r.Summary = Undecided, "every writer that can have waited has an unknown outcome"
	case o.states(promise.WriterPreference) && !o.states(promise.Fair):
		r.Outcome, r.Summary = NotApplicable, noWriterWaited
	case !o.states(promise.Fair):
		r.Outcome = NotApplicable
		r.Summary = noOrder + "; " + overtakenText(most)
	case v.unjudged(func(s *history.Span) bool { return s.Op == history.OpAcquire }):
		r.Outcome, r.Summary = Undecided, unknownHolds(v.unknownCounts)
	case waited == 0:
		r.Outcome, r.Summary = NotApplicable, neverGranted
	case r.Outcome == Holds:
		r.Summary = overtakenText(most)
	}
	return r
}

// overtakenText says how often a waiter was overtaken at most.
func overtakenText(most int32) string {
	if most == 0 {
		return "no waiter was overtaken"
	}
	return "no waiter was overtaken more than " + format.Count(most, "time")
}

// timedOut are the acquires whose wait ran out, by key.
func (v *view) timedOut() map[int32][]int32 {
	all := make(map[int32][]int32)
	for _, i := range v.h.TimedOut {
		key := v.h.Spans[i].Key
		all[key] = append(all[key], i)
	}
	return all
}

// gaveUp finds the waiters in timedOut that gave up although later requests had been granted: they count as overtaken,
// too.
func (v *view) gaveUp(timedOut, granted []int32, readers bool, dis disturbances, o Options, found *findings) {
	settle := o.queueDelay()
	for i, s := range refsAt(v.h.Spans, timedOut) {
		if s.Write == readers {
			continue
		}
		times, last := 0, int32(-1)
		for n := v.firstAfter(granted, s.Call); n < len(granted) && later(v.holds[granted[n]].from, settle) <= s.Return; n++ {
			if v.holds[granted[n]].asked > later(s.Call, settle) {
				times, last = times+1, granted[n]
			}
		}
		if times <= o.MaxBypass {
			continue
		}
		if last, ok := v.overtakenUnexcused(granted, i, s.Return, last, dis, o); ok {
			found.add(finding{rule: passedOver, x: last, y: i, start: s.Call, end: s.Return})
		}
	}
}

// waiters are the holds in one mode that were waited for, in the order of their grants.
func (v *view) waiters(holds []int32, readers, tries bool) []int32 {
	other := slices.IndexFunc(holds, func(i int32) bool {
		return !v.waited(&v.holds[i], readers, tries)
	})
	if other < 0 {
		return holds
	}
	queue := slices.Clone(holds[:other])
	for _, i := range holds[other:] {
		if v.waited(&v.holds[i], readers, tries) {
			queue = append(queue, i)
		}
	}
	return queue
}

// waited reports whether a hold was waited for in a queue, or granted to a try; an owner that holds the lock already
// does not queue.
func (v *view) waited(h *hold, readers, tries bool) bool {
	return h.reader == readers && !h.inner && (tries || v.h.Spans[h.span].Op == history.OpAcquire)
}

// bypass is a hold whose waiter was overtaken, how often, and by which hold last.
type bypass struct{ hold, by, times int32 }

// bypasses counts, for each hold of a queue, the later requests that were granted before it.
func (v *view) bypasses(queue []int32, o Options) (found []bypass) {
	settle := o.queueDelay()
	if !o.applies(notEnqueued) {
		settle = 0
	}
	latest, suspects := time.Duration(-1), false
	for _, h := range refsAt(v.holds, queue) {
		suspects = suspects || latest > later(h.asked, settle)
		latest = max(latest, h.asked)
	}
	if !suspects {
		return nil
	}
	calls := make([]time.Duration, len(queue))
	for n, i := range queue {
		calls[n] = v.holds[i].asked
	}
	slices.Sort(calls)
	rank := func(t time.Duration) int { return sort.Search(len(calls), func(n int) bool { return calls[n] > t }) }
	tree := make(fenwick, len(queue)+1)
	byEnd := v.sorted(queue, func(h *hold) time.Duration { return h.until })
	n := 0
	for i, h := range refsAt(v.holds, queue) {
		for n < len(byEnd) && v.endedBefore(&v.holds[byEnd[n]], h, o) { // it was certainly granted before
			tree.add(rank(v.holds[byEnd[n]].asked))
			n++
		}
		if times := int32(n) - tree.sum(rank(later(h.asked, settle))); times > 0 {
			found = append(found, bypass{hold: i, by: v.overtaker(queue, h, o), times: times})
		}
	}
	return found
}

// endedBefore reports whether x had certainly ended when h, of the same class, was granted the lock: not only when the
// owner of h learned of it, if both can be held at once.
func (v *view) endedBefore(x, h *hold, o Options) bool {
	if h.reader || v.h.Limit(h.key) != 0 {
		return later(x.until, o.queueDelay()) <= h.from
	}
	return x.until <= h.from
}

// overtaker is the last hold that overtook h.
func (v *view) overtaker(queue []int32, h *hold, o Options) int32 {
	settle := o.queueDelay()
	n := sort.Search(len(queue), func(n int) bool { return v.holds[queue[n]].from >= h.from })
	for n--; n >= 0; n-- {
		if x := &v.holds[queue[n]]; x.asked > later(h.asked, settle) && v.endedBefore(x, h, o) {
			return queue[n]
		}
	}
	return queue[0]
}

// fenwick counts how many of the added numbers, from 1 on, are not greater than another.
type fenwick []int32

func (f fenwick) add(n int) {
	for ; n < len(f); n += n & -n {
		f[n]++
	}
}

func (f fenwick) sum(n int) (s int32) {
	for ; n > 0; n -= n & -n {
		s += f[n]
	}
	return s
}

// orderViolation puts a finding of [Order] into words.
func (v *view) orderViolation(f finding, o Options) Violation {
	later, most := "later requests", "no waiter is overtaken by a later request"
	if o.MaxBypass > 0 {
		later = "more than " + format.Count(o.MaxBypass, "later request")
		most = "a waiter is overtaken by later requests at most " + format.Count(o.MaxBypass, "time")
	}
	w := v.word(f, map[int]wording{
		overtaken: {"", otherHold, most, "client $client requested $lock at $call and got it at $return, after " +
			later + " had been granted; the last of them, by client $other, came at $asked"},
		passedOver: {"", otherHold, most, "client $client requested $lock at $call and gave up at $return, after " +
			later + " had been granted; the last of them, by client $other, came at $asked"},
		readerFirst: {"", otherHold, "no new reader is granted the lock while a writer waits",
			"client $other requested $lock to read at $asked and got it at $since, although client $client had been waiting " +
				"to write since $call, and waited until $return"},
	}[f.rule])
	s, x := &v.h.Spans[f.y], &v.holds[f.x]
	w.Events = []int{int(s.Invoked), int(v.h.Spans[x.span].Invoked), v.granted(x)}
	if f.rule == passedOver {
		w.Events[2] = int(s.Ended)
	}
	return w
}
