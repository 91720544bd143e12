package reports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/servers"
	"github.com/lockchaos/lockchaos/internal/backend/simulated"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/locks/openable"
	"github.com/lockchaos/lockchaos/internal/locks/zookeeper"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/internal/testkit/golden"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/scenarios"
)

// asClient makes the test binary a native client, as chaos client is one.
const asClient = "LOCKCHAOS_TEST_CLIENT"

func serveAsClient() bool {
	if os.Getenv(asClient) == "" {
		return false
	}
	if err := client.Serve(context.Background(), os.Stdin, os.Stdout, openable.Lookup); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// unsafeScenarios are the scenarios of the catalog that must end unsafe.
func unsafeScenarios(t *testing.T) []string {
	t.Helper()
	names := slices.DeleteFunc(scenarios.Names(), func(name string) bool {
		s, err := scenarios.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		return !s.Expect.Is(checker.Unsafe)
	})
	if len(names) < 30 {
		t.Fatalf("%d unsafe scenarios, want at least 30", len(names))
	}
	return names
}

// runOn runs a scenario on a backend and loads its run directory.
func runOn(t *testing.T, backend, name string) *Run {
	t.Helper()
	s, err := scenarios.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return runScenario(t, backend, s)
}

func runScenario(t *testing.T, on string, s scenarios.Scenario) *Run {
	t.Helper()
	return runSeed(t, on, s, 7)
}

// runSeed is runScenario with that seed.
func runSeed(t *testing.T, on string, s scenarios.Scenario, seed uint64) *Run {
	t.Helper()
	spec := simulated.Spec()
	if on == "process" {
		spec = servers.Process()
	}
	if why := spec.Missing(s); why != "" {
		t.Skipf("NOT RUN: %s", why)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := runner.Run(context.Background(), runner.Options{
		Scenario: s, Seed: seed, Out: t.TempDir(), Version: "test",
		Backend: spec.New(backend.Options{Client: []string{"env", asClient + "=1", self}, Open: zookeeper.Opens}),
	})
	if on == "sim" { // go-redis keeps timers of one bubble in pools, which must not reach the next
		runtime.GC()
		runtime.GC()
	}
	if on != "sim" && errors.Is(err, cluster.ErrEnvironment) {
		t.Skipf("NOT RUN: %s", err) // internal/cluster/process tests that servers start
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := Load(out.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTwinsAreSafe: the twin of a scenario, which the report cites as a way to prevent the violation, is safe.
func TestTwinsAreSafe(t *testing.T) {
	twins := 0
	for _, name := range scenarios.Names() {
		s, err := scenarios.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if s.Twin == nil {
			continue
		}
		twins++
		t.Run(name, func(t *testing.T) {
			twin, err := s.LoadTwin()
			if err != nil {
				t.Fatal(err)
			}
			if !s.Expect.Is(checker.Unsafe) {
				t.Errorf("a twin prevents nothing here: the scenario expects %q", s.Expect.Text())
			}
			if r := runScenario(t, "sim", twin); r.Judgement.Verdict != checker.Safe {
				t.Errorf("the twin is %s: %s", r.Judgement.Verdict, r.Story.Sentence)
			}
		})
	}
	if twins < 10 {
		t.Errorf("%d scenarios have a twin, want at least 10", twins)
	}
}

// TestCausesOnSim: the headline of every unsafe scenario names its cause, and all
// its numbers are proved by the run directory. Its words are golden.
func TestCausesOnSim(t *testing.T) {
	var b bytes.Buffer
	for _, name := range unsafeScenarios(t) {
		t.Run(name, func(t *testing.T) {
			r := runOn(t, "sim", name)
			checkCause(t, r)
			checkProofs(t, r)
			checkSteps(t, r)
			checkNamed(t, r)
			fmt.Fprintf(&b, "%s (%s)\n    %s\n", name, r.Story.Cause, withoutNumbers(r.Story.Sentence))
		})
	}
	if !t.Failed() {
		golden.File(t, "testdata/causes.txt", b.String())
	}
}

// TestCausesOnProcess: the same on real servers, where the cause has to be the one of the golden file.
func TestCausesOnProcess(t *testing.T) {
	race.SkipLong(t, "it runs every unsafe scenario on real servers")
	var want []byte
	for _, file := range []string{"causes.txt", "causes-process.txt"} { // with a simulation, and without
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, text...)
	}
	for _, name := range unsafeScenarios(t) {
		t.Run(name, func(t *testing.T) {
			if s, err := scenarios.Load(name); err != nil {
				t.Fatal(err)
			} else if !s.Topology.Ensemble() { // whose members are unavailable when eight runs share their disk
				t.Parallel()
			}
			for try := 1; ; try++ {
				r := runOn(t, "process", name)
				known := bytes.Contains(want, fmt.Appendf(nil, "%s (%s)\n", name, r.Story.Cause))
				if v := r.Judgement.Verdict; v != checker.Unsafe {
					if !rerun.Again(t, try, r.Dir.Path) {
						t.Fatalf("this run is %s: %s", v, r.Judgement.Sentence)
					}
					continue
				}
				if why := otherViolation(t, name, r, known); why != "" {
					if !rerun.Because(t, try, why) {
						t.Fatalf("the scenario never showed what it plans: %s", r.Story.Sentence)
					}
					continue
				}
				checkProofs(t, r)
				checkCause(t, r)
				if !known {
					t.Errorf("cause %q is not in testdata: %s", r.Story.Cause, r.Story.Sentence)
				}
				return
			}
		})
	}
}

// otherViolation says why the headline is about another violation than the scenario's, as it may be on a busy machine;
// empty: it is about that one. Known: its cause is one of the scenario.
func otherViolation(t *testing.T, name string, r *Run, known bool) string {
	t.Helper()
	if text := slowWait(t, name, r); text != "" {
		return text
	}
	if known && namesPlan(r) {
		return ""
	}
	return unplanned(r)
}

// slowWait is a wait beside a lock that is free, in a scenario that expects none: on a busy machine one request may
// take as long as the rule allows, and the headline is about that. Empty: there is none.
func slowWait(t *testing.T, name string, r *Run) string {
	t.Helper()
	s, err := scenarios.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	expected, err := s.ExpectedOfLock()
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range r.Judgement.Results {
		if result.Property == checker.WakeUp && result.Outcome == checker.Violated &&
			expected[checker.WakeUp].Outcome == string(checker.Holds) {
			return result.Summary
		}
	}
	return ""
}

// namesPlan reports whether the headline names a fault of the plan, the skewed clocks of the clients, which are an
// option of the lock, or a timeout of the server, which is a setting: these two break the lock with or without a fault.
func namesPlan(r *Run) bool {
	s := r.Story.Sentence
	return strings.Contains(s, "clock_skew") || strings.Contains(s, "idle_in_transaction_session_timeout") ||
		slices.ContainsFunc(r.Manifest.Plan, func(step scenarios.Step) bool {
			return strings.Contains(s, evidence.Quote(step.Fault))
		})
}

// checkCause demands of a headline: a known mechanism, the planned violation, a node or a client, and two instants.
func checkCause(t *testing.T, r *Run) {
	t.Helper()
	s := r.Story
	if r.Judgement.Verdict != checker.Unsafe {
		t.Fatalf("verdict %s", r.Judgement.Verdict)
	}
	if s.Cause == "" || s.Cause == "unknown" || s.Cause == "fault-between" {
		t.Errorf("no mechanism fits (%q)", s.Cause)
	}
	if len(r.Manifest.Plan) > 0 && !namesPlan(r) {
		t.Error("names no fault of the plan")
	}
	for _, step := range r.Manifest.Plan {
		if strings.Contains(r.Manifest.Scenario, step.Fault) && !strings.Contains(s.Sentence, evidence.Quote(step.Fault)) {
			t.Errorf("does not name %s, the fault that the scenario is named after", step.Fault)
		}
	}
	if !regexp.MustCompile(`\b(n\d|[Cc]lient \d)`).MatchString(s.Sentence) {
		t.Error("names neither a node nor a client")
	}
	if n := len(slices.DeleteFunc(slices.Clone(s.Proofs),
		func(p evidence.Proof) bool { return p.Kind != evidence.ProofInstant })); n < 2 {
		t.Errorf("%d instants", n)
	}
	if len(s.Advice) == 0 {
		t.Error("no advice")
	}
	if t.Failed() {
		t.Log(s.Sentence)
	}
}

// withoutNumbers replaces texts that another version or machine changes: times, tokens, and which client is which.
func withoutNumbers(s string) string {
	s = regexp.MustCompile(`\b\d+\.\d{3}(?:\d{3})? m?s\b`).ReplaceAllString(s, "T")
	s = regexp.MustCompile(`\b\d+(\.\d+)? (ms|µs|s)\b`).ReplaceAllString(s, "D")
	s = regexp.MustCompile(`token \d+`).ReplaceAllString(s, "token N")
	s = regexp.MustCompile(`\d of \d nodes: [^)]*\)`).ReplaceAllString(s, "K of N nodes)")
	s = regexp.MustCompile(`lease ended on [^;]* by T`).ReplaceAllString(s, "lease ended on K nodes by T")
	s = regexp.MustCompile("`c\\d+-\\d+`").ReplaceAllString(s, "`OWNER`")
	names := map[string]string{}
	return regexp.MustCompile(`([Cc]lient) (\d+)`).ReplaceAllStringFunc(s, func(found string) string {
		word, number, _ := strings.Cut(found, " ")
		if names[number] == "" {
			names[number] = string(rune('A' + len(names)))
		}
		return word + " " + names[number]
	})
}
