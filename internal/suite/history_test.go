package suite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/filelock"
)

// addNight adds a suite of scenarios with these outcomes, each with two seeds, to h.
func addNight(t *testing.T, h *History, day int, outcomes map[string]Outcome) string {
	t.Helper()
	start := time.Date(2026, 11, day, 2, 17, 0, 0, time.UTC)
	s := Suite{Format: Format, Version: "v1", Started: start, Finished: start.Add(time.Minute), Shards: []Shard{{1, 1}}}
	dir := t.TempDir()
	for name, o := range outcomes {
		for number := range 2 {
			r := Row{Format: Format, Scenario: name, Number: number + 1, Backend: "sim", Seed: uint64(100*day + number),
				Expected: "safe", Outcome: o, Verdict: checker.Safe}
			switch o {
			case Differs:
				r.Verdict, r.Run, r.Why = checker.Unsafe, "runs/"+name+"/1", []string{"verdict: expected safe, got unsafe"}
				if err := os.MkdirAll(filepath.Join(dir, r.Run), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, r.Run, "report.html"), []byte("page"), 0o644); err != nil {
					t.Fatal(err)
				}
			case Inconclusive:
				r.Verdict = checker.Inconclusive
			}
			s.Rows = append(s.Rows, r)
		}
	}
	s.sortRows()
	written(t, s, dir)
	if err := h.Add(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func alerts(h History) (all []string) {
	for _, t := range h.Trends() {
		if t.Alert != "" {
			all = append(all, t.Scenario+": "+t.Alert)
		}
	}
	return all
}

// TestFiveNights: a regression on the fourth night is the one alert, on the page too, and survives a new start.
func TestFiveNights(t *testing.T) {
	h := History{Dir: t.TempDir()}
	for day := 1; day <= 3; day++ {
		addNight(t, &h, day, map[string]Outcome{"steady": AsExpected, "regression": AsExpected, "unclear": Inconclusive})
	}
	if got := alerts(h); len(got) > 0 {
		t.Errorf("before the regression: %v", got)
	}
	for day := 4; day <= 5; day++ {
		addNight(t, &h, day, map[string]Outcome{"steady": AsExpected, "regression": Differs, "unclear": Inconclusive})
	}
	again, err := OpenHistory(h.Dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"regression: unsafe since 2026-11-04 (4 seeds), safe before; expected safe: " +
		"verdict: expected safe, got unsafe"}
	if got := alerts(again); !slices.Equal(got, want) {
		t.Errorf("alerts: %q, want %q", got, want)
	}
	var page strings.Builder
	if err := again.Page(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2026-11-05: 2 of 6 runs as expected: 2 different, 2 inconclusive", "<th>2026-11-01<th>2026-11-02",
		`<p class="alert">regression on sim: unsafe since 2026-11-04`, "4 of 10 runs on sim (17 to 69 %)",
		`href="nights/20261104T021700.000Z/runs/regression/1/report.html"`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, page.String())
		}
	}
	if strings.Contains(page.String(), "→") {
		t.Error("nothing but the verdict has changed, and the page says that a lock or an expectation has")
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "nights/20261105T021700.000Z/runs/regression/1/report.html")); err != nil {
		t.Error(err)
	}
}

// TestPageShowsAnotherLock: the page says that a verdict changed because another lock was tested.
func TestPageShowsAnotherLock(t *testing.T) {
	g := grid{}
	g.add("first", []Row{{Scenario: "a", Lock: "reentrant", Expected: "safe"}})
	g.add("second", []Row{{Scenario: "a", Lock: "redisson", Expected: "safe"}, {Scenario: "b", Lock: "fair"}})
	g.add("third", []Row{{Scenario: "a", Lock: "redisson", Expected: "safe"}})
	if len(g.Lines) != 2 || g.Lines[0].Lock() != "reentrant → redisson" || g.Lines[0].Expected() != "safe" ||
		g.Lines[1].Lock() != "fair" {
		t.Errorf("%+v", g.Lines)
	}
}

// TestChanges: a scenario is compared with its last suite before, with the known reasons. Two suites of one day are
// two, and a suite of one backend hides none of another.
func TestChanges(t *testing.T) {
	at := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 30, 0, 0, time.UTC) }
	row := func(scenario, backend string, o Outcome, v checker.Verdict, lock string) Row {
		r := Row{Scenario: scenario, Backend: backend, Outcome: o, Verdict: v, Lock: lock, Expected: "safe"}
		if o == Differs {
			r.Why, r.Repeat = []string{"it broke"}, "chaos run"
		}
		return r
	}
	h := History{Records: []Record{
		{at(1, 2), "v1", row("a", "sim", AsExpected, checker.Safe, "fair")},
		{at(1, 2), "v1", row("b", "sim", Differs, checker.Unsafe, "fair")},
		{at(1, 2), "v1", row("steady", "sim", AsExpected, checker.Safe, "fair")},
		{at(1, 2), "v1", row("gone", "sim", AsExpected, checker.Safe, "fair")},
		{at(1, 3), "v1", row("a", "process", AsExpected, checker.Safe, "fair")},
		{at(2, 2), "v1", row("steady", "sim", AsExpected, checker.Safe, "fair")},
		{at(2, 9), "v2", row("a", "sim", Differs, checker.Unsafe, "redisson")},
		{at(2, 9), "v2", row("b", "sim", AsExpected, checker.Safe, "fair")},
		{at(2, 9), "v2", row("steady", "sim", AsExpected, checker.Safe, "fair")},
		{at(2, 9), "v2", row("first", "sim", Differs, checker.Unsafe, "fair")},
		{at(2, 8), "v1", row("a", "process", Differs, checker.Unsafe, "fair")},
		{at(1, 1), "v1", row("early", "", NotRun, "", "fair")},                  // of an earlier suite without a backend
		{at(2, 2), "v1", row("a", "sim", NotRun, "", "fair")},                   // says nothing of the lock
		{at(2, 2), "v1", row("flaky", "sim", Differs, checker.Unsafe, "fair")},  // the same in both suites
		{at(2, 2), "v1", row("flaky", "sim", AsExpected, checker.Safe, "fair")}, //
		{at(2, 9), "v2", row("flaky", "sim", Differs, checker.Unsafe, "fair")},
		{at(2, 9), "v2", row("flaky", "sim", AsExpected, checker.Safe, "fair")},
		{at(2, 9), "v2", row("late", "", Skipped, "", "fair")}, // of the suite on sim
	}}
	want := []string{
		"new a on process: as expected (safe) → different (unsafe): it broke",
		"new a on sim: as expected (safe) → different (unsafe): it broke; lock: fair → redisson; chaos: v1 → v2",
		"fixed b on sim: different (unsafe) → as expected (safe): chaos: v1 → v2",
	}
	var got []string
	for _, c := range h.Changes() {
		got = append(got, fmt.Sprintf("%s %s on %s: %s → %s: %s", c.Kind, c.Scenario, c.Backend, c.Before, c.After,
			strings.Join(c.Why, "; ")))
	}
	slices.Sort(got[:min(2, len(got))])
	if !slices.Equal(got, want) {
		t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var page strings.Builder
	if err := h.Page(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<th>2026-11-02 02:30<th>2026-11-02 08:30<th>2026-11-02 09:30",
		"Changed since the previous suite", "2026-11-02 09:30: 3 of 8 runs"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// TestAlertNeedsTwoSeeds: one run that differs, and a scenario that never was as expected, are no alert.
func TestAlertNeedsTwoSeeds(t *testing.T) {
	run := func(seed uint64, o Outcome, v checker.Verdict) Record {
		return Record{Row: Row{Seed: seed, Outcome: o, Verdict: v, Expected: "safe"}}
	}
	good, bad := run(1, AsExpected, checker.Safe), run(2, Differs, checker.Unsafe)
	for what, runs := range map[string][]Record{
		"once":          {good, good, bad},
		"the same seed": {good, bad, bad},
		"never good":    {bad, run(3, Differs, checker.Unsafe), run(4, Differs, checker.Unsafe)},
		"good again":    {good, bad, run(3, Differs, checker.Unsafe), good},
		"two kinds":     {good, bad, run(3, Differs, checker.Inconclusive)},
	} {
		if got := alert(runs); got != "" {
			t.Errorf("%s: %s", what, got)
		}
	}
	if alert([]Record{good, bad, run(3, Differs, checker.Unsafe)}) == "" {
		t.Error("two seeds: no alert")
	}
}

// TestHistoryIsAppended: a row is added once; a line without its end is replaced; any other broken line is an error.
func TestHistoryIsAppended(t *testing.T) {
	h := History{Dir: t.TempDir()}
	dir := addNight(t, &h, 1, map[string]Outcome{"a": AsExpected})
	file := filepath.Join(h.Dir, HistoryFile)
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Add(dir); err != nil || len(h.Records) != 2 {
		t.Errorf("added twice: %d records, %v", len(h.Records), err)
	}
	line, _, _ := strings.Cut(string(first), "\n")
	if err := os.WriteFile(file, []byte(line+"\n"+`{"night":"2026-1`), 0o644); err != nil {
		t.Fatal(err)
	}
	torn, err := OpenHistory(h.Dir)
	if err != nil || len(torn.Records) != 1 {
		t.Fatalf("torn: %d records, %v", len(torn.Records), err)
	}
	if err := torn.Add(dir); err != nil || len(torn.Records) != 2 {
		t.Fatalf("the rest of a suite is added: %d records, %v", len(torn.Records), err)
	}
	addNight(t, &torn, 2, map[string]Outcome{"a": AsExpected})
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), string(first)) {
		t.Errorf("the first lines have changed: %v\n%s", err, text)
	}
	if again, err := OpenHistory(h.Dir); err != nil || len(again.Records) != 4 {
		t.Errorf("after the repair: %d records, %v", len(again.Records), err)
	}
	if err := os.WriteFile(file, append([]byte("nonsense\n"), first...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenHistory(h.Dir); err == nil {
		t.Error("a broken line was ignored")
	}
}

// TestHistoryOfTwoPrograms: suites that are added at once are all there, each once, and the page has them all.
func TestHistoryOfTwoPrograms(t *testing.T) {
	const programs = 8
	dir := t.TempDir()
	var suites []string
	for day := 1; day <= programs; day++ {
		suites = append(suites, addNight(t, &History{Dir: t.TempDir()}, day, map[string]Outcome{"a": AsExpected, "b": Differs}))
	}
	var all sync.WaitGroup
	for _, from := range suites {
		all.Go(func() {
			lock, err := LockHistory(t.Context(), dir, func() {})
			if err != nil {
				t.Error(err)
				return
			}
			defer lock.Close()
			h, err := OpenHistory(dir)
			if err = errors.Join(err, h.Add(from), h.WritePage()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	h, err := OpenHistory(dir)
	if err != nil || len(h.Records) != 4*programs {
		t.Errorf("%d records, want %d: %v", len(h.Records), 4*programs, err)
	}
	page, err := os.ReadFile(filepath.Join(dir, PageFile))
	if err != nil || strings.Count(string(page), "<th>2026-11-") != programs {
		t.Errorf("the page has not %d nights: %v", programs, err)
	}
}

// TestLockedHistory: while one program has the history, no other one gets it.
func TestLockedHistory(t *testing.T) {
	dir := t.TempDir()
	lock, err := LockHistory(t.Context(), dir, func() { t.Error("it waits for nothing") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := LockHistory(ctx, dir, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was interrupted: %v", err)
	}
	other, err := os.Open(filepath.Join(dir, HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if locked, err := filelock.Try(other); locked || err != nil {
		t.Errorf("locked twice: %t, %v", locked, err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := filelock.Wait(other); err != nil { // until the interrupted wait has closed its file
		t.Errorf("not free after its end: %v", err)
	}
}

// TestWilson: of 0 in n runs the upper end is z²/(n+z²), and the interval is symmetric.
func TestWilson(t *testing.T) {
	for _, test := range []struct {
		k, n      int
		low, high float64
	}{{0, 0, 0, 1}, {0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634}, {1, 30, 0.0059, 0.1667}} {
		low, high := wilson(test.k, test.n)
		if math.Abs(low-test.low) > 5e-4 || math.Abs(high-test.high) > 5e-4 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", test.k, test.n, low, high, test.low, test.high)
		}
	}
}
