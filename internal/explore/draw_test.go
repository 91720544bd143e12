package explore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

var errAfterTheEnd = errors.New("a fault after the end")

// oddOnly draws a scenario from odd seeds alone.
func oddOnly(seed uint64) (Drawn, error) {
	if seed%2 == 0 {
		return Drawn{}, fmt.Errorf("seed %d: %w", seed, errAfterTheEnd)
	}
	text := strings.Replace(plan, "name: x", fmt.Sprintf("name: drawn-%d", seed), 1)
	return Drawn{Scenario: text, Name: fmt.Sprintf("drawn-%d --clients 7", seed)}, nil
}

// TestSeedsWithoutAScenario: they are counted and named, and the findings of the other seeds remain.
func TestSeedsWithoutAScenario(t *testing.T) {
	r, err := Explore(t.Context(), pool(t, 2), Options{Draw: oddOnly, First: 20, Seeds: 30, NoVariations: true})
	if err != nil {
		t.Fatal(err)
	}
	// 25, 35 and 45 are unsafe.
	if r.Undrawn != 15 || r.Runs != 15 || r.Unsafe != 3 || r.Covered != 30 || len(r.Findings) != 1 || r.Stopped != "" {
		t.Fatalf("%+v", r)
	}
	if len(r.Refusals) != maxFailures || r.Refusals[0] != (Refusal{20, "seed 20: a fault after the end"}) {
		t.Errorf("%+v", r.Refusals)
	}
	f := r.Findings[0]
	name := fmt.Sprintf("drawn-%d", f.Seed)
	command := fmt.Sprintf("chaos run --scenario %s --clients 7 --backend sim --seed %d", name, f.Seed)
	if f.Name != name || !strings.HasPrefix(f.Command, command) {
		t.Errorf("the finding has name %q and command %q, want %q and %q", f.Name, f.Command, name, command)
	}
	var text strings.Builder
	r.WriteFindings(&text)
	r.WriteStates(&text)
	for _, want := range []string{"15 seeds left out", "seed 20 left out: seed 20: a fault after the end", command} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

// TestNoSeedHasAScenario: the error of the caller is Draw's, soon also with many seeds.
func TestNoSeedHasAScenario(t *testing.T) {
	for _, c := range []struct{ seeds, want int }{{3, 3}, {maxRefused, maxRefused}, {1 << 40, maxRefused}} {
		r, err := Explore(t.Context(), pool(t, 1), Options{
			Draw: func(uint64) (Drawn, error) { return Drawn{}, errAfterTheEnd }, First: 1, Seeds: c.seeds,
		})
		if !errors.Is(err, errAfterTheEnd) || r.Undrawn != c.want || r.Stopped == "" {
			t.Errorf("%d seeds: %v, %+v", c.seeds, err, r)
		}
	}
	// One scenario is enough to continue.
	r, err := Explore(t.Context(), pool(t, 1), Options{First: 3, Seeds: 2 * maxRefused, Draw: func(seed uint64) (Drawn, error) {
		if seed == 3 {
			return oddOnly(seed)
		}
		return Drawn{}, errAfterTheEnd
	}})
	if err != nil || r.Runs != 1 || r.Undrawn != 2*maxRefused-1 {
		t.Errorf("one seed with a scenario: %v, %+v", err, r)
	}
}

// TestErrorHidesNoFinding: an exploration that ends with an error, after seed 12 killed the only worker, returns the
// runs before.
func TestErrorHidesNoFinding(t *testing.T) {
	p := pool(t, 1)
	r, err := Explore(t.Context(), p, Options{Scenario: plan, First: 5, Seeds: 20, Jobs: 1, NoVariations: true,
		Watch: func(Report) { p.command = []string{"/nowhere/at/all"} }})
	if err == nil || r.Runs != 8 || len(r.Findings) != 1 || r.Findings[0].Runs != 2 || r.Stopped != err.Error() {
		t.Errorf("%v, %+v", err, r)
	}
}
