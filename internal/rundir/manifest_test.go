package rundir

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/scenarios"
)

// TestInconclusiveOrUnsafe: an inconclusive run needs no violation, and only the violations of the class are expected.
func TestInconclusiveOrUnsafe(t *testing.T) {
	const text = "name: a\ntopology: {kind: single}\nlock: exec:a\nduration: 1s\nexpect: "
	outcomes := func(v checker.Verdict, class checker.Class, different map[checker.Property]checker.Outcome) checker.Judgement {
		j := checker.Judgement{Verdict: v, Class: class}
		for _, row := range checker.Catalog() {
			r := checker.Result{Property: row.Name, Outcome: checker.Holds}
			switch row.Name {
			case checker.Permits, checker.ReadersWriter, checker.Order, checker.Latch:
				r.Outcome = checker.NotApplicable
			}
			if o, ok := different[row.Name]; ok {
				r.Outcome = o
			}
			j.Results = append(j.Results, r)
		}
		return j
	}
	untested := outcomes(checker.Inconclusive, "", map[checker.Property]checker.Outcome{
		checker.Exercised: checker.Undecided, checker.Damage: checker.NotApplicable})
	overlap := map[checker.Property]checker.Outcome{checker.Exclusion: checker.Violated,
		checker.LeaseExclusion: checker.Violated, checker.Damage: checker.Violated, checker.Linearizable: checker.Violated}
	broken := outcomes(checker.Unsafe, checker.BrokenPromise, overlap)
	overlap[checker.Leak] = checker.Violated
	leaking := outcomes(checker.Unsafe, checker.BrokenPromise, overlap)
	safe := outcomes(checker.Safe, "", nil)
	for _, row := range []struct {
		name, expect string
		j            checker.Judgement
		want         string // in the differences
	}{
		{"untested", "inconclusive or unsafe, broken promise", untested, ""},
		{"broken", "inconclusive or unsafe, broken promise", broken, ""},
		{"leaking", "inconclusive or unsafe, broken promise", leaking, "leak: expected holds or undecided or not-applicable"},
		{"safe", "inconclusive or unsafe, broken promise", safe, "verdict: expected inconclusive or unsafe, got safe"},
		{"untested", "safe or unsafe, broken promise", untested, "exercised: expected holds, got undecided"},
		{"untested", "unsafe, broken promise", untested, "exclusion: expected violated, got holds"},
	} {
		s, err := scenarios.Parse([]byte(text + row.expect))
		if err != nil {
			t.Fatal(err)
		}
		var m Manifest
		m.SetExpected(s)
		got := strings.Join(expect.Unexpected(row.j, m.Expect), "\n")
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s run, %s expected: %q, want %q", row.name, row.expect, got, row.want)
		}
	}
}
