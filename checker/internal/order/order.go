// Package order judges in which order waiters are granted a lock.
package order

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
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

func Rules() finding.Rules {
	return finding.Rules{
		overtaken: {Name: "overtaken"}, passedOver: {Name: "passed-over"}, readerFirst: {Name: "reader-first"},
		notEnqueued: {Name: "not-queued"}, otherMode: {Name: "other-mode"}, orderFault: {Name: "fault"},
		handedOn: {Name: "handed-on"},
	}
}

// Check counts by how many later requests each waiter was overtaken. Only a lock that promises an order is
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
func Check(v *bounds.View, o given.Options) property.Result {
	found := finding.New(o)
	waited, most := 0, int32(0)
	c, timedOut := check{View: v, o: o, found: found, dis: v.Disturbances(o)}, timedOut(v)
	for key, holds := range v.ByKey {
		if v.H.Limit(int32(key)) != 0 && !o.States(promise.Fair) {
			continue
		}
		classes := [][]int32{waiters(v, holds, false, o.States(promise.Fair))}
		if slices.ContainsFunc(holds, func(i int32) bool { return v.Holds[i].Reader }) {
			classes = append(classes, waiters(v, holds, true, o.States(promise.Fair)))
		}
		if o.States(promise.Fair) {
			for readers, class := range classes {
				c.gaveUp(timedOut[int32(key)], class, readers == 1)
			}
		}
		if len(classes) > 1 && !o.Applies(otherMode) {
			classes = [][]int32{append(slices.Clone(classes[0]), classes[1]...)}
			slices.SortFunc(classes[0], func(a, b int32) int { return cmp.Compare(v.Holds[a].From, v.Holds[b].From) })
		}
		for _, class := range classes {
			waited += len(class)
			for _, b := range bypasses(v, class, o) {
				most = max(most, b.times)
				h := &v.Holds[b.hold]
				if !o.States(promise.Fair) || int(b.times) <= o.MaxBypass || v.H.Spans[h.Span].Op != history.OpAcquire {
					continue
				}
				if by, ok := c.overtakenUnexcused(class, h.Span, h.From, b.by); ok {
					found.Add(finding.Finding{Rule: overtaken, X: by, Y: h.Span, Start: h.Asked, End: h.From})
				}
			}
		}
	}
	preceded := judgePrecedence(v, o, found)
	r := found.Result(property.Order, func(f finding.Finding) property.Violation { return orderViolation(v, f, o) })
	r.Counts = map[string]int64{"waits": int64(waited), "most_overtaken": int64(most)}
	switch {
	case r.Outcome == property.Violated:
	case o.States(promise.WriterPreference) && preceded > 0 && !o.States(promise.Fair):
		r.Summary = fmt.Sprintf("no new reader was granted the lock while %s waited", format.Count(preceded, "writer"))
	case o.States(promise.WriterPreference) && !o.States(promise.Fair) && writerUnknown(v, o):
		r.Outcome, r.Summary = property.Undecided, "every writer that can have waited has an unknown outcome"
	case o.States(promise.WriterPreference) && !o.States(promise.Fair):
		r.Outcome, r.Summary = property.NotApplicable, finding.NoWriterWaited
	case !o.States(promise.Fair):
		r.Outcome = property.NotApplicable
		r.Summary = finding.NoOrder + "; " + overtakenText(most)
	case v.Unjudged(func(s *history.Span) bool { return s.Op == history.OpAcquire }):
		r.Outcome, r.Summary = property.Undecided, ledger.UnknownHolds(v.UnknownCounts)
	case waited == 0:
		r.Outcome, r.Summary = property.NotApplicable, finding.NeverGranted
	case r.Outcome == property.Holds:
		r.Summary = overtakenText(most)
	}
	return r
}

// check is one run of the check.
type check struct {
	*bounds.View
	o     given.Options
	found *finding.Findings
	dis   excuse.Disturbances
}

// overtakenText says how often a waiter was overtaken at most.
func overtakenText(most int32) string {
	if most == 0 {
		return "no waiter was overtaken"
	}
	return "no waiter was overtaken more than " + format.Count(most, "time")
}

// timedOut are the acquires whose wait ran out, by key.
func timedOut(v *bounds.View) map[int32][]int32 {
	all := make(map[int32][]int32)
	for _, i := range v.H.TimedOut {
		key := v.H.Spans[i].Key
		all[key] = append(all[key], i)
	}
	return all
}

// gaveUp finds the waiters in timedOut that gave up although later requests had been granted: they count as overtaken,
// too.
func (c *check) gaveUp(timedOut, granted []int32, readers bool) {
	settle := c.o.QueueDelay()
	for i, s := range refs.At(c.H.Spans, timedOut) {
		if s.Write == readers {
			continue
		}
		times, last := 0, int32(-1)
		for n := firstAfter(c.View, granted, s.Call); n < len(granted) &&
			segment.Later(c.Holds[granted[n]].From, settle) <= s.Return; n++ {
			if c.Holds[granted[n]].Asked > segment.Later(s.Call, settle) {
				times, last = times+1, granted[n]
			}
		}
		if times <= c.o.MaxBypass {
			continue
		}
		if last, ok := c.overtakenUnexcused(granted, i, s.Return, last); ok {
			c.found.Add(finding.Finding{Rule: passedOver, X: last, Y: i, Start: s.Call, End: s.Return})
		}
	}
}

// waiters are the holds in one mode that were waited for, in the order of their grants.
func waiters(v *bounds.View, holds []int32, readers, tries bool) []int32 {
	other := slices.IndexFunc(holds, func(i int32) bool {
		return !waited(v, &v.Holds[i], readers, tries)
	})
	if other < 0 {
		return holds
	}
	queue := slices.Clone(holds[:other])
	for _, i := range holds[other:] {
		if waited(v, &v.Holds[i], readers, tries) {
			queue = append(queue, i)
		}
	}
	return queue
}

// waited reports whether a hold was waited for in a queue, or granted to a try; an owner that holds the lock already
// does not queue.
func waited(v *bounds.View, h *ledger.Hold, readers, tries bool) bool {
	return h.Reader == readers && !h.Inner && (tries || v.H.Spans[h.Span].Op == history.OpAcquire)
}

// bypass is a hold whose waiter was overtaken, how often, and by which hold last.
type bypass struct{ hold, by, times int32 }

// bypasses counts, for each hold of a queue, the later requests that were granted before it.
func bypasses(v *bounds.View, queue []int32, o given.Options) (found []bypass) {
	settle := o.QueueDelay()
	if !o.Applies(notEnqueued) {
		settle = 0
	}
	latest, suspects := time.Duration(-1), false
	for _, h := range refs.At(v.Holds, queue) {
		suspects = suspects || latest > segment.Later(h.Asked, settle)
		latest = max(latest, h.Asked)
	}
	if !suspects {
		return nil
	}
	calls := make([]time.Duration, len(queue))
	for n, i := range queue {
		calls[n] = v.Holds[i].Asked
	}
	slices.Sort(calls)
	rank := func(t time.Duration) int { return sort.Search(len(calls), func(n int) bool { return calls[n] > t }) }
	tree := make(fenwick, len(queue)+1)
	byEnd := v.Sorted(queue, func(h *ledger.Hold) time.Duration { return h.Until })
	n := 0
	for i, h := range refs.At(v.Holds, queue) {
		for n < len(byEnd) && endedBefore(v, &v.Holds[byEnd[n]], h, o) { // it was certainly granted before
			tree.add(rank(v.Holds[byEnd[n]].Asked))
			n++
		}
		if times := int32(n) - tree.sum(rank(segment.Later(h.Asked, settle))); times > 0 {
			found = append(found, bypass{hold: i, by: overtaker(v, queue, h, o), times: times})
		}
	}
	return found
}

// endedBefore reports whether x had certainly ended when h, of the same class, was granted the lock: not only when the
// owner of h learned of it, if both can be held at once.
func endedBefore(v *bounds.View, x, h *ledger.Hold, o given.Options) bool {
	if h.Reader || v.H.Limit(h.Key) != 0 {
		return segment.Later(x.Until, o.QueueDelay()) <= h.From
	}
	return x.Until <= h.From
}

// overtaker is the last hold that overtook h.
func overtaker(v *bounds.View, queue []int32, h *ledger.Hold, o given.Options) int32 {
	settle := o.QueueDelay()
	n := sort.Search(len(queue), func(n int) bool { return v.Holds[queue[n]].From >= h.From })
	for n--; n >= 0; n-- {
		if x := &v.Holds[queue[n]]; x.Asked > segment.Later(h.Asked, settle) && endedBefore(v, x, h, o) {
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

// orderViolation puts a finding of [property.Order] into words.
func orderViolation(v *bounds.View, f finding.Finding, o given.Options) property.Violation {
	later, most := "later requests", "no waiter is overtaken by a later request"
	if o.MaxBypass > 0 {
		later = "more than " + format.Count(o.MaxBypass, "later request")
		most = "a waiter is overtaken by later requests at most " + format.Count(o.MaxBypass, "time")
	}
	w := finding.Word(v, f, map[int]finding.Rule{
		overtaken: {X: finding.OtherHold, Sentence: most,
			Text: "client $client requested $lock at $call and got it at $return, after " +
				later + " had been granted; the last of them, by client $other, came at $asked"},
		passedOver: {X: finding.OtherHold, Sentence: most,
			Text: "client $client requested $lock at $call and gave up at $return, after " +
				later + " had been granted; the last of them, by client $other, came at $asked"},
		readerFirst: {X: finding.OtherHold, Sentence: "no new reader is granted the lock while a writer waits",
			Text: "client $other requested $lock to read at $asked and got it at $since, although client $client had been " +
				"waiting to write since $call, and waited until $return"},
	}[f.Rule])
	s, x := &v.H.Spans[f.Y], &v.Holds[f.X]
	w.Events = []int{int(s.Invoked), int(v.H.Spans[x.Span].Invoked), v.Granted(x)}
	if f.Rule == passedOver {
		w.Events[2] = int(s.Ended)
	}
	return w
}
