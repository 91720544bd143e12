package reports

import (
	"slices"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// quorum reports whether the nodes are independent masters.
func (r *Run) quorum() bool { return r.Manifest.Topology.Kind == cluster.Quorum }

// byMajority reports whether the nodes agree on every grant: the members of an ensemble or of etcd.
func (r *Run) byMajority() bool { return !r.Manifest.Topology.Redis() }

// ensemble reports whether the nodes are the members of a ZooKeeper ensemble.
func (r *Run) ensemble() bool { return r.Manifest.Topology.Kind == cluster.ZooKeeper }

// entry is what a holder has at the servers: a node of ZooKeeper, a key elsewhere.
func (r *Run) entry() string {
	if r.ensemble() {
		return "node"
	}
	return "key"
}

// option is an option of the lock in the scenario as run; "" if it has no value.
func (r *Run) option(name string) string { return r.Manifest.Option(name) }

// areNodes reports whether every target is a node, and not a client, a link or a group.
func (r *Run) areNodes(targets map[string]bool) bool {
	for target := range targets {
		if !slices.ContainsFunc(r.Manifest.Nodes, func(n cluster.Node) bool { return n.Name == target }) {
			return false
		}
	}
	return true
}

// lastEvent is the index of the last event.
func (r *Run) lastEvent() int { return r.History.Events - 1 }
