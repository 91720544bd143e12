package mutants

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/scenarios"
)

// One bug in a script, one in a function and one in a constant are built, explored and judged as the whole table is.
func TestMeasure(t *testing.T) {
	race.SkipLong(t, "it builds three programs")
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(t)
	programs, err := Build(t.Context(), top, t.TempDir(), rows)
	if err != nil {
		t.Fatal(err)
	}
	targets, err := allTargets()
	if err != nil {
		t.Fatal(err)
	}
	m := &Measurer{Targets: targets, Programs: programs, Budget: 20 * time.Second, First: 1, Note: t.Logf}
	for name, want := range map[string]bool{
		"owner-not-compared": true, "minority-suffices": true, "check-interval-of-3-s": false, "": false,
	} {
		r := Row{Kind: "mutex"}
		if i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name }); i >= 0 {
			r = rows[i]
		}
		if !want {
			m.Budget = 3 * time.Second
		}
		got, err := m.Measure(t.Context(), r)
		if err != nil || got.Convicted != want || got.Failed > 0 {
			t.Errorf("%q: %+v, error %v, want convicted %v", name, got, err, want)
		}
	}
	sameRuns(t, m)
}

// sameRuns: violations of the unmodified lock with the same seeds convict nothing, even if eight other runs do not show
// them. It is reported as unexpected.
func sameRuns(t *testing.T, m *Measurer) {
	t.Helper()
	s, err := scenarios.Load("failover")
	if err != nil {
		t.Fatal(err)
	}
	s.Expect.Except = map[string]scenarios.Exception{
		string(checker.Exclusion): {Outcome: string(checker.Holds), Because: "a test"},
	}
	target := Target{Scenario: s.Name, scenario: s}
	of, err := m.open(t.Context(), Row{})
	if err != nil {
		t.Fatal(err)
	}
	defer of.pool.Close()
	m.baseline[target.String()] = func() (map[checker.Property]bool, error) { return nil, nil }
	var out Result
	if err := m.explore(t.Context(), of, target, 1, 4, &out); err != nil || out.Convicted || out.Runs == 0 {
		t.Errorf("without a planted bug: %+v, error %v", out, err)
	}
	found, runs, err := m.Unexpected(t.Context(), target, 4)
	if err != nil || runs != 4 || len(found) == 0 || found[0].Kind.Property != checker.Exclusion {
		t.Errorf("of %d runs without a planted bug: %+v, error %v", runs, found, err)
	}
}

// TestCover: the code of package lock that a worker executes is recorded, and nothing else.
func TestCover(t *testing.T) {
	race.SkipLong(t, "it builds a program")
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	targets, err := allTargets()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Cover(t.Context(), top, t.TempDir(), Targets{"mutex": targets["mutex"][:1]}, 1)
	if err != nil || c.Percent <= 1 || c.Percent >= 100 || c.Scenarios != 1 {
		t.Errorf("%+v, error %v", c, err)
	}
	if !slices.ContainsFunc(c.Unreached, isOfMulti) {
		t.Errorf("a mutex reaches multi-locks: %q is not reached", c.Unreached)
	}
}

func isOfMulti(function string) bool { return strings.HasPrefix(function, "multi.go ") }
