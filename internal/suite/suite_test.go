package suite

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/ledger"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
)

const (
	asChaos = "LOCKCHAOS_TEST_SUITE"   // makes this test binary the chaos that a suite starts
	diesIn  = "LOCKCHAOS_TEST_DIES_IN" // makes it a suite that is killed while a run is in that directory
	readyAt = "LOCKCHAOS_TEST_READY"   // where the run of that name says that it has written its results
)

func TestMain(m *testing.M) {
	if os.Getenv(asChaos) != "" {
		os.Exit(fakeRun(os.Args[1:]))
	}
	if parent := os.Getenv(diesIn); parent != "" {
		os.Exit(die(parent))
	}
	os.Exit(m.Run())
}

// die makes the directory of a run, prints its name and kills this program.
func die(parent string) int {
	dir, err := ledger.NewOwnedDir(parent, newRun)
	if err != nil {
		return 71
	}
	fmt.Print(dir.Path)
	self, err := os.FindProcess(os.Getpid())
	if err != nil || self.Kill() != nil {
		return 72
	}
	select {}
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
	if why := map[string]string{"refused": "the client refused", "alone": client.ErrAlone.Error()}[kind]; why != "" {
		m.State, j, code = rundir.Broken, checker.Judgement{Verdict: checker.NotRun, Sentence: why}, exitUnable
	}
	if dir.WriteManifest(m) != nil || dir.WriteVerdict(j) != nil {
		return 72
	}
	if kind == "waiting" { // with its results, until it is interrupted
		if _, err := net.Dial("tcp", os.Getenv(readyAt)); err != nil {
			return 73
		}
		select {}
	}
	return max(code, map[string]int{"safe": 0, "unsafe": 1, "inconclusive": 2}[kind])
}

// options are the options of a suite of scenarios with these names.
func options(t *testing.T, names ...string) Options {
	t.Helper()
	t.Setenv(asChaos, "1")
	o := Options{Command: []string{os.Args[0]}, Backend: "sim", Version: "v1", Shard: Shard{1, 1}, Out: t.TempDir(), Jobs: 2}
	for _, name := range names {
		s := scenarios.Scenario{Name: name, Lock: "mutex", Expect: scenarios.Expect{Verdict: "safe"}, Duration: time.Second}
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

// outcomes are the outcomes of the rows by scenario and number.
func outcomes(s Suite) map[string]Outcome {
	all := map[string]Outcome{}
	for _, r := range s.Rows {
		all[fmt.Sprintf("%s %d", r.Scenario, r.Number)] = r.Outcome
	}
	return all
}

// TestNotRun: a run whose clients did not begin is no verdict about its lock, and the row says why.
func TestNotRun(t *testing.T) {
	s := run(t, options(t, "refused"))
	r := s.Rows[0]
	if why := "exit code 69: not run: the client refused"; r.Outcome != Unable || r.Verdict != checker.NotRun ||
		!slices.Equal(r.Why, []string{why}) || s.ExitCode() != exitUnable {
		t.Errorf("%+v", r)
	}
	var junit, page bytes.Buffer
	if err := errors.Join(s.JUnit(&junit), s.Page(&page)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{junit.String(), page.String()} {
		if !strings.Contains(text, "not run: the client refused") {
			t.Errorf("no reason in\n%s", text)
		}
	}
}

// TestNotForThisClient: a scenario with several clients in one process is skipped if the client hosts only one.
func TestNotForThisClient(t *testing.T) {
	s := run(t, options(t, "alone"))
	if r := s.Rows[0]; r.Outcome != Skipped || !slices.Equal(r.Why, []string{client.ErrAlone.Error()}) || s.ExitCode() != 0 {
		t.Errorf("%+v", r)
	}
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

// TestRetry: only an inconclusive run is repeated, with a seed that no other row has.
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

// TestStops: no run starts after the budget, an endless run is ended, and an interrupted suite names the missing runs.
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

// TestInterruptedRun: the directory of a run that was interrupted is removed.
func TestInterruptedRun(t *testing.T) {
	ready, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	t.Setenv(readyAt, ready.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		if c, err := ready.Accept(); err == nil {
			c.Close()
		}
	}()
	o := options(t, "waiting")
	o.Scenarios[0].Duration = time.Hour
	s, err := Run(ctx, o)
	if !errors.Is(err, ErrInterrupted) || s.Count(NotRun) != 1 {
		t.Errorf("interrupted: %v, %v", outcomes(s), err)
	}
	if left, err := os.ReadDir(filepath.Join(o.Out, RunsDir)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestKilledRunsAreRemoved: the next suite removes the directories of runs in progress of a killed suite, and not of a
// live one, or of a run that was kept there.
func TestKilledRunsAreRemoved(t *testing.T) {
	o := options(t, "safe")
	runs := filepath.Join(o.Out, RunsDir)
	if err := os.MkdirAll(runs, 0o755); err != nil {
		t.Fatal(err)
	}
	alive, err := ledger.NewOwnedDir(runs, newRun)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := ledger.NewOwnedDir(runs, newRun)
	if err == nil {
		err = kept.Keep()
	}
	if err != nil {
		t.Fatal(err)
	}
	killed := exec.Command(os.Args[0])
	killed.Env = []string{diesIn + "=" + runs}
	out, err := killed.Output()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("%v instead of a kill", err)
	}
	dead := string(out)
	if _, err := os.Stat(dead); err != nil || filepath.Dir(dead) != runs {
		t.Fatalf("the killed program left %q: %v", dead, err)
	}
	run(t, o)
	for dir, stays := range map[string]bool{alive.Path: true, kept.Path: true, dead: false} {
		if _, err := os.Stat(dir); (err == nil) != stays {
			t.Errorf("%s: %v, stays %t", dir, err, stays)
		}
	}
}

// TestNotes: leftovers of a killed suite that cannot be removed, and a file system without locks, are notes, said once.
func TestNotes(t *testing.T) {
	o := options(t, "safe-a", "safe-b", "safe-c")
	if err := os.MkdirAll(filepath.Join(o.Out, RunsDir, newRun+"1", "owner"), 0o700); err != nil { // is no file
		t.Fatal(err)
	}
	o.newDir = func(parent, prefix string) (*ledger.DataDir, error) {
		d, err := ledger.NewOwnedDir(parent, prefix)
		if err == nil {
			d.Unlocked = errors.ErrUnsupported
		}
		return d, err
	}
	var mu sync.Mutex
	var notes []string
	o.Note = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, text)
	}
	if s := run(t, o); s.Count(AsExpected) != 3 {
		t.Errorf("rows %+v", s.Rows)
	}
	if len(notes) != 2 || !strings.Contains(notes[0], "killed suites left") || !strings.Contains(notes[1], "no file locks") {
		t.Errorf("notes %q", notes)
	}
}

// TestFullDisk: a file that cannot be replaced stays as it was, and a run that cannot be moved is kept where it is.
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
	written(t, s, o.Out)
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
