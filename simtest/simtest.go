// Package simtest puts a lock of your own through failures in go test: real
// client code, simulated Redis servers, virtual time. Hundreds of runs take
// seconds, and a run that failed is the same run again with its seed.
//
// Read [Run] first. The lock has to reach its servers through [client.Setup.Dial],
// must do no other input or output, and must not hold a sync.Mutex while it
// waits for a reply: virtual time would stand still. It says nothing about what
// the simulated servers cannot do; for that there is chaos run.
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

// Lock is a lock under test: how it is opened, and what its errors mean.
type Lock struct {
	Name string
	// Open connects one client with s.Dial to s.Endpoints. notify may be told of
	// holds that were lost or renewed (see client.Reply); it may be ignored.
	Open func(s client.Setup, notify func(client.Reply)) (client.Locker, error)
	// Definite says that an error proves that nothing happened and never will;
	// every other error leaves the outcome unknown. nil: no error proves it.
	Definite func(err error) bool
}

// Config is what the lock has to go through. Scenario is enough.
type Config struct {
	Scenario string   // a name of chaos list scenarios, or a YAML file
	Set      []string // changes of it, path=value, as chaos run --set takes them
	Seeds    int      // runs; 0 is 20
	First    uint64   // seed of the first run; the others follow
	Out      string   // folder for the runs that were unsafe; "": they are not kept
}

// Result is how the runs ended.
type Result struct {
	Safe, Unsafe, Inconclusive int
	Seed                       uint64 // of the first unsafe run
	Sentence                   string // what happened in it
	Dir                        string // its directory, if Config.Out is set: chaos report shows it
}

// Run makes the runs and fails t if one cannot be made. It judges nothing: a
// test that wants its lock to be safe looks at [Result.Unsafe], and at
// [Result.Safe], because a run that tested nothing is not safe.
func Run(t testing.TB, c Config, l Lock) Result {
	t.Helper()
	scenario, err := scenarios.Load(c.Scenario, c.Set)
	if err != nil {
		t.Fatal(err)
	}
	if c.Seeds == 0 {
		c.Seeds = 20
	}
	var r Result
	for i := range uint64(max(c.Seeds, 0)) {
		r.one(t, c, scenario, l, c.First+i)
	}
	return r
}

func (r *Result) one(t testing.TB, c Config, scenario scenarios.Scenario, l Lock, seed uint64) {
	t.Helper()
	o := runner.Options{
		Scenario: scenario, Seed: seed, Backend: runner.NewSim(nil), Why: "asked for by a test", Lock: l.row(),
		Version: "simtest", Repeat: "go test -run '^" + t.Name() + "$'",
		InMemory: c.Out == "" || r.Dir != "", // or it may have to be kept
	}
	if !o.InMemory {
		folder, err := os.MkdirTemp("", "lockchaos-simtest-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(folder)
		o.Out = folder
	}
	out, err := runner.Run(context.Background(), o)
	// What package-level pools keep of one simulation must not reach the next (go-redis keeps timers).
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

// keep moves the first unsafe run to where the user wants it.
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

// row is l as the harness has locks.
func (l Lock) row() *client.Spec {
	definite := l.Definite
	if definite == nil {
		definite = func(error) bool { return false }
	}
	return &client.Spec{
		Name: l.Name, Doc: "a lock of a test", Open: l.Open, Definite: definite,
		Code: func(err error) string {
			if errors.Is(err, client.ErrNotHeld) {
				return "not-held"
			}
			return "error"
		},
	}
}
