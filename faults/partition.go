package faults

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// partition holds all traffic of its target in both directions, as a partitioned network does: nothing is refused, no
// end is notified, and messages in flight arrive late when it is healed. That late arrival breaks locks; a reset
// connection does not show it.
var partitionSpec = hold().spec(Spec{
	Name: "partition",
	Doc: "holds all traffic between its target (a client, a node, a client and a node, a minority or majority, ring, " +
		"bridge) and the rest; healing delivers it late.",
	Source: "Kleppmann 2016; Jepsen's partitions: majorities-ring, bridge",
	Class:  history.FaultCuts,
	Object: history.ObjectTraffic,
	Verb:   "was cut off",
	Targets: []Target{
		Holder, Waiter, Client, Master, Replica, Deciding, Node, Nodes, Pair, Servers, Watch, Minority, Majority, Ring,
		Bridge,
	},
	Down:      true,
	Resources: partitioned,
})

func partitioned(c cluster.Cluster, target string) (all []Resource) {
	nodes := c.Nodes()
	apart := func(i, j int) { all = append(all, between(nodes[i].Name, nodes[j].Name)...) }
	switch Target(target) {
	case Ring: // each node reaches its two neighbors only
		for i := range nodes {
			for j := i + 2; j < len(nodes); j++ {
				if i > 0 || j < len(nodes)-1 {
					apart(i, j)
				}
			}
		}
		return all
	case Bridge: // two halves, and the first node of the second half reaches both
		middle := len(nodes) / 2
		for i := range middle {
			for j := middle + 1; j < len(nodes); j++ {
				apart(i, j)
			}
		}
		return all
	}
	return around(target, cluster.Both)
}
