package suite

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
)

// ChangeKind is how a scenario differs between two suites.
type ChangeKind string

// The kinds, the most important first.
const (
	NewFailure ChangeKind = "new"       // as expected before, and not now
	Flaky      ChangeKind = "flaky"     // as expected with some seeds and not with others, in one of the suites
	Changed    ChangeKind = "changed"   // not as expected in either, in another way
	Open       ChangeKind = "undecided" // decided before, and not now
	Fixed      ChangeKind = "fixed"     // not as expected before, and as expected now
	Added      ChangeKind = "added"     // only in the second suite
	Removed    ChangeKind = "removed"   // only in the first suite
)

func changeKinds() []ChangeKind {
	return []ChangeKind{NewFailure, Flaky, Changed, Open, Fixed, Added, Removed}
}

// Change is a scenario and a backend whose outcome differs.
type Change struct {
	Scenario string     `json:"scenario"`
	Backend  string     `json:"backend"`
	Kind     ChangeKind `json:"kind"`
	Before   string     `json:"before,omitempty"` // outcomes and verdicts; empty: not run in the first suite
	After    string     `json:"after,omitempty"`  // empty: not run in the second suite
	Worse    bool       `json:"worse"`
	Why      []string   `json:"why,omitempty"`    // of the first row of the second suite that is not as expected
	Repeat   string     `json:"repeat,omitempty"` // the command that repeats it
}

// Diff compares suite b with the earlier suite a: a change for each scenario and backend that differs, the most
// important first. Rows that were skipped or not run are left out, because nothing is known of the lock.
func Diff(a, b Suite) []Change {
	known := func(s Suite) []Row { return slices.DeleteFunc(slices.Clone(s.Rows), Row.untested) }
	self := func(r Row) Row { return r }
	_, before := grouped(known(a), self)
	_, after := grouped(known(b), self)
	names, _ := grouped(slices.Concat(a.Rows, b.Rows), self)
	var all []Change
	for _, n := range names {
		if c, differs := compareRows(before[n], after[n]); differs {
			c.Scenario, c.Backend = n.scenario, n.backend
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(x, y Change) int {
		return cmp.Or(cmp.Compare(slices.Index(changeKinds(), x.Kind), slices.Index(changeKinds(), y.Kind)),
			cmp.Compare(x.Scenario, y.Scenario))
	})
	return all
}

// untested reports whether nothing is known of the lock.
func (r Row) untested() bool { return r.Outcome == Skipped || r.Outcome == NotRun }

type name struct{ scenario, backend string }

// grouped are the rows of each scenario and backend, and these in the order of their first row.
func grouped[R any](rows []R, rowOf func(R) Row) (order []name, of map[name][]R) {
	of = map[name][]R{}
	for _, r := range rows {
		n := name{rowOf(r).Scenario, rowOf(r).Backend}
		if of[n] == nil {
			order = append(order, n)
		}
		of[n] = append(of[n], r)
	}
	return order, of
}

// state is the joint result of the rows of one scenario.
type state struct{ good, bad, open bool }

func stateOf(rows []Row) (s state) {
	for _, r := range rows {
		switch r.Outcome {
		case AsExpected:
			s.good = true
		case Differs, Broken:
			s.bad = true
		default:
			s.open = true
		}
	}
	return s
}

func (s state) flaky() bool { return s.good && s.bad }

// compareRows compares the rows of one scenario; differs is false if they say the same.
func compareRows(before, after []Row) (c Change, differs bool) {
	a, b := stateOf(before), stateOf(after)
	c.Before, c.After = outcomesText(before), outcomesText(after)
	switch {
	case len(before) == 0 && len(after) == 0:
		return c, false
	case len(before) == 0:
		c.Kind, c.Worse = Added, b.bad
	case len(after) == 0:
		c.Kind = Removed
	case a.flaky() || b.flaky():
		c.Kind, c.Worse = Flaky, b.bad && !a.bad
	case !a.bad && b.bad:
		c.Kind, c.Worse = NewFailure, true
	case a.bad && b.bad && c.Before != c.After:
		c.Kind, c.Worse = Changed, true
	case !b.good && !b.bad && (a.good || a.bad):
		c.Kind = Open
	case a.bad && b.good:
		c.Kind = Fixed
	default:
		return c, false
	}
	if i := slices.IndexFunc(after, func(r Row) bool { return r.Outcome != AsExpected }); i >= 0 {
		c.Why, c.Repeat = after[i].Why, after[i].Repeat
	}
	return c, true
}

// outcomesText has each outcome and verdict of some rows once, with the number of rows.
func outcomesText(rows []Row) string {
	counts := map[string]int{}
	var order []string
	for _, r := range rows {
		text := r.Outcome.text() + " (" + r.Actual() + ")"
		if counts[text] == 0 {
			order = append(order, text)
		}
		counts[text]++
	}
	slices.Sort(order)
	for i, text := range order {
		if len(rows) > 1 {
			order[i] = fmt.Sprintf("%d of %d %s", counts[text], len(rows), text)
		}
	}
	return strings.Join(order, ", ")
}

// Worse reports whether one of the changes is worse.
func Worse(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Worse })
}

// WriteDiff writes changes as Markdown.
func WriteDiff(w io.Writer, changes []Change) error {
	var b strings.Builder
	if len(changes) == 0 {
		b.WriteString("No scenario differs.\n")
	} else {
		b.WriteString("| change | scenario | before | now | why | run it again |\n| --- | --- | --- | --- | --- | --- |\n")
	}
	for _, c := range changes {
		kind := string(c.Kind)
		if c.Worse {
			kind = "**" + kind + "**"
		}
		repeat := ""
		if c.Repeat != "" {
			repeat = "<code>" + format.Markdown(c.Repeat) + "</code>"
		}
		fmt.Fprintf(&b, "| %s | %s on %s | %s | %s | %s | %s |\n", kind, format.Markdown(c.Scenario), c.Backend,
			format.Markdown(cmp.Or(c.Before, "not run")), format.Markdown(cmp.Or(c.After, "not run")),
			format.Markdown(strings.Join(c.Why, "; ")), repeat)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
