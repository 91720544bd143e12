// Package backend is the contract between the runner and the backends, which start servers and clients and provide the
// clock: the interface of a backend and the rows of their catalog. Packages servers and simulated implement it.
package backend

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Env describes a run to the backend that starts its servers and clients.
type Env struct {
	Topology     cluster.Topology
	Requirements cluster.Requirements // of the plan's faults
	Lock         client.Spec
	Clients      int
	PerProcess   int           // clients per process, where clients are processes; 0 is 1
	Duration     time.Duration // how long clients start new operations
	InitTimeout  time.Duration // within which a client must reply to init
	Seed         uint64        // of every random choice of the backend
	Priorities   bool          // deliver messages by random priorities, if the backend decides their order
	Dir          *rundir.Dir   // nil: the run leaves nothing on disk
	Ledger       *ledger.Ledger
	// Note records an observation about a client, as an event of the nemesis: its name, target and text.
	Note func(f, target, detail string)
}

// Backend starts servers and clients of one kind: processes, containers or simulated ones. One Backend serves one
// run.
type Backend interface {
	// Start returns when the cluster is ready for clients.
	Start(ctx context.Context, e Env) (cluster.Cluster, error)
	// Client starts client i, which has not been set up yet.
	Client(ctx context.Context, e Env, i int) (client.Client, error)
	// Facts is complete once Start has returned; Name and Deterministic are always set.
	Facts() Facts
	Time
}

// Facts are the properties of a backend that affect its runs.
type Facts struct {
	Name          string
	Deterministic bool              // the same seed makes the same history
	Versions      map[string]string // of the programs that it runs, such as redis
	Delivery      string            // the order in which messages arrive, if not by their latencies
	Sampling      Sampling
}

// SampleEvery is the shortest time between two samples of one node.
const SampleEvery = 8 * time.Millisecond

// Sampling is how the witness samples nodes.
type Sampling struct {
	Every time.Duration // between two samples of one node
	Thin  bool          // record only samples that show a change, are due, or are close to a fault
}

// Time is how time passes on a backend, and who acts first at one instant. On real servers the machine decides. In
// a simulation time is virtual and every actor has a scheduler slot of its own, so that the seed decides.
type Time interface {
	// Live calls f where the backend's time passes and returns its error. The context of f ends when ctx does, or
	// shortly after.
	Live(ctx context.Context, f func(ctx context.Context) error) error
	// Actor returns ctx with the scheduler slot of an actor of that name, which no other may use at the same time.
	Actor(ctx context.Context, name string) context.Context
	// Turn waits for the scheduler slot in ctx, if it has one.
	Turn(ctx context.Context)
	// Mono is the clock, in nanoseconds, with which clients stamp until when a hold is valid.
	Mono() int64
}

// RealTime is the [Time] of real servers.
type RealTime struct{}

// Live implements [Time].
func (RealTime) Live(ctx context.Context, f func(context.Context) error) error { return f(ctx) }

// Actor implements [Time].
func (RealTime) Actor(ctx context.Context, _ string) context.Context { return ctx }

// Turn implements [Time].
func (RealTime) Turn(context.Context) {}

// Mono is CLOCK_MONOTONIC, which all processes of a machine share.
func (RealTime) Mono() int64 { return client.MonotonicNow() }

// Spec is a row of the catalog of backends.
type Spec struct {
	Name    string
	Doc     string                            // one sentence
	Missing func(s scenarios.Scenario) string // the missing part of this machine or the backend for s; "": none
	New     func(o Options) Backend
	// Flags returns the flags of chaos run that repeat o; nil: none.
	Flags func(o Options) []string
}

// RepeatFlags are the flags of chaos run that repeat o.
func (s Spec) RepeatFlags(o Options) []string {
	if s.Flags == nil {
		return nil
	}
	return s.Flags(o)
}

// Options are the settings of backends that users choose. Each backend reads its own and ignores the others.
type Options struct {
	Client []string // process, docker: the command that is a native client on standard input and output
	Image  string   // docker: of the containers; "" is the default image
	// Open (sim) completes a row of the catalog whose lock needs a client that not every program links: see packages
	// internal/locks/zookeeper and etcd. nil: rows stay as they are.
	Open func(row client.Spec) client.Spec
	// Stalled (sim) is called with advice when the code of the lock keeps virtual time from passing. Only the end of
	// the program can stop such code, so Stalled should exit. nil: it panics.
	Stalled func(advice string)
}
