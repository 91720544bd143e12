package faults

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// partition-one-way holds the messages that its target sends, while it still receives everything: a wrong firewall
// rule, a full queue in one direction. A client's requests do not arrive; a server executes its requests, and its
// replies do not arrive.
var partitionOneWaySpec = hold().spec(Spec{
	Name:   "partition-one-way",
	Doc:    "holds what its target sends, while what is sent to it arrives; healing delivers it late.",
	Source: "Jepsen: one-way partitions; Alquraan et al., OSDI 2018: simplex partitions",
	Class:  history.FaultCuts,
	Object: history.ObjectTraffic,
	Verb:   "was cut off",
	Targets: []Target{Master, Holder, Waiter, Client, Replica, Deciding, Node, Pair, Servers, Minority,
		Majority, Nodes},
	Down:      true,
	Resources: sentBy,
})

// sentBy is the traffic that a target sends.
func sentBy(_ cluster.Cluster, target string) (all []Resource) {
	if from, to, pair := cutPair(target); pair {
		all = append(all, link(from, to, cluster.Forward))
		if shape(from) == Node {
			all = append(all, link(to, from, cluster.Back))
		}
		return all
	}
	if shape(target) == Client {
		return around(target, cluster.Forward)
	}
	for _, node := range nodesOf(target) {
		all = append(all, link(cluster.Any, node, cluster.Back), link(node, cluster.Any, cluster.Forward))
	}
	return all
}
