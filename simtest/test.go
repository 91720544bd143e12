package simtest

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/backend/simulated"
	"github.com/lockchaos/lockchaos/internal/evaluation/tally"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/story"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Finding is one cause of violations, in all runs of a [Test] that show it.
type Finding struct {
	Name     string // of its sub-test: the cause, or the property if the cause is not known
	Own      bool   // a correct lock with these promises does not have it; otherwise any lock of this kind has it
	Property checker.Property
	Class    checker.Class
	Sentence string // about the example
	Advice   []string
	Runs     int    // that show it
	Of       int    // all runs of the test
	Scenario string // of the example, for [Config]; a generated one needs no name, only its seed
	Seed     uint64 // of the example
	YAML     string // the smallest scenario that still shows it with this seed; "": there was no time to look for it
	File     string // with that text, with Config.Out
	Dir      string // of the example, with Config.Out
}

// The parts of the time after which no story begins, and no run if there are findings to shrink.
const (
	storyShare = 0.6
	runShare   = 0.85
)

// tester is a test in progress.
type tester struct {
	t      *testing.T
	c      Config
	l      Lock
	tally  *tally.Tally
	began  time.Time
	time   time.Duration
	result Result
}

// Test tests l against its stated promises: for [Config.Time], it runs the scenarios of the catalog that fit them, and
// then generated ones. Each cause of violations that a correct lock does not have fails a sub-test of its name, with
// advice and the code that repeats the run; causes that any lock of this kind has are logged, as is a summary. If a
// slow machine makes too few runs in that time, Test runs more. It also fails t if too little was tested to decide.
func Test(t *testing.T, c Config, l Lock) Result {
	t.Helper()
	if c.Scenario != "" || c.Set != nil || c.Seeds != 0 {
		t.Fatal("simtest.Test chooses the scenarios: Config.Scenario, Config.Set and Config.Seeds are for simtest.Run")
	}
	if f := flag.Lookup("test.artifacts"); c.Out == "" && f != nil && f.Value.String() == "true" {
		c.Out = t.ArtifactDir()
	}
	stories, unfit := tally.Plan(c.lock(l))
	e := &tester{t: t, c: c, l: l, tally: tally.New(unfit), began: time.Now(), time: c.duration(t)}
	e.tally.Found = func(f tally.Finding) { t.Log(f.Line()) }
	e.stories(stories)
	e.generated()
	e.tally.SumUp()
	e.tally.AddNotStated(l.Can, 0, "Lock.Can")
	for _, f := range e.tally.Findings {
		e.result.Findings = append(e.result.Findings, e.finding(f))
	}
	e.report()
	return e.result
}

// duration is the time of the test, which ends before the deadline of t.
func (c Config) duration(t *testing.T) time.Duration {
	d := cmp.Or(c.Time, 30*time.Second)
	if testing.Short() {
		d = min(d, 5*time.Second)
	}
	if end, limited := t.Deadline(); limited {
		d = min(d, time.Until(end)*3/4)
	}
	return d
}

// beforeDeadline reports whether more time is left before the deadline of the test than has passed.
func (e *tester) beforeDeadline() bool {
	end, limited := e.t.Deadline()
	return !limited || time.Until(end) > time.Since(e.began)
}

// left reports whether a part of the time is left.
func (e *tester) left(share float64) bool {
	return time.Since(e.began) < time.Duration(share*float64(e.time))
}

// stories runs the scenarios that fit, as long as there is time.
func (e *tester) stories(all []scenarios.Scenario) {
	for _, s := range all {
		servers := s
		servers.Lock = "" // the test's lock can be simulated
		switch why := simulated.Spec().Missing(servers); {
		case why != "":
			e.tally.Missed(s.Name, why)
		case !e.left(storyShare):
			e.tally.Missed(s.Name, tally.NoTime)
		default:
			e.run(s.Name, e.c.First)
		}
	}
}

// generated spends the rest of the time on generated scenarios, and more if that is needed to decide.
func (e *tester) generated() {
	undecided := func() bool { return len(e.tally.Own()) == 0 && (e.left(1) || e.tally.Few() && e.beforeDeadline()) }
	for seed := e.c.First; e.left(runShare) || undecided(); seed++ {
		e.run("", seed)
	}
}

// run makes one run of a scenario, or of the generated one of a seed.
func (e *tester) run(name string, seed uint64) {
	c := e.c
	c.Scenario = name
	s, err := load(c, e.l, seed)
	if err != nil {
		e.t.Fatal(err)
	}
	out, err := simulate(s, e.l, seed, e.code(name, seed), "")
	if err != nil {
		e.t.Fatalf("scenario %s, seed %d: %v", s.Name, seed, err)
	}
	run, err := read(s, out)
	if err != nil {
		e.t.Fatalf("scenario %s, seed %d: %v", s.Name, seed, err)
	}
	e.tally.Add(run)
	o := outcomeOf(out)
	if _, seen := e.result.First(o.Verdict); !seen && o.Verdict != checker.Unsafe && c.Out != "" {
		o.Dir = keep(e.t, c, s, e.l, o) // of the unsafe ones, there are examples
	}
	e.result.add(o)
}

// read is a run in memory with its story.
func read(s scenarios.Scenario, out *runner.Outcome) (*evidence.Run, error) {
	h, err := history.ReadAll(bytes.NewReader(out.History), rundir.HistoryFile)
	if err != nil {
		return nil, err
	}
	out.Manifest.YAML = s.YAML()
	run := evidence.New(out.Manifest, h, nil, out.Judgement)
	story.Write(run)
	return run, nil
}

// code is the Go code that repeats a run.
func (e *tester) code(scenario string, seed uint64) string {
	config := ""
	if scenario != "" {
		config = fmt.Sprintf("Scenario: %q, ", scenario)
	} else if e.c.Topologies != nil {
		config = fmt.Sprintf("Topologies: %#v, ", e.c.Topologies)
	}
	return fmt.Sprintf("simtest.Run(t, simtest.Config{%sFirst: %d, Seeds: 1}, lock)", config, seed)
}

// finding is a finding for users, with the smallest scenario that shows it.
func (e *tester) finding(from tally.Finding) Finding {
	f := Finding{
		Name: from.ID(), Own: from.Own, Property: from.Property, Class: from.Class, Sentence: tally.Plain(from.Sentence),
		Runs: from.Runs, Of: from.Of, Seed: from.Seed, Scenario: from.Scenario,
		Advice: format.Texts(from.Advice, func(a tally.Advice) string { return tally.Plain(a.Text) }),
	}
	if _, drawn := generator.SeedOf(f.Scenario); drawn {
		f.Scenario = ""
	}
	c := e.c
	c.Scenario = f.Scenario
	s, err := load(c, e.l, f.Seed)
	if err != nil {
		e.t.Fatal(err)
	}
	if f.Own {
		f.YAML = e.shrink(s, f)
	}
	if e.c.Out == "" {
		return f
	}
	i := slices.IndexFunc(e.result.Runs, func(o Outcome) bool { return o.Scenario == s.Name && o.Seed == f.Seed })
	f.Dir = keep(e.t, c, s, e.l, e.result.Runs[i])
	if e.result.Runs[i].Dir = f.Dir; e.result.Dir == "" {
		e.result.Dir = f.Dir
	}
	if f.YAML != "" {
		f.File = filepath.Join(f.Dir, "smallest.yaml")
		if err := os.WriteFile(f.File, []byte(f.YAML), 0o600); err != nil {
			e.t.Fatal(err)
		}
	}
	return f
}

// shrink is the smallest scenario found in the time that is left that shows f; "" if there is none.
func (e *tester) shrink(s scenarios.Scenario, f Finding) string {
	ctx, cancel := context.WithDeadline(context.Background(), e.began.Add(e.time))
	defer cancel()
	run := func(ctx context.Context, j explore.Job) (explore.Result, error) {
		if err := ctx.Err(); err != nil {
			return explore.Result{}, err
		}
		s, err := scenarios.Parse([]byte(j.Scenario))
		if err != nil {
			return explore.Result{}, err
		}
		out, err := simulate(s, e.l, j.Seed, "", "")
		if err != nil {
			return explore.Result{Failure: err.Error()}, nil
		}
		return explore.Result{Kinds: explore.KindsOf(out.Judgement), Sentence: out.Judgement.Sentence}, nil
	}
	s.Production, s.Source, s.About = "", "", "" // it is no story any more
	kind := explore.Kind{Property: f.Property, Class: f.Class}
	got, _ := explore.Shrink(ctx, run, s, explore.Job{Seed: f.Seed}, kind) // the end of the time is no error
	return got.YAML
}

// report fails a sub-test for each finding of the lock, and logs a summary.
func (e *tester) report() {
	e.t.Helper()
	for i, f := range e.result.Findings {
		if f.Own {
			e.t.Run(f.Name, func(t *testing.T) { t.Error(e.text(f, e.tally.Findings[i])) })
		}
	}
	e.t.Log(e.summary())
	if e.tally.TooLittle() && len(e.tally.Own()) == 0 {
		e.t.Errorf("too little was tested to decide: of %d runs, %d are inconclusive", e.tally.Runs.All,
			e.tally.Runs.Inconclusive)
	}
}

// text is a finding for people.
func (e *tester) text(f Finding, from tally.Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s, %s\n", f.Sentence, from.Name(), from.Frequency())
	for i, a := range from.Advice {
		kind := "change"
		if a.Measured {
			kind = "measured"
		}
		fmt.Fprintf(&b, "%s: %s\n", kind, f.Advice[i])
	}
	fmt.Fprintf(&b, "repeat: %s\n", e.code(f.Scenario, f.Seed))
	switch {
	case f.File != "":
		fmt.Fprintf(&b, "the smallest scenario that shows it: %s\n", e.code(f.File, f.Seed))
	case f.YAML != "":
		fmt.Fprintf(&b, "the smallest scenario that shows it with this seed:\n%s", f.YAML)
	}
	if f.Dir != "" {
		fmt.Fprintf(&b, "the run, for chaos report: %s\n", f.Dir)
	}
	return b.String()
}

// summary describes the tests, for people.
func (e *tester) summary() string {
	var b strings.Builder
	r := e.tally.Result
	fmt.Fprintf(&b, "%s (%d generated) in %s: %s of this lock\n", format.Count(r.Runs.All, "run"), r.Runs.Generated,
		format.Duration(time.Since(e.began)), format.Count(len(r.Own()), "finding"))
	for _, f := range r.Common() {
		fmt.Fprintf(&b, "any lock of this kind: %s, %s: %s\n", f.Name(), f.Frequency(), tally.Plain(f.Sentence))
	}
	for _, h := range r.Held {
		fmt.Fprintf(&b, "holds: %s, %s: %s\n", h.Property, h.Frequency(), h.Text)
	}
	fmt.Fprintf(&b, "tested with %s\n", r.Conditions)
	for _, n := range r.NotTested {
		fmt.Fprintf(&b, "not tested: %s: %s\n", n.Subject, n.Why)
	}
	return b.String()
}
