// Package simtest runs a lock of your own in go test, on simulated Redis servers in virtual time; it is part of the
// API that this module promises to keep. Hundreds of runs take seconds, and a run that failed can be repeated with
// its seed.
//
// Read [Run] first. The lock must connect through [client.Setup.Dial], must do no other input or output, and must not
// hold a sync.Mutex while it waits for a reply: virtual time would not advance. What the simulated servers cannot do
// is not tested; for that there is chaos run.
package simtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Lock is the lock under test.
type Lock struct {
	Name string // for reports
	// Open connects one client to s.Endpoints with s.Dial. The lock may call notify when a hold is lost or renewed, see
	// client.Reply.
	Open func(s client.Setup, notify func(client.Reply)) (client.Locker, error)
	// Definite reports that err proves that an operation had no effect and never will; after other errors the outcome
	// is unknown. nil: no error proves it.
	Definite func(err error) bool
}

// Config is what to run. Only Scenario is required.
type Config struct {
	Scenario string   // a name from chaos list scenarios, or a YAML file
	Set      []string // changes of the scenario, path=value, as for chaos run --set
	Seeds    int      // number of runs; 0 is 20
	First    uint64   // seed of the first run; the others follow
	Out      string   // directory for the first unsafe run; "": it is not kept
}

// Result is how the runs ended.
type Result struct {
	Safe         int    // runs
	Unsafe       int    // runs
	Inconclusive int    // runs that tested too little
	Seed         uint64 // of the first unsafe run
	Sentence     string // the verdict of that run, in a sentence
	Dir          string // its directory, with Config.Out; chaos report shows it
}

// Run makes the runs. It fails t if a run cannot be made, and not if a run is unsafe: a test of a lock that should be
// safe checks that [Result.Unsafe] is 0 and that [Result.Safe] is not.
func Run(t testing.TB, c Config, l Lock) Result {
	t.Helper()
	scenario, err := scenarios.Load(c.Scenario, scenarios.Sets(c.Set)...)
	if err != nil {
		t.Fatal(err)
	}
	if c.Seeds == 0 {
		c.Seeds = 20
	}
	var r Result
	for i := range uint64(max(c.Seeds, 0)) {
		r.add(t, c, scenario, l, c.First+i)
	}
	return r
}

// add makes one run.
func (r *Result) add(t testing.TB, c Config, scenario scenarios.Scenario, l Lock, seed uint64) {
	t.Helper()
	o := runner.Options{
		Scenario: scenario, Seed: seed, Backend: runner.NewSim(nil), Why: "required by simtest", Lock: l.row(),
		Version: "simtest", Repeat: "go test -run '^" + t.Name() + "$'",
		InMemory: c.Out == "" || r.Dir != "", // a run on disk may be kept
	}
	if !o.InMemory {
		dir, err := os.MkdirTemp("", "lockchaos-simtest-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		o.Out = dir
	}
	out, err := runner.Run(context.Background(), o)
	// Pools of go-redis keep timers of this simulation, which must not reach the next.
	runtime.GC()
	runtime.GC()
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	switch out.Judgement.Verdict {
	case checker.Safe:
		r.Safe++
	case checker.Inconclusive:
		r.Inconclusive++
	case checker.Unsafe:
		if r.Unsafe++; r.Unsafe == 1 {
			r.Seed, r.Sentence = seed, out.Judgement.Sentence
		}
		if err := r.keep(c, out.Dir); err != nil {
			t.Fatal(err)
		}
	}
}

// keep copies the first unsafe run to Config.Out.
func (r *Result) keep(c Config, dir *rundir.Dir) error {
	if c.Out == "" || r.Dir != "" {
		return nil
	}
	to := filepath.Join(c.Out, dir.ID)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	r.Dir = to
	return os.CopyFS(to, os.DirFS(dir.Path))
}

// row is l as a row of the catalog of locks.
func (l Lock) row() *client.Spec {
	definite := l.Definite
	if definite == nil {
		definite = func(error) bool { return false }
	}
	return &client.Spec{
		Name: l.Name, Doc: "a lock of a test.", Open: l.Open, Definite: definite,
		Code: func(err error) string {
			if errors.Is(err, client.ErrNotHeld) {
				return "not-held"
			}
			return "error"
		},
	}
}
