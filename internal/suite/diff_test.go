package suite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/checker"
)

// rowsOf are the rows of one scenario: a letter each, safe as expected (s), unsafe and not expected (u), inconclusive
// (i), skipped (-).
func rowsOf(scenario, letters string) (rows []Row) {
	kinds := map[rune]Row{
		's': {Outcome: AsExpected, Verdict: checker.Safe}, 'u': {Outcome: Differs, Verdict: checker.Unsafe},
		'i': {Outcome: Inconclusive, Verdict: checker.Inconclusive}, 'b': {Outcome: Broken}, '-': {Outcome: Skipped},
	}
	for i, letter := range letters {
		r := kinds[letter]
		r.Scenario, r.Backend, r.Number = scenario, "sim", i+1
		rows = append(rows, r)
	}
	return rows
}

func TestDiff(t *testing.T) {
	for _, tt := range []struct {
		before, after string
		kind          ChangeKind // "": no change
		worse         bool
	}{
		{"s", "s", "", false}, {"ss", "s", "", false}, {"u", "u", "", false}, {"-", "-", "", false}, {"i", "s", "", false},
		{"s", "u", NewFailure, true}, {"i", "u", NewFailure, true}, {"s", "b", NewFailure, true},
		{"u", "s", Fixed, false}, {"u", "b", Changed, true}, {"s", "i", Open, false}, {"u", "i", Open, false},
		{"ss", "su", Flaky, true}, {"su", "ss", Flaky, false}, {"su", "uu", Flaky, false},
		{"", "s", Added, false}, {"", "u", Added, true}, {"-", "u", Added, true}, {"s", "", Removed, false}, {"s", "-", Removed, false},
	} {
		got := Diff(Suite{Rows: rowsOf("x", tt.before)}, Suite{Rows: rowsOf("x", tt.after)})
		var kind ChangeKind
		worse := Worse(got)
		if len(got) > 0 {
			kind = got[0].Kind
		}
		if len(got) > 1 || kind != tt.kind || worse != tt.worse {
			t.Errorf("%q, then %q: %+v; want %q, worse %v", tt.before, tt.after, got, tt.kind, tt.worse)
		}
	}
}

// TestDiffOrder: the most important row comes first, and names that are markup stay text.
func TestDiffOrder(t *testing.T) {
	before := Suite{Rows: append(append(rowsOf("fixed", "u"), rowsOf("new <b>|", "s")...), rowsOf("gone", "s")...)}
	after := Suite{Rows: append(append(rowsOf("fixed", "s"), rowsOf("new <b>|", "su")...), rowsOf("gone", "-")...)}
	after.Rows[2].Why, after.Rows[2].Repeat = []string{"a|b"}, "chaos run --scenario new"
	changes := Diff(before, after)
	var names []string
	for _, c := range changes {
		names = append(names, string(c.Kind)+" "+c.Scenario)
	}
	if diff := cmp.Diff([]string{"flaky new <b>|", "fixed fixed", "removed gone"}, names); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	var b strings.Builder
	if err := WriteDiff(&b, changes); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 5 || strings.Contains(lines[2], "<b>") || strings.Count(strings.ReplaceAll(lines[2], `\|`, ""), "|") != 7 ||
		!strings.Contains(lines[2], "1 of 2 as expected (safe), 1 of 2 different (unsafe)") ||
		!strings.Contains(lines[4], "| as expected (safe) | not run |") {
		t.Errorf("text:\n%s", b.String())
	}
}
