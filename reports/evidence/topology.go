package evidence

import (
	"slices"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/promise"
)

// Quorum reports whether the nodes are independent masters.
func (r *Run) Quorum() bool { return r.Manifest.Topology.Kind == cluster.Quorum }

// ByMajority reports whether the nodes agree on every grant: the members of an ensemble or of etcd.
func (r *Run) ByMajority() bool { return r.Manifest.Topology.Ensemble() }

// OfSession reports whether the lock ends with a session at a database, which keeps it in memory alone.
func (r *Run) OfSession() bool {
	return r.Manifest.Topology.Kind == cluster.Postgres && !r.Manifest.Can.Has(promise.KeepsGrants)
}

// Unsampled is why no sample shows who held a lock at the servers, for the end of a sentence; "" if samples do.
func (r *Run) Unsampled() string {
	switch {
	case r.Manifest.Topology.Kind == cluster.None:
		return "the topology has no servers"
	case r.Manifest.Topology.Given():
		return "the run did not start the servers, and nothing shows who holds locks there"
	case len(r.Samples) == 0:
		return "nodes were not sampled"
	case r.Manifest.Topology.LacksSamples() != "":
		return "the topology has no program `sample` that prints who holds the locks"
	}
	return ""
}

// Ensemble reports whether the nodes are the members of a ZooKeeper ensemble.
func (r *Run) Ensemble() bool { return r.Manifest.Topology.Kind == cluster.ZooKeeper }

// Entry is the word for the record of a holder at the servers: a node in ZooKeeper, a key elsewhere.
func (r *Run) Entry() string {
	if r.Ensemble() {
		return "node"
	}
	return "key"
}

// Persistence is how servers keep their data, where the scenario says so.
func (r *Run) Persistence() string {
	options := r.Manifest.Topology.Options
	switch {
	case options["appendonly"] == "yes" && options["appendfsync"] != "":
		return ", `appendfsync " + options["appendfsync"] + "`"
	case options["forceSync"] == "no":
		return ", `forceSync=no`"
	case options["unsafe-no-fsync"] == "yes":
		return ", `--unsafe-no-fsync`"
	}
	return ""
}

// Option is an option of the lock in the scenario as run; "" if it has no value.
func (r *Run) Option(name string) string { return r.Manifest.Option(name) }

// AreNodes reports whether every target is a node, and not a client, a link or a group.
func (r *Run) AreNodes(targets map[string]bool) bool {
	for target := range targets {
		if !slices.ContainsFunc(r.Manifest.Nodes, func(n cluster.Node) bool { return n.Name == target }) {
			return false
		}
	}
	return true
}

// LastEvent is the index of the last event.
func (r *Run) LastEvent() int { return r.History.Events - 1 }
