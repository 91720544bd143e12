package evaluation

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/clientcheck"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/scenarios"
)

func lockNamed(t *testing.T, name string, can promise.Set) Lock {
	t.Helper()
	l, err := generator.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if can != 0 {
		l.Can = can
	}
	return l
}

func names(list []suite.Scenario) (all []string) {
	for _, s := range list {
		all = append(all, s.Name)
	}
	return all
}

// TestPlan: a lock gets the stories that its promises and topologies allow, and the reason why it does not get others.
func TestPlan(t *testing.T) {
	const program = "exec:./lock"
	for _, test := range []struct {
		name          string
		lock          Lock
		has, hasNot   []string
		why, whyNames string
	}{
		{"a program", lockNamed(t, program, promise.Try), []string{"contention", "gc-pause", "mixed"},
			[]string{"failover", "redlock-contention", "thundering-herd"}, "topology sentinel", "failover"},
		{"a semaphore", lockNamed(t, program, promise.Permits), []string{"permits-dead-client"}, []string{"latch"},
			"workload latch needs a lock that promises latch: state it", "latch"},
		{"no semaphore", lockNamed(t, program, promise.Try), nil, []string{"permits-dead-client"},
			"workload semaphore needs a lock that promises permits: state it", "permits-dead-client"},
		{"a quorum", lockNamed(t, "redlock", 0), []string{"redlock-contention"}, []string{"contention"}, "topology single",
			"contention"},
	} {
		t.Run(test.name, func(t *testing.T) {
			list, unfit := plan(test.lock)
			got := names(list)
			for _, name := range test.has {
				if !slices.Contains(got, name) {
					t.Errorf("%s is not planned: %v", name, got)
				}
			}
			for _, name := range test.hasNot {
				if slices.Contains(got, name) {
					t.Errorf("%s is planned", name)
				}
			}
			if !slices.Contains(unfit[test.why], test.whyNames) {
				t.Errorf("%s is not among those that do not fit because of %q: %v", test.whyNames, test.why, unfit)
			}
		})
	}
}

// TestPlanAlone: a client that is alone in its process gets no scenario that needs several in one, drawn or not.
func TestPlanAlone(t *testing.T) {
	l := lockNamed(t, "exec:./lock", promise.Try)
	several := func(list []suite.Scenario) bool {
		return slices.ContainsFunc(list, func(s suite.Scenario) bool {
			return s.Workload.PerProcess > 1 || s.Workload.PerInstance > 1
		})
	}
	if list, _ := plan(l); !several(list) {
		t.Error("no story has several clients in one process: the test shows nothing")
	}
	l.Alone = true
	if list, _ := plan(l); several(list) {
		t.Error("a story with several clients in one process is planned")
	}
	for seed := range uint64(100) {
		if s, err := l.Draw(seed); err != nil || several([]suite.Scenario{{Scenario: s}}) {
			t.Fatalf("seed %d: %v, %+v", seed, err, s.Workload)
		}
	}
}

// TestPlanCoversFirst: each of the first scenarios has a fault or a workload that none before it has.
func TestPlanCoversFirst(t *testing.T) {
	list, _ := plan(lockNamed(t, "reentrant", 0))
	covered := map[string]bool{}
	for _, s := range list[:20] {
		adds := false
		for _, f := range features(s.Scenario) {
			adds = adds || !covered[f]
			covered[f] = true
		}
		if !adds {
			t.Errorf("%s adds nothing to the scenarios before it", s.Name)
		}
	}
}

// TestSameCause: findings of one cause are one, those of an unknown cause differ by their properties, and the
// runs of an exploration, which reports each rule that they violate, count once.
func TestSameCause(t *testing.T) {
	tests := map[string]*test{}
	add := func(name string, list ...Finding) {
		tt := &test{of: map[string]int{}, seen: map[string]*sum{}}
		for _, f := range list {
			tt.of[f.Scenarios[0]]++
			tt.addFinding(f)
		}
		tt.sumUp()
		tests[name] = tt
	}
	f := func(own bool, cause string, p checker.Property, scenario string) Finding {
		return Finding{Own: own, Cause: cause, Property: p, Scenarios: []string{scenario}, Runs: 1}
	}
	add("one cause", f(true, "stolen", checker.Exclusion, "a"), f(true, "stolen", checker.Honesty, "b"))
	add("unknown", f(true, "unknown", checker.Exclusion, "a"), f(true, "unknown", checker.Honesty, "b"))
	add("own and common", f(false, "stolen", checker.Exclusion, "a"), f(true, "stolen", checker.Exclusion, "b"))
	add("common", f(false, "lost-in-failover", checker.Exclusion, "a"))
	for name, want := range map[string]int{"one cause": 1, "unknown": 2, "own and common": 1, "common": 1} {
		r := tests[name].report
		if len(r.Findings) != want {
			t.Errorf("%s: %d findings, want %d", name, len(r.Findings), want)
		}
		if own := len(r.Own()) > 0; own != (name != "common") {
			t.Errorf("%s: of the lock itself: %t", name, own)
		}
	}
	if f := tests["own and common"].report.Findings[0]; f.Runs != 2 || f.Of != 2 || !slices.Equal(f.Scenarios, []string{"b", "a"}) {
		t.Errorf("own and common: %+v", f)
	}
	explored := &test{Options: Options{Out: t.TempDir()}, of: map[string]int{}, seen: map[string]*sum{}, explored: 50}
	for _, runs := range []int{7, 9} {
		explored.addExplored(explore.Finding{Kind: explore.Kind{Property: checker.Exclusion}, Seed: 3, Runs: runs}, "")
	}
	explored.sumUp()
	if f := explored.report.Findings[0]; f.Runs != 9 || f.Of != 50 {
		t.Errorf("explored: in %d of %d runs, want 9 of 50", f.Runs, f.Of)
	}
}

// TestExample: of the runs with one cause, the one with the simplest scenario is shown.
func TestExample(t *testing.T) {
	tt := &test{of: map[string]int{}}
	for _, f := range []Finding{
		{Own: true, Cause: "stolen", Runs: 1, Scenarios: []string{"hard"}, Sentence: "hard", weight: 20},
		{Own: true, Cause: "stolen", Runs: 1, Scenarios: []string{"easy"}, Sentence: "easy", weight: 4},
		{Own: true, Cause: "stolen", Runs: 1, Scenarios: []string{"middle"}, Sentence: "middle", weight: 9},
	} {
		tt.addFinding(f)
	}
	if f := tt.report.Findings[0]; f.Sentence != "easy" || f.Runs != 3 || len(f.Scenarios) != 3 || f.Scenarios[0] != "easy" {
		t.Errorf("%+v", f)
	}
}

// TestBeyond: a lock need not survive a fault against which it promises nothing, unless it promises to keep its grants.
func TestBeyond(t *testing.T) {
	for _, test := range []struct {
		scenario string
		can      promise.Set
		want     string // the fault
	}{
		{"gc-pause", promise.Try, ""},
		{"failover", promise.Try, "replication-hold"},
		{"failover", promise.KeepsGrants | promise.AwaitsReplicas, ""},
		{"resent-acquire", promise.Try, "request-resent"},
		{"resent-acquire", promise.RetriesTransientErrors, ""},
		{"power-loss-single", promise.Try, "power-loss"},
		{"redlock-always", promise.Try, ""},
		{"eviction", promise.Try, "eviction"},
		{"clock-drift", promise.Try, "clock-drift"},
	} {
		s, err := scenarios.Load(test.scenario)
		if err != nil {
			t.Fatal(err)
		}
		if fault, why := generator.Beyond(s, test.can); fault != test.want || (why == "") != (fault == "") {
			t.Errorf("%s with %v: %q (%s), want %q", test.scenario, test.can, fault, why, test.want)
		}
	}
}

// TestExitCode: a finding of the lock decides, unless the baseline accepts it; nothing is decided by too few runs.
func TestExitCode(t *testing.T) {
	own := Finding{Own: true, Cause: "stolen", Property: checker.Exclusion}
	accepted := own
	accepted.Accepted = "ann until 2026-12-31"
	enough := Runs{All: 10, Safe: 8, Unsafe: 1, Inconclusive: 1}
	for _, test := range []struct {
		name string
		r    Report
		want int
	}{
		{"safe", Report{Runs: enough}, 0},
		{"own", Report{Runs: enough, Findings: []Finding{own}}, exitFinding},
		{"accepted", Report{Runs: enough, Findings: []Finding{accepted}}, 0},
		{"any lock", Report{Runs: enough, Findings: []Finding{{Cause: "stolen"}}}, 0},
		{"mostly inconclusive", Report{Runs: Runs{All: 10, Safe: 4, Inconclusive: 6}}, exitTooLittle},
		{"few", Report{Runs: Runs{All: 2, Safe: 2}}, exitTooLittle},
		{"few, and a finding", Report{Runs: Runs{All: 1, Unsafe: 1}, Findings: []Finding{own}}, exitFinding},
		{"a client that does not start", Report{Client: []clientcheck.Finding{{Check: clientcheck.Init, Last: true}}}, exitUnable},
		{"a lock that excludes nobody", Report{Client: []clientcheck.Finding{{Check: "acquire", Last: true}}}, exitFinding},
		{"a check that does not matter", Report{Runs: enough, Client: []clientcheck.Finding{{Check: "close"}}}, 0},
	} {
		if got := test.r.ExitCode(); got != test.want {
			t.Errorf("%s: exit code %d, want %d: %s", test.name, got, test.want, test.r.Sentence())
		}
	}
}

// TestBaseline: an entry accepts its cause until its day is over; a wrong file is an error that names the place.
func TestBaseline(t *testing.T) {
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "baseline.json")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	b, err := ReadBaseline(write(`{"accept": [
		{"cause": "stolen", "property": "exclusion", "owner": "ann", "until": "2026-12-31", "reason": "LOCK-1"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	day := func(text string) time.Time {
		at, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	f := Finding{Own: true, Cause: "stolen", Property: checker.Exclusion}
	other := f
	other.Property = checker.Honesty
	if b.of(f, day("2026-12-31 23:59:59")) != "ann until 2026-12-31" || len(b.expired(day("2026-12-31 23:59:59"))) > 0 {
		t.Error("the entry does not accept its cause on its last day")
	}
	if b.of(f, day("2027-01-01 00:00:00")) != "" || len(b.expired(day("2027-01-01 00:00:00"))) != 1 {
		t.Error("the entry is in force after its last day, or there is no note of it")
	}
	if b.of(other, day("2026-12-01 00:00:00")) != "" {
		t.Error("the entry accepts another property")
	}
	for text, want := range map[string]string{
		`{"accept": [{"owner": "ann", "until": "2026-12-31"}]}`:    "entry 1: cause is missing",
		`{"accept": [{"cause": "stolen", "until": "2026-12-31"}]}`: "entry 1: owner is missing",
		`{"accept": [{"cause": "s", "owner": "a", "until": "x"}]}`: `entry 1: until: expected a day such as 2026-12-31, got "x"`,
		"{\"accept\": [\n{\"cuase\": \"s\"}]}":                     `near line 2: json: unknown field "cuase"`,
		"{":                                                        "near line 1: unexpected EOF",
	} {
		if _, err := ReadBaseline(write(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestFiles: every file of a report has its findings, and texts of others are escaped.
func TestFiles(t *testing.T) {
	r := Report{
		Lock: `exec:./lock "<i>"`, Started: time.Unix(0, 0), Finished: time.Unix(60, 0), Topologies: []string{"single"},
		Runs: Runs{All: 10, Safe: 8, Unsafe: 2},
		Findings: []Finding{
			{Own: true, Cause: "stolen", Class: checker.BrokenPromise, Sentence: "Client 1 took `orders` <script>", Runs: 2, Of: 4,
				Scenarios: []string{"mixed", "gc-pause"}, Repeat: "chaos run --scenario mixed", Run: "runs/mixed/1",
				Advice: []Advice{{Text: "Compare before you renew"}}},
			{Cause: "stalled-holder", Sentence: "Client 2 was paused", Runs: 1, Of: 1, Scenarios: []string{"fenced-pause"},
				Because: "fault pause-client"},
		},
		Kept:      []Kept{{Property: checker.Recovery, Runs: 9, Text: "31 probes"}},
		NotTested: []NotTested{{What: "17 scenarios: failover", Why: "topology sentinel", Needs: "--topology sentinel"}},
	}
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"text": text.String()}
	for _, name := range []string{JSONFile, junitFile, summaryFile, PageFile} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	for name, has := range map[string][]string{
		"text": {"1 finding of this lock in 10 runs", "Your lock\n  stolen (broken promise), in 2 of 4 runs of the same scenarios: mixed, gc-pause",
			"change: Compare before you renew", "Any lock of this kind\n  stalled-holder", "recovery  9 runs  31 probes",
			"17 scenarios: failover: topology sentinel (needs --topology sentinel)"},
		JSONFile:    {`"cause": "stolen"`, `"because": "fault pause-client"`},
		summaryFile: {"## ✕ chaos test", "### Your lock", "stolen (broken promise)", "Compare before you renew", "### Holds"},
		PageFile: {"<code>orders</code> &lt;script&gt;", `href="runs/mixed/1/report.html"`, "Compare before you renew",
			"Beyond its promises: fault pause-client", "31 probes", "--topology sentinel"},
	} {
		for _, want := range has {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s lacks %q:\n%s", name, want, files[name])
			}
		}
	}
	if strings.Contains(files[PageFile], "<script>") || strings.Contains(files[PageFile], "<i>") {
		t.Error("the page has text of others unescaped")
	}
	var junit struct {
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Tests    int `xml:"tests,attr"`
	}
	if err := xml.Unmarshal([]byte(files[junitFile]), &junit); err != nil {
		t.Fatal(err)
	}
	if junit.Failures != 1 || junit.Skipped != 1 || junit.Tests != 3 {
		t.Errorf("JUnit: %+v\n%s", junit, files[junitFile])
	}
}
