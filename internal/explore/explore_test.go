package explore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/scenarios"
)

// asWorker makes this test binary a worker with the runs of fakeRuns.
const asWorker = "LOCKCHAOS_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		if err := Serve(os.Stdin, os.Stdout, fakeRuns()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Seeds for which the fake worker fails.
const (
	killed    = 12 // it is killed
	exits     = 13 // it exits
	malformed = 14 // it writes something that is not JSON
	differs   = 15 // the history differs each time
	fails     = 16 // the run fails
	failsNext = 99 // the run fails when it is repeated
)

// fakeRuns makes up runs. A run is unsafe if it has a kill, at least two clients, a duration of a second or more, and
// a seed that is divisible by 5.
func fakeRuns() func(Job) Result {
	runs := 0
	return func(j Job) Result {
		runs++
		a := Result{Verdict: checker.Safe, Hash: fmt.Sprint(j.Seed, j.Variation), Virtual: time.Second, Commands: 100}
		switch j.Seed {
		case killed:
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill()
			}
			select {}
		case failsNext:
			if runs > 1 {
				a.Failure = "only the first run works"
				return a
			}
		case exits:
			fmt.Fprintln(os.Stderr, "panic: oh no")
			os.Exit(3)
		case malformed:
			fmt.Println("not JSON")
		case differs:
			a.Hash = fmt.Sprint("run ", runs)
			a.History = fmt.Sprintf("{\"index\":0}\n{\"index\":%d}\n", runs)
		case fails:
			a.Failure = "virtual time is stalled"
			return a
		}
		if j.Seed >= rare {
			a.States = rareStates(j)
			return a
		}
		s, err := scenarios.Parse([]byte(j.Scenario))
		if err != nil {
			a.Failure = err.Error()
			return a
		}
		p := s.Workload.Defaults()
		killed := slices.ContainsFunc(s.Faults, func(f scenarios.Step) bool { return f.Fault == "kill" })
		if killed && p.Clients >= 2 && s.Duration >= time.Second && j.Seed%5 == 0 && j.Seed > 0 {
			a.Verdict, a.Sentence = checker.Unsafe, "two held it"
			a.Kinds = []Kind{{checker.Exclusion, checker.BrokenPromise, "no two holders"}}
			a.States = []string{"promoted while held"}
		}
		if j.Keep == full {
			a.Failure = "no space left on device"
		} else if j.Keep != "" {
			a.Dir = filepath.Join(j.Keep, fmt.Sprint(j.Seed))
		}
		return a
	}
}

// rare is the first seed of runs with two states: one plan in twenty reaches the first, and one variation in eight of
// such a plan the second.
const rare = 1000

func rareStates(j Job) []string {
	draw := func(n uint64) uint64 { return rand.New(rand.NewPCG(j.Seed, n)).Uint64() }
	switch {
	case draw(0)%20 != 0:
		return nil
	case draw(1+uint64(j.Variation))%8 != 0:
		return []string{"first state"}
	}
	return []string{"first state", "second state"}
}

func pool(t *testing.T, n int) *Pool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open([]string{self}, n, asWorker+"=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(p.dir.Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the pool's directory still exists: %v", err)
		}
	})
	return p
}

// full is a directory on a full disk.
const full = "full"

const plan = `{name: x, summary: y, topology: {kind: single}, lock: reentrant, duration: 8s,
workload: {clients: 7, keys: 4, jitter: 20ms}, faults: [
{after: 100ms, fault: pause-client, for: 1s}, {after: 1s, fault: kill, for: 2s},
{random: {of: [pause-node], every: 1s}}]}`

func TestExploreCountsAndKeeps(t *testing.T) {
	var watched atomic.Int64 // Watch is called for two workers
	r, err := Explore(t.Context(), pool(t, 2), Options{
		Scenario: plan, First: 1, Seeds: 40, Jobs: 2, Out: "kept", NoVariations: true, Watch: func(Report) { watched.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	// The workers of 12, 13 and 14 die, 16 fails; 5, 10, 15, 20, 25, 30, 35 and 40 are unsafe.
	if r.Runs != 40 || r.Failed != 4 || r.Unsafe != 8 || r.Safe != 28 || len(r.Findings) != 1 || r.Findings[0].Runs != 8 {
		t.Errorf("%+v", r)
	}
	f := r.Findings[0]
	if f.Dir != filepath.Join("kept", fmt.Sprint(f.Seed)) || f.Kind.String() != "exclusion (broken promise)" {
		t.Errorf("%+v", f)
	}
	failures := ""
	for _, f := range r.Failures {
		failures += fmt.Sprintf("%d: %s\n", f.Seed, f.Failure)
	}
	for _, want := range []string{
		"12: the worker died (signal: killed)", "13: the worker died (exit status 3)", "panic: oh no",
		"14: the worker died", "16: virtual time",
	} {
		if !strings.Contains(failures, want) {
			t.Errorf("no failure %q in\n%s", want, failures)
		}
	}
	if watched.Load() != 40 || r.States["promoted while held"] != 8 || r.Virtual != 37*time.Second {
		t.Errorf("watched %d times, %+v", watched.Load(), r)
	}
}

// TestRunThatCannotBeKept: the finding says why its run was not kept.
func TestRunThatCannotBeKept(t *testing.T) {
	r, err := Explore(t.Context(), pool(t, 1), Options{Scenario: plan, First: 5, Seeds: 1, Out: full, NoVariations: true})
	if err != nil || len(r.Findings) != 1 {
		t.Fatalf("%+v, %v", r.Findings, err)
	}
	if f := r.Findings[0]; f.Dir != "" || f.NotKept != "no space left on device" {
		t.Errorf("%+v", f)
	}
}

func TestRunsThatReachNewStatesAreVaried(t *testing.T) {
	r, err := Explore(t.Context(), pool(t, 1), Options{Scenario: plan, First: 5, Seeds: 30, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Varied != perNewState || r.Runs != 30 {
		t.Errorf("%d runs were varied, want %d: %+v", r.Varied, perNewState, r)
	}
}

// TestFeedbackReachesRareStatesSooner: measured in runs until the second state, over thirty explorations.
func TestFeedbackReachesRareStatesSooner(t *testing.T) {
	p := pool(t, 1)
	runs := map[bool]int{}
	for first := range uint64(30) {
		for _, plain := range []bool{false, true} {
			ctx, reached := context.WithCancel(t.Context())
			r, err := Explore(ctx, p, Options{
				Scenario: plan, First: rare * (1 + first), Seeds: 5000, Jobs: 1, NoVariations: plain, Watch: func(r Report) {
					if r.States["second state"] > 0 {
						reached()
					}
				},
			})
			reached()
			if err != nil || r.States["second state"] == 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			runs[plain] += r.Runs
		}
	}
	t.Logf("%d runs with feedback, %d without", runs[false], runs[true])
	if 2*runs[false] > runs[true] {
		t.Errorf("%d runs with feedback, %d without", runs[false], runs[true])
	}
}

func TestRunsThatDifferAreShown(t *testing.T) {
	r, err := Explore(t.Context(), pool(t, 1), Options{Scenario: plan, First: 15, Seeds: 1, Repeat: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Differences) != 1 || r.Differences[0].Line != 2 || !strings.Contains(r.Differences[0].Before, `"index"`) {
		t.Errorf("%+v", r.Differences)
	}
	r, err = Explore(t.Context(), pool(t, 1), Options{Scenario: plan, First: 17, Seeds: 3, Repeat: 3})
	if err != nil || len(r.Differences) != 0 || r.Repeated != 3 {
		t.Errorf("runs without a difference: %d, %+v, %v", r.Repeated, r.Differences, err)
	}
	r, err = Explore(t.Context(), pool(t, 1), Options{Scenario: plan, First: failsNext, Seeds: 1, Repeat: 3})
	if err != nil || r.Repeated != 0 || len(r.Differences) != 1 || r.Differences[0].After != "only the first run works" {
		t.Errorf("a run that fails when it is repeated: %d, %+v, %v", r.Repeated, r.Differences, err)
	}
}

func TestExploreStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := func(Report) { cancel() }
	r, err := Explore(ctx, pool(t, 2), Options{Scenario: plan, First: 1, Seeds: 1 << 40, Watch: stop})
	if err != nil || r.Stopped != "interrupted" || r.Runs == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	limited := Options{Scenario: plan, First: 1, Seeds: 1 << 40, Time: 300 * time.Millisecond}
	r, err = Explore(t.Context(), pool(t, 2), limited)
	if err != nil || r.Stopped != "time limit of 300ms reached" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Explore(t.Context(), pool(t, 1), Options{Scenario: plan}); err == nil {
		t.Error("no error without seeds")
	}
	missing, err := Open([]string{"/nowhere/at/all"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer missing.Close()
	if _, err := Explore(t.Context(), missing, Options{Scenario: plan, Seeds: 3}); err == nil {
		t.Error("no error without a worker")
	}
}

func TestShrink(t *testing.T) {
	s, err := scenarios.Parse([]byte(plan))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Shrink(t.Context(), pool(t, 1).Do, s, Job{Seed: 5}, Kind{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Scenario.Faults) != 1 || got.Scenario.Faults[0].Fault != "kill" || got.Scenario.Faults[0].For != 0 {
		t.Errorf("faults left: %v", got.Scenario.Faults)
	}
	p := got.Scenario.Workload.Defaults()
	if p.Clients != 2 || p.Keys != 1 || p.Jitter != 0 || got.Scenario.Duration > 1200*time.Millisecond {
		t.Errorf("left: %+v for %v", p, got.Scenario.Duration)
	}
	story := strings.Join(got.Story, "\n")
	for _, want := range []string{"faults", "2 clients instead of 7", "1 key instead of 4", "of the same length"} {
		if !strings.Contains(story, want) {
			t.Errorf("no %q in the story\n%s", want, story)
		}
	}
	parsed, err := scenarios.Parse([]byte(got.YAML))
	if err != nil || len(parsed.Faults) != 1 {
		t.Errorf("the shrunk scenario cannot be read: %v\n%s", err, got.YAML)
	}
}

// TestShrinkSequences: the story has each sequence that was removed once.
func TestShrinkSequences(t *testing.T) {
	s, err := scenarios.Parse([]byte(strings.Replace(plan, "workload: {",
		`workload: {kind: mixed, sequences: "plain, tries, released twice; plain", `, 1)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Shrink(t.Context(), pool(t, 1).Do, s, Job{Seed: 5}, Kind{})
	if err != nil {
		t.Fatal(err)
	}
	if left := got.Scenario.Workload.Sequences; left != "released twice" {
		t.Errorf("sequences left: %q", left)
	}
	for _, name := range []string{"plain", "tries"} {
		if n := strings.Count(strings.Join(got.Story, "\n"), "without the sequence "+name); n != 1 {
			t.Errorf("%s is removed %d times:\n%s", name, n, strings.Join(got.Story, "\n"))
		}
	}
}

func TestShrinkNeedsAViolation(t *testing.T) {
	s, err := scenarios.Parse([]byte(plan))
	if err != nil {
		t.Fatal(err)
	}
	p := pool(t, 1)
	for _, c := range []struct {
		seed uint64
		kind Kind
	}{{4, Kind{}}, {fails, Kind{}}, {exits, Kind{}}, {5, Kind{Property: checker.Leak}}} {
		if _, err := Shrink(t.Context(), p.Do, s, Job{Seed: c.seed}, c.kind); !errors.Is(err, ErrNoViolation) {
			t.Errorf("seed %d, %v: error %v, want ErrNoViolation", c.seed, c.kind, err)
		}
	}
}
