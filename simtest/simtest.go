// Package simtest runs a lock of your own in go test, on simulated Redis servers in virtual time; it is part of the
// API that this module promises to keep. Hundreds of runs take seconds, and a run that failed can be repeated with
// its seed.
//
// Read [Test] first; [Run] is for one scenario. The lock must connect through [client.Setup.Dial], must do no other
// input or output, and must not hold a sync.Mutex while it waits for a reply: virtual time would not advance. chaos run
// tests the same lock on real servers.
package simtest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/simulated"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/scenarios"
	"github.com/lockchaos/lockchaos/topology"
)

// Lock is the lock under test. Only Open is required; promises that are not stated are not judged.
type Lock struct {
	Name string // for reports
	// Open connects one client to s.Endpoints with s.Dial. A lock with promise.ReportsLoss calls notify when a hold is
	// lost, also when a lease that nobody renews ends; for any other lock, clients watch the validity that it promises.
	// A lock whose own watchdog has renewed a hold calls notify with the new end of the validity as Deadline, see
	// [client.Reply].
	Open func(s client.Setup, notify func(client.Reply)) (client.Locker, error)
	// Can are the promises of the lock, such as [promise.Permits] or [promise.Fair]. A workload requests
	// nothing else.
	Can promise.Set
	// Definite reports that err proves that an operation had no effect and never will; after other errors the outcome is
	// unknown. nil: no error proves it, except errors with a Code.
	Definite func(err error) bool
	// Code is a short word for an error: "held" or "busy", another owner has the lock, or "timeout", the wait ran out. An
	// acquire with such an error was certainly not granted, and the checkers count how long it waited. Other words, such
	// as "lost" or "not-held", are for reports; "" is "error". nil: every error but client.ErrNotHeld is "error".
	Code func(err error) string
	// Undone reports that err, of a failed acquire, means that the lock was granted and the grant was undone. nil: none.
	Undone func(err error) bool
	// PersistentKeys are the keys that the lock on key leaves at the servers without a time to live, or with one of more
	// than two minutes beyond its lease, such as the counter of its tokens. Other keys that stay are leaks. nil: none.
	PersistentKeys func(key string) []string
}

// Config selects the runs. Its zero value selects, for [Run], 20 generated scenarios on a single server, and for
// [Test], the scenarios on a single server that fit the lock.
type Config struct {
	// Scenario is a name from chaos list scenarios, or a YAML file; its lock is replaced. "": each seed has a scenario of
	// its own, which is generated for the promises of the lock (docs/reference/generated-scenarios.md). A correct lock is
	// safe in all of them. Not for Test, which chooses the scenarios.
	Scenario   string
	Topologies []string          // to choose scenarios for, such as "single" and "sentinel"; nil: single
	Set        []string          // changes of the scenario, path=value, as for chaos run --set; not for Test
	Options    map[string]string // of the lock; nil: the scenario's. Promises of the lock are in Lock.Can alone
	Seeds      int               // number of runs; 0 is 20; not for Test
	Time       time.Duration     // of Test; 0 is 30 s. At most 5 s with -test.short; ends before the test's deadline
	First      uint64            // seed of the first run; the others follow
	// Out is the directory for the first run of each verdict, and for an example of each finding of Test with its
	// scenario. "": none is kept, but Test uses [testing.T.ArtifactDir] with -test.artifacts.
	Out string
}

// Result is how the runs ended.
type Result struct {
	Safe         int    // runs
	Unsafe       int    // runs
	Inconclusive int    // runs that tested too little
	Seed         uint64 // of the first unsafe run
	Sentence     string // the verdict of that run, in a sentence
	Dir          string // its directory, with Config.Out; chaos report shows it
	Runs         []Outcome
	Findings     []Finding // of Test, the lock's own first
}

// Outcome is how one run ended.
type Outcome struct {
	Scenario   string
	Seed       uint64
	Verdict    checker.Verdict
	Sentence   string // why
	Properties map[checker.Property]checker.Outcome
	// Unexpected are the violated properties that the scenario does not expect to be violated. Some scenarios, such as
	// key-deleted, make every lock unsafe; these are the other mistakes of the lock.
	Unexpected []checker.Property
	Dir        string // its directory, if it was kept
}

// First is the first run with that verdict; ok is false if there is none.
func (r Result) First(v checker.Verdict) (o Outcome, ok bool) {
	n := slices.IndexFunc(r.Runs, func(o Outcome) bool { return o.Verdict == v })
	if n < 0 {
		return Outcome{}, false
	}
	return r.Runs[n], true
}

// Outcomes counts the runs by the outcome of a property.
func (r Result) Outcomes(p checker.Property) map[checker.Outcome]int {
	all := map[checker.Outcome]int{}
	for _, o := range r.Runs {
		if outcome, judged := o.Properties[p]; judged {
			all[outcome]++
		}
	}
	return all
}

// ownLock takes the place of the scenario's lock until the scenario is checked: a lock of which nothing is known.
const ownLock = client.ExecPrefix + "simtest"

// Run executes the runs. It fails t if a run cannot be executed, but not if it is unsafe: a test of a lock that should
// be safe checks that [Result.Unsafe] is 0 and that [Result.Safe] is not.
func Run(t testing.TB, c Config, l Lock) Result {
	t.Helper()
	if c.Seeds == 0 {
		c.Seeds = 20
	}
	var r Result
	var scenario scenarios.Scenario
	for i := range uint64(max(c.Seeds, 0)) {
		if i == 0 || c.Scenario == "" {
			var err error
			if scenario, err = load(c, l, c.First+i); err != nil {
				t.Fatal(err)
			}
		}
		seed := c.First + i
		out, err := simulate(scenario, l, seed, "go test -run '^"+t.Name()+"$'", "")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		o := outcomeOf(out)
		if _, seen := r.First(o.Verdict); !seen && c.Out != "" {
			o.Dir = keep(t, c, scenario, l, o)
		}
		r.add(o)
	}
	return r
}

// load loads the scenario for l, or draws one from a seed.
func load(c Config, l Lock, seed uint64) (s scenarios.Scenario, err error) {
	own := scenarios.Override{As: "the lock of the test", Path: "lock", Value: ownLock}
	overrides := append(scenarios.Sets(c.Set), own)
	if c.Scenario == "" {
		s, err = c.lock(l).Draw(seed, overrides...)
	} else {
		s, err = scenarios.Load(c.Scenario, overrides...)
	}
	if err != nil {
		return s, err
	}
	if s, err = s.ForLock(l.Can); err == nil && c.Options != nil {
		s.Options = c.Options
	}
	return s, err
}

// lock is l on the topologies of c.
func (c Config) lock(l Lock) generator.Lock {
	g := generator.Lock{Spec: *l.row(), Kinds: c.Topologies}
	if g.Name = ownLock; len(g.Kinds) == 0 {
		g.Kinds = []string{topology.Single}
	}
	return g
}

// simulate makes one run, on disk below dir unless that is empty.
func simulate(s scenarios.Scenario, l Lock, seed uint64, repeat, dir string) (*runner.Outcome, error) {
	out, err := runner.Run(context.Background(), runner.Options{
		Scenario: s, Seed: seed, Backend: simulated.New(backend.Options{}), Why: "required by simtest", Lock: l.row(),
		Version: "simtest", Repeat: repeat, InMemory: dir == "", Out: dir,
	})
	// Pools of go-redis keep timers of this simulation, which must not reach the next.
	runtime.GC()
	runtime.GC()
	return out, err
}

// keep repeats a run on disk and returns its directory. With a lock that is not deterministic it may end otherwise.
func keep(t testing.TB, c Config, s scenarios.Scenario, l Lock, o Outcome) string {
	t.Helper()
	out, err := simulate(s, l, o.Seed, "go test -run '^"+t.Name()+"$'", c.Out)
	if err != nil {
		t.Fatalf("keeping the run with seed %d: %v", o.Seed, err)
	}
	if out.Judgement.Sentence != o.Sentence {
		t.Logf("seed %d: repeated, the run ends otherwise (%s): the lock must draw random numbers from Setup.Seed",
			o.Seed, out.Judgement.Sentence)
	}
	return out.Dir.Path
}

// outcomeOf is how a run ended.
func outcomeOf(out *runner.Outcome) Outcome {
	j := out.Judgement
	run := Outcome{Scenario: out.Manifest.Scenario, Seed: out.Manifest.Seed, Verdict: j.Verdict, Sentence: j.Sentence}
	run.Properties = map[checker.Property]checker.Outcome{}
	for _, p := range j.Results {
		run.Properties[p.Property] = p.Outcome
		expected := expect.Outcomes(out.Manifest.Expect[string(p.Property)])
		if p.Outcome == checker.Violated && !slices.Contains(expected, string(checker.Violated)) {
			run.Unexpected = append(run.Unexpected, p.Property)
		}
	}
	return run
}

// add counts a run.
func (r *Result) add(o Outcome) {
	switch o.Verdict {
	case checker.Safe:
		r.Safe++
	case checker.Inconclusive:
		r.Inconclusive++
	case checker.Unsafe:
		if r.Unsafe++; r.Unsafe == 1 {
			r.Seed, r.Sentence, r.Dir = o.Seed, o.Sentence, o.Dir
		}
	}
	r.Runs = append(r.Runs, o)
}

// row is l as a row of the catalog of locks.
func (l Lock) row() *client.Spec {
	code := func(err error) string {
		if l.Code != nil {
			if word := l.Code(err); word != "" {
				return word
			}
		}
		if errors.Is(err, client.ErrNotHeld) {
			return "not-held"
		}
		return "error"
	}
	return &client.Spec{
		Name: l.Name, Doc: "a lock of a test.", Open: l.Open, Can: l.Can, Code: code, Undone: l.Undone,
		PersistentKeys: l.PersistentKeys,
		Definite: func(err error) bool {
			refused := slices.Contains([]string{"held", "busy", "timeout"}, code(err))
			return refused || l.Definite != nil && l.Definite(err)
		},
	}
}
