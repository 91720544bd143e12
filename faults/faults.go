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
	"time"

	"github.com/lockchaos/lockchaos/cluster"
)

// Env is what faults work on.
type Env struct {
	Cluster cluster.Cluster
	Clients Clients
}

// Clients is what can be done to the lock users. Clients count from 0.
type Clients interface {
	Stop(client int) error     // returns when the client stands still
	Continue(client int) error // no error if it was not stopped
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
	// Needs is the only topology that can have it; "" is any.
	Needs string
	// Unable says what this backend lacks for it; "" if nothing.
	Unable func(c cluster.Cluster) string
	// Inject breaks target, which is a resolved name: "n2", "client:3".
	Inject func(ctx context.Context, env Env, target string) (Injection, error)
}

// NeedsTopology says why that kind of topology cannot have the fault; "" if it can.
func (s Spec) NeedsTopology(kind string) string {
	if s.Needs == "" || s.Needs == kind {
		return ""
	}
	return "only topology " + s.Needs + " can have it"
}

// Check says, before anything is broken, why cluster c cannot have the fault.
func (s Spec) Check(c cluster.Cluster) error {
	why := s.NeedsTopology(c.Topology().Kind)
	if why == "" {
		why = s.Unable(c)
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
