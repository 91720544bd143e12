package suite

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
)

// asChaos makes this test binary the chaos that a suite starts.
const asChaos = "LOCKCHAOS_TEST_SUITE"

func TestMain(m *testing.M) {
	if os.Getenv(asChaos) != "" {
		os.Exit(fakeRun(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// fakeRun is a chaos run whose verdict is in the name of the scenario. A name with "later" is inconclusive with its
// first seed.
func fakeRun(args []string) int {
	f := flag.NewFlagSet("run", flag.ExitOnError)
	name, backend := f.String("scenario", "", ""), f.String("backend", "", "")
	seed, out := f.Uint64("seed", 0, ""), f.String("out", "", "")
	_ = f.Parse(args[1:])
	kind, _, _ := strings.Cut(*name, "-")
	code := map[string]int{"broken": 70, "unable": 69}[kind]
	fmt.Println("output of", *name)
	if kind == "endless" {
		select {}
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "chaos: no such luck")
		return code
	}
	if strings.Contains(*name, "later") && *seed < 10 {
		kind = "inconclusive"
	}
	dir, err := rundir.Create(*out, *name, *seed, time.Now())
	if err != nil {
		return 71
	}
	m := rundir.Manifest{
		Format: rundir.Format, ID: dir.ID, State: rundir.Complete, Scenario: *name, Backend: *backend, Lock: "mutex",
		Seed: *seed, Expect: map[string]string{"verdict": "safe"}, Versions: map[string]string{"chaos": "v1"}, Repeat: "chaos run again",
	}
	exercised := checker.Holds
	if kind == "inconclusive" {
		exercised = checker.Violated
	}
	j := checker.Judgement{
		Verdict: checker.Verdict(kind), Results: []checker.Result{{Property: checker.Exercised, Outcome: exercised}},
	}
	if strings.Contains(*name, "slow") {
		j.Thresholds = []checker.Comparison{{Name: "acquire.p99", Expected: "< 1 s", Actual: "2 s"}}
		code = 3
	}
	if dir.WriteManifest(m) != nil || dir.WriteVerdict(j) != nil {
		return 72
	}
	return max(code, map[string]int{"safe": 0, "unsafe": 1, "inconclusive": 2}[kind])
}

// options are those of a suite of scenarios with these names.
func options(t *testing.T, names ...string) Options {
	t.Helper()
	t.Setenv(asChaos, "1")
	o := Options{Command: []string{os.Args[0]}, Backend: "sim", Version: "v1", Shard: Shard{1, 1}, Out: t.TempDir(), Jobs: 2}
	for _, name := range names {
		s := scenarios.Scenario{Name: name, Lock: "mutex", Expect: map[string]string{"verdict": "safe"}, Duration: time.Second}
		o.Scenarios = append(o.Scenarios, Scenario{Arg: name, Scenario: s})
	}
	return o
}

func run(t *testing.T, o Options) Suite {
	t.Helper()
	s, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// outcomes are those of the rows by scenario and number.
func outcomes(s Suite) map[string]Outcome {
	all := map[string]Outcome{}
	for _, r := range s.Rows {
		all[fmt.Sprintf("%s %d", r.Scenario, r.Number)] = r.Outcome
	}
	return all
}

// TestOutcomes: each row has its outcome, and only the runs that are not as expected are kept.
func TestOutcomes(t *testing.T) {
	o := options(t, "safe", "unsafe", "inconclusive", "broken", "unable", "safe-skipped", "safe-slow")
	o.Missing = func(s Scenario) string { return map[string]string{"safe-skipped": "no servers"}[s.Name] }
	s := run(t, o)
	want := map[string]Outcome{"safe 1": AsExpected, "unsafe 1": Differs, "inconclusive 1": Inconclusive,
		"broken 1": Broken, "unable 1": Unable, "safe-skipped 1": Skipped, "safe-slow 1": Differs}
	if diff := cmp.Diff(want, outcomes(s)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	for _, r := range s.Rows {
		kept := r.Outcome == Differs || r.Outcome == Inconclusive
		if (r.Run != "") != kept {
			t.Errorf("%s, %s: run directory %q", r.Scenario, r.Outcome, r.Run)
		}
		if !kept {
			continue
		}
		text, err := os.ReadFile(filepath.Join(o.Out, r.Run, outputFile))
		if err != nil || string(text) != "output of "+r.Scenario+"\n" {
			t.Errorf("%s: output %q, %v", r.Scenario, text, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(o.Out, RunsDir, ".run-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if n := slices.IndexFunc(s.Rows, func(r Row) bool { return r.Outcome == Broken }); n < 0 ||
		!slices.Equal(s.Rows[n].Why, []string{"exit code 70: chaos: no such luck"}) {
		t.Errorf("why it broke: %v", s.Rows[n].Why)
	}
}

// TestExitCode: the most important outcome decides; quarantine and skipped rows do not.
func TestExitCode(t *testing.T) {
	row := func(o Outcome) Row { return Row{Outcome: o} }
	for _, test := range []struct {
		rows []Row
		want int
	}{
		{[]Row{row(AsExpected), row(Skipped)}, 0},
		{[]Row{row(AsExpected), row(Inconclusive)}, 2},
		{[]Row{row(NotRun)}, 2},
		{[]Row{row(Inconclusive), row(Unable)}, 69},
		{[]Row{row(Broken), row(Unable)}, 70},
		{[]Row{row(Broken), row(Differs), row(Inconclusive)}, 1},
		{[]Row{row(AsExpected), {Outcome: Differs, Quarantine: "team until 2026-12-31"}}, 0},
	} {
		if got := (Suite{Rows: test.rows}).ExitCode(); got != test.want {
			t.Errorf("%v: exit code %d, want %d", test.rows, got, test.want)
		}
	}
}

// TestRetry: only what is inconclusive is repeated, with a seed that no other row has.
func TestRetry(t *testing.T) {
	o := options(t, "safe-later", "unsafe-later", "unsafe", "inconclusive")
	o.Seed, o.Repeat, o.Retry = 8, 2, 1
	s := run(t, o)
	want := map[string]Outcome{"safe-later 1": AsExpected, "safe-later 2": AsExpected, "unsafe-later 1": Differs,
		"unsafe-later 2": Differs, "unsafe 1": Differs, "unsafe 2": Differs, "inconclusive 1": Inconclusive,
		"inconclusive 2": Inconclusive}
	if diff := cmp.Diff(want, outcomes(s)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	for _, r := range s.Rows {
		attempts := 1
		if r.Scenario == "unsafe" {
			attempts = 0
		}
		if len(r.Attempts) != attempts || r.Seed != uint64(8+r.Number-1+2*attempts) {
			t.Errorf("%s %d: %d attempts before the one with seed %d", r.Scenario, r.Number, len(r.Attempts), r.Seed)
		}
	}
}

// TestStops: no run starts after the budget, an endless run is ended, and an interrupted suite says what did not run.
func TestStops(t *testing.T) {
	o := options(t, "safe", "safe-too")
	o.Budget = time.Nanosecond
	if s := run(t, o); s.Count(NotRun) != 2 || s.ExitCode() != 2 {
		t.Errorf("after the budget: %v, exit code %d", outcomes(s), s.ExitCode())
	}
	o = options(t, "endless")
	o.Limit, o.Scenarios[0].Duration = time.Nanosecond, 0
	if s := run(t, o); s.Count(Broken) != 1 {
		t.Errorf("an endless run: %v", outcomes(s))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s, err := Run(ctx, options(t, "safe"))
	if !errors.Is(err, ErrInterrupted) || s.Count(NotRun) != 1 {
		t.Errorf("interrupted: %v, %v", outcomes(s), err)
	}
}

// TestProgress: a suite that is running can be shown, and one that has ended leaves no progress.
func TestProgress(t *testing.T) {
	o := options(t, "safe-a", "safe-b", "unsafe-c")
	o.Jobs = 1
	var seen []Progress
	o.Watch = func(Suite) {
		if p, err := ReadProgress(os.DirFS(o.Out)); err == nil {
			seen = append(seen, p)
		}
	}
	s := run(t, o)
	if len(seen) != 3 || seen[0].Total != 3 || len(seen[0].Suite.Rows) != 0 || len(seen[1].Suite.Rows) != 1 {
		t.Errorf("progress at the start, and after the first row: %+v", seen)
	}
	if err := s.Write(o.Out); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadProgress(os.DirFS(o.Out)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
}

// TestMerge: four shards are one suite, however often one of them is merged.
func TestMerge(t *testing.T) {
	names := []string{"safe", "unsafe", "inconclusive", "safe-a", "safe-b", "unsafe-c", "safe-d"}
	whole := options(t, names...)
	whole.Repeat = 3
	want := run(t, whole)
	var dirs []string
	for i := range 4 {
		o := options(t, names...)
		o.Repeat, o.Shard = 3, Shard{i + 1, 4}
		if err := run(t, o).Write(o.Out); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, o.Out)
	}
	out := t.TempDir()
	got, err := Merge(append(dirs, dirs[2]), out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Suite{}, "Shards", "Started", "Finished"),
		cmpopts.IgnoreFields(Row{}, "Seconds", "Run")); diff != "" {
		t.Errorf("merged (-one suite +four shards):\n%s", diff)
	}
	for _, r := range got.Notable() {
		if _, err := rundir.Open(filepath.Join(out, r.Run)); err != nil {
			t.Errorf("%s: %v", r.Scenario, err)
		}
	}
	if got.ExitCode() != 1 || len(got.Shards) != 4 {
		t.Errorf("exit code %d, shards %v", got.ExitCode(), got.Shards)
	}
	part, err := Merge([]string{dirs[0], dirs[3]}, t.TempDir())
	if err != nil || !slices.Equal(part.Notes, []string{"shard 2/4 is missing", "shard 3/4 is missing"}) {
		t.Errorf("two of four shards: notes %q, %v", part.Notes, err)
	}
	if part.Rows = nil; part.ExitCode() != 2 {
		t.Errorf("two of four shards: exit code %d", part.ExitCode())
	}
}

// TestMergeOneShard: one shard of several is not the whole suite.
func TestMergeOneShard(t *testing.T) {
	o := options(t, "safe", "safe-a")
	o.Shard = Shard{2, 2}
	if err := run(t, o).Write(o.Out); err != nil {
		t.Fatal(err)
	}
	s, err := Merge([]string{o.Out}, t.TempDir())
	if err != nil || s.ExitCode() != 2 || !slices.Equal(s.Notes, []string{"shard 1/2 is missing"}) {
		t.Errorf("exit code %d, notes %q, %v", s.ExitCode(), s.Notes, err)
	}
}

// TestMergeKilledShard: the rows of a shard that was killed count, and the shard is missing until it has run again. The
// results of an earlier suite in its directory are not taken for its own.
func TestMergeKilledShard(t *testing.T) {
	shard := func(i int) Options {
		o := options(t, "safe", "safe-a", "unsafe", "unsafe-b")
		o.Shard, o.Jobs = Shard{i, 2}, 1
		return o
	}
	first, killed := shard(1), shard(2)
	if err := run(t, first).Write(first.Out); err != nil {
		t.Fatal(err)
	}
	earlier := killed
	earlier.Seed = 7
	if err := run(t, earlier).Write(killed.Out); err != nil {
		t.Fatal(err)
	}
	run(t, killed) // its results are never written
	rows := 0
	if p, err := ReadProgress(os.DirFS(killed.Out)); err == nil {
		rows = len(p.Suite.Rows)
	}
	s, err := Merge([]string{first.Out, killed.Out}, t.TempDir())
	note := fmt.Sprintf("shard 2/2 did not end: %d of 2 rows are in %s", rows, killed.Out)
	if err != nil || rows == 0 || len(s.Rows) != 2+rows || s.Finished.Before(s.Started) || !slices.Equal(s.Missing, []Shard{{2, 2}}) ||
		!slices.Equal(s.Notes, []string{note, "shard 2/2 is missing"}) {
		t.Errorf("%d rows, missing %v, notes %q, %v", len(s.Rows), s.Missing, s.Notes, err)
	}
	if s.Rows = nil; s.ExitCode() != 2 {
		t.Errorf("exit code %d", s.ExitCode())
	}
	again := shard(2)
	if err := run(t, again).Write(again.Out); err != nil {
		t.Fatal(err)
	}
	s, err = Merge([]string{first.Out, killed.Out, again.Out}, t.TempDir())
	if err != nil || len(s.Rows) != 4 || s.Missing != nil || s.Notes != nil {
		t.Errorf("the shard has run again: %d rows, missing %v, notes %q, %v", len(s.Rows), s.Missing, s.Notes, err)
	}
}

// TestFullDisk: what cannot be replaced stays as it was, and a run that cannot be moved is kept where it is.
func TestFullDisk(t *testing.T) {
	o := options(t, "unsafe")
	if err := os.MkdirAll(filepath.Join(o.Out, RunsDir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.Out, RunsDir, "unsafe"), nil, 0o644); err != nil { // where its folder would be
		t.Fatal(err)
	}
	s := run(t, o)
	if _, err := rundir.Open(filepath.Join(o.Out, s.Rows[0].Run)); err != nil || s.Rows[0].Run == "" {
		t.Errorf("run %q: %v", s.Rows[0].Run, err)
	}
	if err := s.Write(o.Out); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(o.Out, JSONFile+".new"), 0o755); err != nil { // so that it cannot be written
		t.Fatal(err)
	}
	if err := s.Write(o.Out); err == nil {
		t.Error("no error")
	}
	if _, err := Read(o.Out); err != nil {
		t.Errorf("the earlier results are lost: %v", err)
	}
}

// TestMergeRefuses: parts of different suites, and rows that contradict each other.
func TestMergeRefuses(t *testing.T) {
	write := func(change func(s *Suite)) string {
		s := Suite{Format: Format, Seed: 1, Repeat: 1, Shards: []Shard{{1, 2}}, Rows: []Row{{Scenario: "a", Number: 1}}}
		change(&s)
		dir := t.TempDir()
		if err := s.Write(dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	first := write(func(*Suite) {})
	for what, dir := range map[string]string{
		"another seed":     write(func(s *Suite) { s.Seed = 2 }),
		"other shards":     write(func(s *Suite) { s.Shards = []Shard{{1, 3}} }),
		"another verdict":  write(func(s *Suite) { s.Rows[0].Verdict = checker.Unsafe }),
		"another format":   write(func(s *Suite) { s.Format = 9 }),
		"no suite":         write(func(s *Suite) { *s = Suite{Format: Format} }),
		"runs elsewhere":   write(func(s *Suite) { s.Rows[0].Scenario, s.Rows[0].Run = "b", "../../etc" }),
		"no such a folder": filepath.Join(first, "missing"),
	} {
		if _, err := Merge([]string{first, dir}, t.TempDir()); err == nil {
			t.Errorf("%s: merged", what)
		}
	}
}

func TestParseShard(t *testing.T) {
	for text, want := range map[string]Shard{"": {1, 1}, "1/1": {1, 1}, "2/4": {2, 4}} {
		if got, err := ParseShard(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0/4", "5/4", "2", "a/b", "2/4/6", "-1/4"} {
		if got, err := ParseShard(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
