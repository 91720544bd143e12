package runner

import (
	"context"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// Site is where and for what a backend starts servers and clients.
type Site struct {
	Topology cluster.Topology
	Clients  int
	Lock     string
	Dir      *rundir.Dir
	Ledger   *ledger.Ledger
	Client   []string // the command that is a native client on stdio
}

// Backend starts clusters and clients of one kind: real processes, containers,
// or a simulation.
type Backend interface {
	Name() string
	// Start returns when the cluster is ready for clients.
	Start(ctx context.Context, s Site) (cluster.Cluster, error)
	// Client starts client number i, which has still to be set up.
	Client(ctx context.Context, s Site, i int) (client.Client, error)
	Clock
}

// Clock is the rest of what a backend knows.
type Clock interface {
	Mono() int64                 // the clock that its clients stamp their promises with, in nanoseconds
	Versions() map[string]string // of what it runs, such as redis
}

// BackendSpec is a row of the catalogue of backends.
type BackendSpec struct {
	Name   string
	Doc    string                          // one sentence
	Unable func(t cluster.Topology) string // what this machine lacks for it; "" if nothing
	New    func() Backend
}

// Backends is every backend, the one that auto prefers first.
func Backends() []BackendSpec { return []BackendSpec{processSpec} }
