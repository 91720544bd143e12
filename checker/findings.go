package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// finding is a violation before it is put into words: x and y are its spans or holds, y the later. The rule decides
// whether they are holds, touches or spans.
type finding struct {
	rule       int
	x, y       int32
	start, end time.Duration
	note       any // further evidence of the rule
}

// findings counts violations and keeps the worst of them, so that a lock without exclusion does not fill the memory.
type findings struct {
	off   disabledRules
	keep  int
	total int
	kept  []finding
}

func newFindings(o Options) *findings {
	if o.Keep <= 0 {
		return &findings{off: o.off, keep: 100}
	}
	return &findings{off: o.off, keep: o.Keep}
}

func (f *findings) add(n finding) {
	if f.off.has(n.rule) {
		return
	}
	f.total++
	f.kept = append(f.kept, n)
	if len(f.kept) >= 4*f.keep+64 {
		f.prune()
	}
}

// prune keeps the longest findings; of equally long ones the earliest.
func (f *findings) prune() {
	slices.SortStableFunc(f.kept, func(a, b finding) int {
		return cmp.Or(
			cmp.Compare(b.end-b.start, a.end-a.start), cmp.Compare(a.start, b.start),
			cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y), cmp.Compare(a.rule, b.rule))
	})
	f.kept = f.kept[:min(len(f.kept), f.keep)]
}

// result makes a Result of the findings; word makes a violation of one.
func (f *findings) result(p Property, word func(finding) Violation) Result {
	r := Result{Property: p, Outcome: Holds, Total: f.total}
	f.prune()
	for _, n := range f.kept {
		v := word(n)
		v.Start, v.End, v.Severity = n.start, n.end, n.end-n.start
		r.Violations = append(r.Violations, v)
	}
	if f.total > 0 {
		r.Outcome = Violated
		r.Summary = r.Violations[0].Text + andMore(f.total-1)
	}
	return r
}

// andMore counts the violations beside the subject of a summary.
func andMore(n int) string {
	if n < 1 {
		return ""
	}
	return ", and " + format.Count(n, "more violation")
}

// involving is a violation of the owners that made some operations, at the key of the last one.
func (v *view) involving(class Class, spans ...int32) Violation {
	w := Violation{Class: class}
	for i, s := range refsAt(v.h.Spans, spans) {
		w.Key = v.h.Keys[s.Key]
		w.Clients, w.Owners = append(w.Clients, v.client(i)), append(w.Owners, v.h.Owners[s.Owner])
	}
	return w
}
