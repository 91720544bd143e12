package mutants

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// One bug in a script, one in a function and one in a constant are built, explored and judged as the whole table is.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds three programs")
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(t)
	programs, err := Build(t.Context(), top, t.TempDir(), rows)
	if err != nil {
		t.Fatal(err)
	}
	targets, err := AllTargets()
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
}
