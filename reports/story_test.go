package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/testkit/browser"
	"github.com/lockchaos/lockchaos/internal/testkit/golden"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/story"
)

func TestMain(m *testing.M) {
	if serveAsClient() {
		return
	}
	code := m.Run()
	if err := browser.End(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func allRuns() []*synth {
	return []*synth{failoverRun("orders"), stallRun(), safeRun(), idleRun(), ensembleRun()}
}

func TestStoryGolden(t *testing.T) {
	for _, s := range allRuns() {
		t.Run(s.m.Scenario, func(t *testing.T) {
			data, err := json.MarshalIndent(s.load(t).Story, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.File(t, filepath.Join("testdata", s.m.Scenario+".story.json"), string(data)+"\n")
		})
	}
}

func TestFormatsGolden(t *testing.T) {
	for _, s := range allRuns() {
		r := s.load(t)
		for _, format := range []string{"text", "markdown", "junit"} {
			t.Run(s.m.Scenario+"/"+format, func(t *testing.T) {
				var b bytes.Buffer
				if err := Render(r, format, &b); err != nil {
					t.Fatal(err)
				}
				golden.File(t, filepath.Join("testdata", s.m.Scenario+"."+format),
					strings.ReplaceAll(b.String(), r.Dir.Path, "RUN"))
			})
		}
	}
}

// TestStoryWithoutWitness: without samples the story claims nothing about nodes.
func TestStoryWithoutWitness(t *testing.T) {
	s := failoverRun("orders")
	s.samples = nil
	st := s.load(t).Story
	text := st.Sentence
	for _, m := range st.Steps {
		text += "\n" + m.Text
	}
	for _, claim := range []string{"127.0.2.1", "by n2", "seen as master", "any other node"} {
		if strings.Contains(text, claim) {
			t.Errorf("nodes were not sampled, but the story says %q:\n%s", claim, text)
		}
	}
	if !strings.Contains(text, "nodes were not sampled") {
		t.Errorf("the story does not say that nodes were not sampled:\n%s", text)
	}
}

func TestStoryReplicaSeenFirst(t *testing.T) {
	s := failoverRun("orders")
	for i := range s.samples { // the replica is sampled just before its master
		if smp := &s.samples[i]; smp.Node == "n3" && smp.Time >= ms(3380) {
			smp.Time -= ms(5)
		}
	}
	if got := s.load(t).Story.Sentence; !strings.Contains(got, "n2 was seen as master") {
		t.Errorf("a replica is named as the node that granted: %s", got)
	}
}

func TestStoryKeepsOrderAndNumbers(t *testing.T) {
	for _, s := range allRuns() {
		steps := s.load(t).Story.Steps
		if len(steps) > 6 {
			t.Errorf("%s: %d steps, want at most 6", s.m.Scenario, len(steps))
		}
		sorted := slices.IsSortedFunc(steps, func(a, b evidence.Step) int { return int(a.Time - b.Time) })
		for i, m := range steps {
			if m.N != i+1 || !sorted {
				t.Errorf("%s: step %d has number %d; in the order of time: %v", s.m.Scenario, i+1, m.N, sorted)
			}
		}
	}
}

func TestExpectations(t *testing.T) {
	violated := checker.Result{Property: checker.Exclusion, Outcome: checker.Violated}
	damage := checker.Result{Property: checker.Damage, Outcome: checker.Violated}
	holds := checker.Result{Property: checker.Exclusion, Outcome: checker.Holds}
	tests := []struct {
		name    string
		expect  map[string]string
		verdict checker.Verdict
		results []checker.Result
		want    bool
	}{
		{"no expectations, safe", nil, checker.Safe, []checker.Result{holds}, true},
		{"no expectations, unsafe", nil, checker.Unsafe, []checker.Result{violated}, false},
		{"broken as expected", map[string]string{"exclusion": "violated", "damage": "violated"}, checker.Unsafe,
			[]checker.Result{violated, damage}, true},
		{"broken more than expected", map[string]string{"exclusion": "violated"}, checker.Unsafe,
			[]checker.Result{violated, damage}, false},
		{"did not break", map[string]string{"exclusion": "violated"}, checker.Safe, []checker.Result{holds}, false},
		{"no expectation for the violated property", map[string]string{"exclusion": "holds"}, checker.Unsafe,
			[]checker.Result{holds, damage}, false},
		{"only the verdict", map[string]string{"verdict": "unsafe"}, checker.Unsafe, []checker.Result{violated, damage},
			true},
		{"either outcome", map[string]string{"exclusion": "violated", "damage": "holds or violated"}, checker.Unsafe,
			[]checker.Result{violated, damage}, true},
		{"neither outcome", map[string]string{"exclusion": "violated", "damage": "holds or undecided"}, checker.Unsafe,
			[]checker.Result{violated, damage}, false},
		{"another class", map[string]string{"class": "broken promise"}, checker.Unsafe, []checker.Result{violated}, false},
		{"verdict", map[string]string{"verdict": "unsafe"}, checker.Safe, []checker.Result{holds}, false},
		{"expected property not judged", map[string]string{"fencing": "holds"}, checker.Safe, []checker.Result{holds}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := idleRun()
			s.m.Expect = tt.expect
			s.j = checker.Judgement{Verdict: tt.verdict, Results: tt.results}
			if got := evidence.AsExpected(s.load(t)); got != tt.want {
				t.Errorf("Met = %v, want %v", got, tt.want)
			}
			if by := expect.Unexpected(s.j, tt.expect); len(tt.expect) > 0 && (len(by) == 0) != tt.want {
				t.Errorf("expect.Unexpected disagrees: %q", by)
			}
		})
	}
}

// TestProduction: a report has the meaning of the expected verdict in production, and nothing about another verdict.
func TestProduction(t *testing.T) {
	for verdict, shown := range map[checker.Verdict]bool{checker.Unsafe: true, checker.Safe: false} {
		s := failoverRun("orders")
		s.m.Expect, s.m.Production = map[string]string{expect.Verdict: string(checker.Unsafe)}, "any crash of the <master>"
		s.j.Verdict = verdict
		r := s.load(t)
		for format, want := range map[string]string{
			"text": "  production  any crash of the <master>\n",
			"html": "<b>In production:</b> any crash of the &lt;master&gt;.",
		} {
			if text := render(t, r, format); strings.Contains(text, want) != shown {
				t.Errorf("%s, %s: shown is not %v", verdict, format, shown)
			}
		}
	}
}

// TestStoryGrantNotSeen: a master that dies within a millisecond of its grant is seldom sampled with it.
func TestStoryGrantNotSeen(t *testing.T) {
	s := failoverRun("orders")
	for i := range s.samples {
		if smp := &s.samples[i]; smp.Node == "n1" && smp.Keys["orders"].Owner == "own-3-cccc" {
			smp.Keys = nil
		}
	}
	got := s.load(t).Story.Sentence
	if !strings.Contains(got, "n1, the only master seen, granted it to client 3 at 1.420 s and was killed") {
		t.Errorf("the story does not say what is known of the first grant: %s", got)
	}
}

// TestStoryOfFencingAlone: consecutive holds are no overlap, whatever else was violated.
func TestStoryOfFencingAlone(t *testing.T) {
	s := idleRun()
	s.hold(0, "own-0-bbbb", 0, holdTimes{430, 440, 600, 0})
	s.number()
	s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.Fencing,
		Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Text: "token 0 was granted twice",
			Key: "orders", Clients: []int{0, 0}, Events: []int{1, 5}, Start: ms(440), End: ms(440)}}}}}
	st := s.load(t).Story
	if st.Sentence != "Token 0 was granted twice" || len(st.Steps) != 2 {
		t.Errorf("story: %q with %d steps, want the text of the violation and its 2 events", st.Sentence, len(st.Steps))
	}
}

func TestWorstIsFirstOfLongest(t *testing.T) {
	s := stallRun()
	v := s.j.Results[0].Violations[0]
	early, brief := v, v
	early.Start, early.End = ms(2000), ms(2950)
	brief.Start, brief.End = ms(1500), ms(1510)
	s.j.Results[0].Violations = []checker.Violation{v, early, brief}
	if got := s.load(t).Worst.Start; got != early.Start {
		t.Errorf("the worst begins at %v, want %v", got, early.Start)
	}
}

// TestStepsPreferFaultsBetweenEvents: of many faults, the steps keep those between
// the events of the violation.
func TestStepsPreferFaultsBetweenEvents(t *testing.T) {
	s := newSynth("many", "orders", 2, cluster.Topology{Kind: cluster.Sentinel}, 3)
	for i := range 8 {
		at := 100 * float64(i+1)
		s.fault(at, "replication-hold", history.FaultValue{ID: i + 1, Phase: history.Injected, Target: "n1"})
		s.fault(at+1, "replication-hold", history.FaultValue{ID: i + 1, Phase: history.TookEffect, Target: "n1"})
		s.fault(at+50, "replication-hold", history.FaultValue{ID: i + 1, Phase: history.Healed, Target: "n1"})
	}
	s.hold(0, "c0-1", 16, holdTimes{requested: 900, from: 901, to: 950, valid: 2000})
	s.fault(960, "kill", history.FaultValue{ID: 9, Phase: history.Injected, Target: "n1"})
	s.fault(961, "kill", history.FaultValue{ID: 9, Phase: history.TookEffect, Target: "n1"})
	s.hold(1, "c1-1", 1, holdTimes{requested: 1000, from: 1100, to: 1150, valid: 2000})
	s.number()
	h, err := history.Build(s.events)
	if err != nil {
		t.Fatal(err)
	}
	r := evidence.New(s.m, h, nil, checker.Judge(h, checker.Options{}))
	story.Write(r)
	steps := r.Story.Steps
	for _, step := range steps {
		if strings.Contains(step.Text, "n1 was killed") {
			return
		}
	}
	t.Errorf("the kill between the two grants is missing: %+v", steps)
}

// TestStoryOnlyNode: without samples, a step names the node of a single topology, and no node as the granter.
func TestStoryOnlyNode(t *testing.T) {
	s := stallRun()
	s.samples = nil
	if got := s.load(t).Story.Steps[0].Text; got !=
		"client 2 is granted `orders` with token 7; n1 (127.0.2.1:7001) was the only node" {
		t.Errorf("first step: %s", got)
	}
}

// TestStoryKeepsTheNameOfTheLock: a sentence that starts with the name of the lock does not capitalize it.
func TestStoryKeepsTheNameOfTheLock(t *testing.T) {
	s := idleRun()
	s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.Recovery,
		Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Text: "orders could not be acquired",
			Key: "orders"}}}}}
	if got := s.load(t).Story.Sentence; got != "`orders` could not be acquired" {
		t.Error(got)
	}
}

// TestNoFencingAdvice: fencing does not help against violations other than overlaps.
func TestNoFencingAdvice(t *testing.T) {
	s := idleRun()
	s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.WakeUp,
		Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Text: "a waiter slept", Key: "orders"}}}}}
	if advice := s.load(t).Story.Advice; len(advice) > 0 {
		t.Errorf("advice: %+v", advice)
	}
}
