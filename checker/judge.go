package checker

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Judge judges a history by every property (see [Options] for fewer). It never
// panics: a checker that does has decided nothing, and says so in its result.
// h is not changed; several goroutines may judge the same history.
func Judge(h *history.History, o Options) Judgement {
	start := time.Now()
	h = o.withLimits(h)
	j := Judgement{LockKind: o.LockKind, Spans: len(h.Spans), Events: h.Events, Problems: h.Problems}
	specs := o.asked()
	o.Progress.begin(int64(len(specs)+1) * int64(len(h.Spans)))
	var v *view
	var err error
	o.Progress.step("finding the holds", len(h.Spans), func() { v, err = safeView(h, o.LockKind) })
	j.Results = make([]Result, len(specs))
	if err != nil {
		for i, s := range specs {
			j.Results[i] = undecided(s.Name, err)
		}
	} else {
		each(len(specs), func(i int) {
			o.Progress.step(string(specs[i].Name), len(h.Spans), func() { j.Results[i] = specs[i].safely(v, h, o) })
		})
	}
	j.nameProcesses(h)
	j.decide(o)
	j.Took = time.Since(start)
	return j
}

// asked is the rows of the catalogue that are to be judged. Whatever is asked for,
// bite is judged as well: that a property was kept says nothing if nothing tested it.
func (o Options) asked() (specs []Spec) {
	for _, s := range Catalog() {
		if len(o.Only) == 0 || s.Name == Bite || slices.Contains(o.Only, s.Name) {
			specs = append(specs, s)
		}
	}
	return specs
}

// each does do(0) to do(n-1) on as many goroutines as there are processors: the
// properties know nothing of each other, and the view they share stands still.
// The last of the catalogue take longest, and so begin first.
func each(n int, do func(i int)) {
	var next atomic.Int64
	next.Store(int64(n))
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := next.Add(-1); i >= 0; i = next.Add(-1) {
				do(int(i))
			}
		})
	}
	all.Wait()
}

// Result is the result for a property, or nil if it was not judged.
func (j Judgement) Result(p Property) *Result {
	for i := range j.Results {
		if j.Results[i].Property == p {
			return &j.Results[i]
		}
	}
	return nil
}

func undecided(p Property, cause any) Result {
	return Result{Property: p, Outcome: Undecided, Summary: fmt.Sprintf(
		"the checker of %s stopped (%v): this is a defect of the checker, please report it with history.jsonl", p, cause)}
}

func safeView(h *history.History, kind LockKind) (v *view, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("finding the holds: %v", cause)
		}
	}()
	return newViewAs(h, kind), nil
}

// safely judges one property. v may be nil.
func (s Spec) safely(v *view, h *history.History, o Options) (r Result) {
	defer func() {
		if cause := recover(); cause != nil {
			r = undecided(s.Name, cause)
		}
	}()
	if v == nil {
		v = newViewAs(h, o.LockKind)
	}
	return s.check(v, o.forProperty(s.Name))
}

// decide draws the verdict from the results.
func (j *Judgement) decide(o Options) {
	j.Verdict = Safe
	var open, broken []*Result
	for i := range j.Results {
		r := &j.Results[i]
		required := len(o.Require) == 0 || slices.Contains(o.Require, r.Property)
		switch {
		case required && r.Outcome == Violated:
			broken = append(broken, r)
		case r.Outcome == Undecided && (required || r.Property == Bite):
			open = append(open, r)
		case r.Outcome == NotApplicable && slices.Contains(o.Require, r.Property):
			open = append(open, r)
		}
	}
	switch {
	case len(broken) > 0:
		j.Verdict, j.Class, j.Sentence = Unsafe, worstClass(broken), sentence(broken)
	case len(open) > 0:
		j.Verdict, j.Sentence = Inconclusive, fmt.Sprintf("%s could not be decided: %s", open[0].Property, open[0].Summary)
		if open[0].Property == Bite {
			j.Sentence = open[0].Summary
		}
	case j.Spans == 0 || len(j.Results) == 0:
		j.Verdict, j.Sentence = Inconclusive, "nothing was judged: the history has no operations"
	case len(o.Only) > 0:
		j.decideOnly(o)
	default:
		j.Sentence = j.safeSentence()
	}
}

// name puts the names of clients into what was worded with their numbers.
func (j *Judgement) nameProcesses(h *history.History) {
	if len(h.ProcessNames) == 0 {
		return
	}
	for i := range j.Results {
		r := &j.Results[i]
		r.Summary = h.NameProcesses(r.Summary)
		for n := range r.Violations {
			r.Violations[n].Text = h.NameProcesses(r.Violations[n].Text)
		}
	}
}

// decideOnly draws the verdict from the few properties that were asked for, none of
// which is violated. It is not silent about the others, nor about those that had
// nothing to judge.
func (j *Judgement) decideOnly(o Options) {
	var kept, idle []string
	for i := range j.Results {
		r := &j.Results[i]
		switch {
		case !slices.Contains(o.Only, r.Property):
		case r.Outcome == NotApplicable:
			idle = append(idle, string(r.Property))
		default:
			kept = append(kept, string(r.Property))
		}
	}
	if len(kept) == 0 {
		j.Verdict = Inconclusive
		j.Sentence = fmt.Sprintf("nothing was judged: %s does not apply to this history", strings.Join(idle, " or "))
		return
	}
	j.Sentence = fmt.Sprintf("%s; judged by %s alone", j.safeSentence(), strings.Join(kept, ", "))
	if len(idle) > 0 {
		j.Sentence += fmt.Sprintf(" (not applicable: %s)", strings.Join(idle, ", "))
	}
}

// worstClass is what the whole run is blamed for.
func worstClass(broken []*Result) (class Class) {
	for _, r := range broken {
		for _, v := range r.Violations {
			if v.Class == BrokenPromise {
				return BrokenPromise
			}
			class = cmp.Or(class, v.Class)
		}
	}
	return class
}

// sentence tells of the first broken property, which is the gravest, and names the others.
func sentence(broken []*Result) string {
	s := broken[0].Summary
	if len(broken) == 1 {
		return s
	}
	var names []string
	for _, r := range broken[1:] {
		names = append(names, string(r.Property))
	}
	return s + "; also violated: " + strings.Join(names, ", ")
}

func (j *Judgement) safeSentence() string {
	var parts []string
	told := []Property{Exclusion, Permits, Bite, Damage}
	if few := len(j.Results) <= len(told); few { // each has its say
		told = nil
		for i := range j.Results {
			told = append(told, j.Results[i].Property)
		}
	}
	for _, p := range told {
		if r := j.Result(p); r != nil && r.Outcome == Holds {
			parts = append(parts, r.Summary)
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("%s kept every property that was judged", format.Count(j.Spans, "operation"))
	}
	return strings.Join(parts, "; ")
}
