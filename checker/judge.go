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

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/servers"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Judge judges a history by every property, or by the properties of [Options]. It does not panic: if a checker does,
// its property is undecided, and the result says so. h is not changed; several goroutines may judge the same history.
func Judge(h *history.History, o property.Options) Judgement {
	return judge(h, given.Options{Options: o})
}

func judge(h *history.History, o given.Options) Judgement {
	start := time.Now()
	h = o.WithLimits(h)
	h, o.Values = servers.Readable(o, h), h.Samples
	j := judgementOf(o, h)
	j.Spans, j.Samples = len(h.Spans), len(h.Samples)
	specs := asked(o)
	o.Progress.Begin(int64(len(specs)+1) * int64(len(h.Spans)))
	var v *bounds.View
	var err error
	o.Progress.Step("finding the holds", len(h.Spans), func() { v, err = safeView(h, o) })
	j.Results = make([]property.Result, len(specs))
	if err != nil {
		for i, s := range specs {
			j.Results[i] = undecided(s.Name, err)
		}
	} else {
		each(len(specs), func(i int) {
			o.Progress.Step(string(specs[i].Name), len(h.Spans), func() { j.Results[i] = specs[i].safely(v, o) })
		})
	}
	j.Thresholds = testThresholds(h, o)
	j.eachText(h.NameProcesses) // in place of numbers of clients
	j.decide(o)
	j.onOneLine()
	j.Took = time.Since(start)
	return j
}

// asked are the properties to judge. Exercised is always among them: that a property was not violated means nothing if
// nothing tested it.
func asked(o given.Options) (specs []Spec) {
	for _, s := range Catalog() {
		if len(o.Only) == 0 || s.Name == property.Exercised || slices.Contains(o.Only, s.Name) {
			specs = append(specs, s)
		}
	}
	return specs
}

// each calls do(0) to do(n-1) on as many goroutines as there are processors: the properties are independent, and the
// view that they share does not change. The last of the catalog take longest and begin first.
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

// Result is the result for a property; nil if it was not judged.
func (j Judgement) Result(p property.Name) *property.Result {
	for i := range j.Results {
		if j.Results[i].Property == p {
			return &j.Results[i]
		}
	}
	return nil
}

func undecided(p property.Name, cause any) property.Result {
	return property.Result{Property: p, Outcome: property.Undecided, Summary: fmt.Sprintf(
		"the checker of %s stopped (%v): this is a defect of the checker, please report it with history.jsonl", p, cause)}
}

// judgementOf is an empty judgement of h.
func judgementOf(o given.Options, h *history.History) Judgement {
	return Judgement{LockKind: o.Kind(), ReportDelay: o.ReportDelay, MayBeDown: o.MayBeDown, Events: h.Events,
		Problems: h.Problems}
}

// HoldOptions are the options with which [FindHolds] finds the holds that were judged.
func (j Judgement) HoldOptions() property.Options {
	return property.Options{LockKind: j.LockKind, ReportDelay: j.ReportDelay, MayBeDown: j.MayBeDown}
}

func safeView(h *history.History, o given.Options) (v *bounds.View, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("finding the holds: %v", cause)
		}
	}()
	return bounds.New(h, o), nil
}

// safely judges one property.
func (s Spec) safely(v *bounds.View, o given.Options) (r property.Result) {
	defer func() {
		if cause := recover(); cause != nil {
			r = undecided(s.Name, cause)
		}
	}()
	return s.check(v, o.ForProperty(s.Name))
}

// decide derives the verdict from the results.
func (j *Judgement) decide(o given.Options) {
	j.Verdict = Safe
	var open, broken []*property.Result
	for _, r := range refs.All(j.Results) {
		required := len(o.Require) == 0 || slices.Contains(o.Require, r.Property)
		switch {
		case required && r.Outcome == property.Violated:
			broken = append(broken, r)
		case r.Outcome == property.Undecided && (required || r.Property == property.Exercised):
			open = append(open, r)
		case r.Outcome == property.NotApplicable && slices.Contains(o.Require, r.Property):
			open = append(open, r)
		}
	}
	switch {
	case len(broken) > 0:
		j.Verdict, j.Class = Unsafe, worstClass(broken)
		j.Sentence = j.sentence(broken)
	case len(open) > 0:
		j.Verdict, j.Sentence = Inconclusive, fmt.Sprintf("%s could not be decided: %s", open[0].Property, open[0].Summary)
		if open[0].Property == property.Exercised {
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

// eachText changes the text of each result and violation.
func (j *Judgement) eachText(change func(string) string) {
	for _, r := range refs.All(j.Results) {
		r.Summary = change(r.Summary)
		for _, w := range refs.All(r.Violations) {
			w.Text = change(w.Text)
		}
	}
}

// onOneLine makes each text one line without control characters: names in it come from others, and must not look like
// a verdict of their own.
func (j *Judgement) onOneLine() {
	j.Sentence = format.Line(j.Sentence)
	j.eachText(format.Line)
	j.Problems = slices.Clone(j.Problems)
	for _, p := range refs.All(j.Problems) {
		p.Text = format.Line(p.Text)
	}
}

// decideOnly derives the verdict from the requested properties, none of which is violated. The sentence names them, and
// the ones that were not applicable.
func (j *Judgement) decideOnly(o given.Options) {
	var kept, idle []string
	for _, r := range refs.All(j.Results) {
		switch {
		case !slices.Contains(o.Only, r.Property):
		case r.Outcome == property.NotApplicable:
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

// worstClass is the class of the whole run.
func worstClass(broken []*property.Result) (class property.Class) {
	for _, r := range broken {
		for _, v := range r.Violations {
			if v.Class == property.BrokenPromise {
				return property.BrokenPromise
			}
			class = cmp.Or(class, v.Class)
		}
	}
	return class
}

// Decisive are the violations that set the class of the verdict, in the order of the properties: a cause of the verdict
// is a cause of one of them. [Linearizable] restates findings of others: where only its violations have the class,
// violations without a class come before them. If the verdict has no class, all are decisive.
func (j *Judgement) Decisive() []*property.Violation {
	var exact, others []*property.Violation
	for _, r := range refs.All(j.Results) {
		for _, v := range refs.All(r.Violations) {
			switch of := j.Class == "" || v.Class == j.Class; {
			case r.Outcome != property.Violated:
			case of && r.Property != property.Linearizable:
				exact = append(exact, v)
			case of || v.Class == "":
				others = append(others, v)
			}
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return others
}

// sentence is about the first decisive violation of the required properties that are violated, and names these.
func (j *Judgement) sentence(broken []*property.Result) string {
	decisive := j.Decisive()
	first, worst := 0, 0
	for i, r := range slices.Backward(broken) {
		for n := range slices.Backward(r.Violations) {
			if slices.Contains(decisive, &r.Violations[n]) {
				first, worst = i, n
			}
		}
	}
	s := broken[first].Violations[worst].Text + finding.AndMore(broken[first].Total-1)
	if worst == 0 {
		s = broken[first].Summary // which may add something
	}
	broken = slices.Delete(slices.Clone(broken), first, first+1)
	if len(broken) == 0 {
		return s
	}
	return s + "; also violated: " + strings.Join(format.Texts(broken, func(r *property.Result) string {
		return string(r.Property)
	}), ", ")
}

func (j *Judgement) safeSentence() string {
	var parts []string
	headline := []property.Name{property.Exclusion, property.Permits, property.Exercised, property.Damage}
	if few := len(j.Results) <= len(headline); few { // all of them
		headline = nil
		for i := range j.Results {
			headline = append(headline, j.Results[i].Property)
		}
	}
	for _, p := range headline {
		if r := j.Result(p); r != nil && r.Outcome == property.Holds {
			parts = append(parts, r.Summary)
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("%s kept every property that was judged", format.Count(j.Spans, "operation"))
	}
	return strings.Join(parts, "; ")
}
