// Package faults breaks what locks stand on: one file for each fault. A fault
// is injected, proves by an observed effect that it bit, and is healed. It
// knows the cluster's abilities and the clients' processes, and nothing of the
// workload or of what is judged.
//
// Read [Spec] and [Injection] first. What to break when is not decided here:
// that is a plan, and plans are part of scenarios.
package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Env is what a fault works on, and how hard.
type Env struct {
	Cluster cluster.Cluster
	Clients Clients
	Keys    []string      // names of the locks of the run
	Amount  time.Duration // see Spec.Amount; 0: the fault's default
	Rand    *rand.Rand    // of this injection alone; nil: nothing is drawn
}

// Clients is what can be done to the lock users. Clients count from 0.
type Clients interface {
	Stop(client int) error     // returns when the client stands still
	Continue(client int) error // no error if it was not stopped
	Crash(client int) error    // ends it at once; nothing starts it again
}

// Injection is a fault that is in force. Its methods may be called from several goroutines.
type Injection interface {
	// Bite waits until the fault's effect has been observed and says what it
	// was, for people. An error means that it has not bitten (ctx ended).
	Bite(ctx context.Context) (proof string, err error)
	// Heal undoes the fault and says how. Twice is once.
	Heal(ctx context.Context) (how string, err error)
}

// Spec is a row of the catalogue.
type Spec struct {
	Name   string
	Doc    string // one sentence
	Source string // the paper, article or issue whose fault this is
	// Targets are the target words it understands; the first is the default.
	Targets []Target
	// HealLast: healed only when the workload has ended, because healing it
	// under load would be another fault (a master that comes back empty).
	HealLast bool
	// Stroke: it is over when it has bitten, and healed then, unless the step says for how long.
	OneShot bool
	// Down: a node that it is aimed at does not serve its clients while it is in force.
	Down bool
	// Process: it is one of a client's whole process, and of all others that live in it.
	WholeProcess bool
	// Amount says how much of it there is, for a step's amount; nil: it comes in one size.
	Amount *Amount
	// Needs is the kinds of topology that can have it; nil is any.
	Topologies []string
	// Requires is what servers have to be started with.
	Requires cluster.Requirements
	// Unable says what this backend lacks for it; "" if nothing.
	Lacks func(c cluster.Cluster) string
	// Resources is what it has in its power while it is in force; nil: its target, against its own kind.
	Resources func(c cluster.Cluster, target string) []Resource
	// Inject breaks target, which is a resolved name: "n2", "client:3".
	Inject func(ctx context.Context, env Env, target string) (Injection, error)
}

// Amount is the one number that a fault may take from a step.
type Amount struct {
	Doc      string        // what it is, for people
	Default  time.Duration // of a step that says nothing
	Min, Max time.Duration // bounds, both allowed; 0 is never allowed
}

// Refuses says why amount cannot be the fault's; 0 is the default and always good.
func (s Spec) CheckAmount(amount time.Duration) error {
	a := s.Amount
	switch {
	case amount == 0:
		return nil
	case a == nil:
		return fmt.Errorf("fault %s takes no amount: leave it out", s.Name)
	case amount < a.Min || amount > a.Max:
		return fmt.Errorf("fault %s: amount is %s, from %v to %v, not %v", s.Name, a.Doc, a.Min, a.Max, amount)
	}
	return nil
}

// amount is the step's, or the default of s.
func (s Spec) amount(env Env) time.Duration {
	if env.Amount != 0 || s.Amount == nil {
		return env.Amount
	}
	return s.Amount.Default
}

// NeedsTopology says why that kind of topology cannot have the fault; "" if it can.
func (s Spec) WrongTopology(kind string) string {
	if s.Topologies == nil || slices.Contains(s.Topologies, kind) {
		return ""
	}
	return "only topology " + strings.Join(s.Topologies, ", ") + " can have it"
}

// Check says, before anything is broken, why cluster c cannot have the fault.
func (s Spec) Check(c cluster.Cluster) error {
	why := s.WrongTopology(c.Topology().Kind)
	if why == "" {
		why = s.Lacks(c)
	}
	if why != "" {
		return fmt.Errorf("fault %s: %s", s.Name, why)
	}
	return nil
}

// pollEvery is how often an effect is looked for that announces itself by nothing.
const pollEvery = 2 * time.Millisecond

// await polls seen until it says how the effect was observed, or ctx ends.
func await(ctx context.Context, what string, seen func() (string, bool)) (string, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if proof, ok := seen(); ok {
			return proof, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("%s was not seen: %w", what, ctx.Err())
		}
	}
}

// can says whether cluster c has ability A, and what it lacks if not.
func can[A any](c cluster.Cluster, what string) string {
	if _, ok := c.(A); ok {
		return ""
	}
	return "this backend cannot " + what
}
