package faults

import (
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// partition holds back all bytes of its target in both directions, as a network
// does that has come apart: nothing is refused, nobody is told, and what was
// under way arrives, late, when it is healed. That is what breaks locks, and
// what a reset connection cannot show.
var partitionSpec = held.spec(Spec{
	Name: "partition",
	Doc: "holds back everything between its target (a client, a node, a client and a node, a minority or majority, " +
		"ring, bridge) and the rest; healing delivers it late.",
	Source: "Kleppmann 2016; Jepsen's partitions: majorities-ring, bridge",
	Targets: []Target{
		Holder, Waiter, Client, Master, Replica, Deciding, Node, Nodes, Pair, Servers, Minority, Majority, Ring, Bridge,
	},
	Down:      true,
	Resources: partitioned,
})

func partitioned(c cluster.Cluster, target string) (all []Resource) {
	nodes := c.Nodes()
	apart := func(i, j int) { all = append(all, between(nodes[i].Name, nodes[j].Name)...) }
	switch Target(target) {
	case Ring: // who is not next to each other
		for i := range nodes {
			for j := i + 2; j < len(nodes); j++ {
				if i > 0 || j < len(nodes)-1 {
					apart(i, j)
				}
			}
		}
		return all
	case Bridge: // the halves, and the first of the second half between them
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
