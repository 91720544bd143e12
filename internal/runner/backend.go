package runner

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
)

// RunEnv is where and for what a backend starts servers and clients.
type RunEnv struct {
	Topology     cluster.Topology
	Seed         uint64
	Order        time.Duration        // how long message priorities change, with a scheduler that has them; 0: they may not
	Requirements cluster.Requirements // what the plan's faults need of the servers
	Clients      int
	// PerProcess is how many clients share a process where clients are processes; 0 and 1: none do.
	PerProcess int
	Lock       string
	Row        *client.Spec // a lock that is in no catalogue, instead of Lock; nil: none
	Dir        *rundir.Dir
	Ledger     *ledger.Ledger
	Client     []string // the command that is a native client on stdio
	Image      string   // of containers; empty: the default
}

// Backend starts clusters and clients of one kind: real processes, containers,
// or a simulation.
type Backend interface {
	Name() string
	// Start returns when the cluster is ready for clients.
	Start(ctx context.Context, s RunEnv) (cluster.Cluster, error)
	// Client starts client number i, which has still to be set up.
	Client(ctx context.Context, s RunEnv, i int) (client.Client, error)
	Clock
}

// Clock is the rest of what a backend knows.
type Clock interface {
	Time
	Mono() int64                 // the clock that its clients stamp their promises with, in nanoseconds
	Versions() map[string]string // of what it runs, such as redis
}

// Time is how time passes on a backend, and in what order those act who act at
// one instant. On real servers time is real and nothing orders anybody; in a
// simulation time is virtual, and everybody who may act has a lane of his own,
// so that the same seed makes the same run.
type Time interface {
	// Live calls f where the backend's time passes and returns its error. The
	// context that f gets ends when ctx does, or soon after.
	Live(ctx context.Context, f func(ctx context.Context) error) error
	// Lane is ctx with a lane of that name, which nobody else has at the time.
	Lane(ctx context.Context, name string) context.Context
	// Turn returns when it is the turn of the lane in ctx, at once without one.
	Turn(ctx context.Context)
}

// realTime is the [Time] of real servers.
type realTime struct{}

func (realTime) Live(ctx context.Context, f func(context.Context) error) error { return f(ctx) }

func (realTime) Lane(ctx context.Context, _ string) context.Context { return ctx }

func (realTime) Turn(context.Context) {}

// BackendSpec is a row of the catalogue of backends.
type BackendSpec struct {
	Name   string
	Doc    string                            // one sentence
	Unable func(s scenarios.Scenario) string // what this machine or the backend lacks for it; "" if nothing
	New    func() Backend
}

// Backends is every backend, the one that auto prefers first.
func Backends() []BackendSpec { return []BackendSpec{processSpec, simSpec, dockerSpec} }
