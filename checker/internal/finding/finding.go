// Package finding collects the violations of a property and puts them into words.
package finding

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Finding is a violation before it is put into words: X and Y are its spans or holds, Y the later. The rule decides
// whether they are holds, touches or spans.
type Finding struct {
	Rule       int
	X, Y       int32
	Start, End time.Duration
	Note       any // further evidence of the rule
}

// Findings counts violations and keeps the worst of them, so that a lock without exclusion does not fill the memory.
type Findings struct {
	Off   given.DisabledRules
	keep  int
	Total int
	Kept  []Finding
}

func New(o given.Options) *Findings {
	if o.Keep <= 0 {
		return &Findings{Off: o.Off, keep: 100}
	}
	return &Findings{Off: o.Off, keep: o.Keep}
}

func (f *Findings) Add(n Finding) {
	if f.Off.Has(n.Rule) {
		return
	}
	f.Total++
	f.Kept = append(f.Kept, n)
	if len(f.Kept) >= 4*f.keep+64 {
		f.prune()
	}
}

// prune keeps the longest findings; of equally long ones the earliest.
func (f *Findings) prune() {
	slices.SortStableFunc(f.Kept, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(b.End-b.Start, a.End-a.Start), cmp.Compare(a.Start, b.Start),
			cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y), cmp.Compare(a.Rule, b.Rule))
	})
	f.Kept = f.Kept[:min(len(f.Kept), f.keep)]
}

// Result makes a Result of the findings; word makes a violation of one.
func (f *Findings) Result(p property.Name, word func(Finding) property.Violation) property.Result {
	r := property.Result{Property: p, Outcome: property.Holds, Total: f.Total}
	f.prune()
	for _, n := range f.Kept {
		v := word(n)
		v.Start, v.End, v.Severity = n.Start, n.End, n.End-n.Start
		r.Violations = append(r.Violations, v)
	}
	if f.Total > 0 {
		r.Outcome = property.Violated
		r.Summary = r.Violations[0].Text + AndMore(f.Total-1)
	}
	return r
}

// AndMore counts the violations beside the subject of a summary.
func AndMore(n int) string {
	if n < 1 {
		return ""
	}
	return ", and " + format.Count(n, "more violation")
}

// Involving is a violation of the owners that made some operations, at the key of the last one.
func Involving(v *bounds.View, class property.Class, spans ...int32) property.Violation {
	w := property.Violation{Class: class}
	for i, s := range refs.At(v.H.Spans, spans) {
		w.Key = v.H.Keys[s.Key]
		w.Clients, w.Owners = append(w.Clients, v.Client(i)), append(w.Owners, v.H.Owners[s.Owner])
	}
	return w
}
