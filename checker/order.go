package checker

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of order.
const (
	overtaken   = iota // granted after too many who came later
	notEnqueued        // acquits: its place in line was not certain yet when the other came
	otherClass         // acquits: readers and writers wait in different lines
)

func orderRules() []string {
	return []string{overtaken: "overtaken", notEnqueued: "not-in-line", otherClass: "other-class"}
}

// checkOrder counts by how many later comers each waiter was overtaken. Only a
// lock that promises an order is judged (Options.Fair): none may be overtaken
// more than Options.MaxBypass times; zero is first come, first served.
//
// Who came first is certain only if the place in line was: a waiter counts as
// in line when Options.InLine has passed since it asked, and only those who
// asked after that can have overtaken it. Who was granted first is the order of
// the holds, which is certain where they do not overlap (the later grant cannot
// have been made inside the earlier hold). Tries do not wait and are not
// counted, nor are semaphores, where a small wish may rightly pass a great one.
//
// By sorting and a Fenwick tree, O(n log n); in linear time where nobody can
// have been overtaken, because everyone in line was granted before whoever came later.
func checkOrder(v *view, o Options) Result {
	found := newFindings(o)
	waited, most := 0, int32(0)
	for key, holds := range v.byKey {
		if v.h.Limit(int32(key)) != 0 {
			continue
		}
		classes := [][]int32{v.waiters(holds, false)}
		if slices.ContainsFunc(holds, func(i int32) bool { return v.holds[i].reader }) {
			classes = append(classes, v.waiters(holds, true))
		}
		if len(classes) > 1 && !o.applies(otherClass) {
			classes = [][]int32{append(slices.Clone(classes[0]), classes[1]...)}
			slices.SortFunc(classes[0], func(a, b int32) int { return cmp.Compare(v.holds[a].from, v.holds[b].from) })
		}
		for _, class := range classes {
			waited += len(class)
			for _, b := range v.bypasses(class, o) {
				most = max(most, b.times)
				if o.Fair && int(b.times) > o.MaxBypass {
					h := &v.holds[b.hold]
					found.add(finding{rule: overtaken, x: b.by, y: b.hold, start: h.asked, end: h.from})
				}
			}
		}
	}
	r := found.result(Order, func(f finding) Violation { return v.orderViolation(f, o) })
	r.Counts = map[string]int64{"waits": int64(waited), "most_overtaken": int64(most)}
	switch {
	case !o.Fair:
		r.Outcome = NotApplicable
		r.Summary = "the lock promises no order; a waiter was overtaken at most " + format.Count(most, "time")
	case waited == 0:
		r.Outcome, r.Summary = NotApplicable, "no client waited for the lock"
	case r.Outcome == Holds:
		r.Summary = "no waiter was overtaken more than " + format.Count(most, "time")
	}
	return r
}

// inLine is the holds of one class that were waited for, by the order of their grants.
func (v *view) waiters(holds []int32, readers bool) []int32 {
	other := slices.IndexFunc(holds, func(i int32) bool {
		return !v.waited(&v.holds[i], readers)
	})
	if other < 0 {
		return holds
	}
	line := slices.Clone(holds[:other])
	for _, i := range holds[other:] {
		if v.waited(&v.holds[i], readers) {
			line = append(line, i)
		}
	}
	return line
}

// waited says that a hold was waited for, in a line; who is inside already is in none.
func (v *view) waited(h *hold, readers bool) bool {
	return h.reader == readers && !h.inner && v.h.Spans[h.span].Op == history.OpAcquire
}

// bypass is a hold whose waiter was overtaken, how often, and by whom last.
type bypass struct{ hold, by, times int32 }

// bypasses counts, for each hold of a line, those who came later and were granted before.
func (v *view) bypasses(line []int32, o Options) (found []bypass) {
	settle := o.queueDelay()
	if !o.applies(notEnqueued) {
		settle = 0
	}
	latest, suspects := time.Duration(-1), false
	for _, i := range line {
		h := &v.holds[i]
		suspects = suspects || latest > later(h.asked, settle)
		latest = max(latest, h.asked)
	}
	if !suspects {
		return nil
	}
	calls := make([]time.Duration, len(line))
	for n, i := range line {
		calls[n] = v.holds[i].asked
	}
	slices.Sort(calls)
	rank := func(t time.Duration) int { return sort.Search(len(calls), func(n int) bool { return calls[n] > t }) }
	tree := make(fenwick, len(line)+1)
	byEnd := v.sorted(line, func(h *hold) time.Duration { return h.until })
	n := 0
	for _, i := range line {
		h := &v.holds[i]
		for n < len(byEnd) && v.holds[byEnd[n]].until <= h.from { // its grant certainly came first
			tree.add(rank(v.holds[byEnd[n]].asked))
			n++
		}
		if times := int32(n) - tree.sum(rank(later(h.asked, settle))); times > 0 {
			found = append(found, bypass{hold: i, by: v.overtaker(line, h, settle), times: times})
		}
	}
	return found
}

// overtaker is the last who overtook h.
func (v *view) overtaker(line []int32, h *hold, settle time.Duration) int32 {
	n := sort.Search(len(line), func(n int) bool { return v.holds[line[n]].from >= h.from })
	for n--; n >= 0; n-- {
		if x := &v.holds[line[n]]; x.asked > later(h.asked, settle) && x.until <= h.from {
			return line[n]
		}
	}
	return line[0]
}

// fenwick counts how many of the numbers added are not greater than another; numbers begin at 1.
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

func (v *view) orderViolation(f finding, o Options) Violation {
	x, y := &v.holds[f.x], &v.holds[f.y]
	key := v.h.Keys[y.key]
	w := Violation{
		Key: key, Clients: []int{v.client(x.span), v.client(y.span)},
		Owners: []string{v.h.Owners[x.owner], v.h.Owners[y.owner]},
		Events: []int{int(v.h.Spans[y.span].Invoked), int(v.h.Spans[x.span].Invoked), v.granted(x)},
	}
	w.Rule = "a waiter is overtaken by later requests at most " + format.Count(o.MaxBypass, "time")
	w.Text = fmt.Sprintf("client %d requested %s at %s and got it at %s, after more than %s; the last of them, by "+
		"client %d, came at %s", w.Clients[1], lockName(key), format.Instant(y.asked), format.Instant(y.from),
		format.Count(o.MaxBypass, "later request"), w.Clients[0], format.Instant(x.asked))
	return w
}
