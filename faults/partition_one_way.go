package faults

import "github.com/lockchaos/lockchaos/internal/cluster"

// partition-one-way holds back what its target says, while it hears everybody:
// a broken firewall rule, a full queue in one direction. The requests of a
// client do not arrive, a server's answers do not, though it carries out what it is asked.
var partitionOneWaySpec = held.spec(Spec{
	Name:   "partition-one-way",
	Doc:    "holds back what its target sends, while what is sent to it arrives; healing delivers it late.",
	Source: "Jepsen: one-way partitions; Alquraan et al., OSDI 2018: simplex partitions",
	Targets: []Target{Master, Holder, Waiter, Client, Replica, Deciding, Node, Pair, Servers, Minority,
		Majority},
	Down:      true,
	Resources: said,
})

// said is the bytes that a target sends.
func said(_ cluster.Cluster, target string) (all []Resource) {
	if from, to, pair := cutPair(target); pair {
		all = append(all, Resource{Link: cluster.Link{From: from, To: to}, Dir: cluster.Forward})
		if shape(from) == Node {
			all = append(all, Resource{Link: cluster.Link{From: to, To: from}, Dir: cluster.Back})
		}
		return all
	}
	if shape(target) == Client {
		return around(target, cluster.Forward)
	}
	for _, node := range names(target) {
		all = append(all, Resource{Link: cluster.Link{From: cluster.Any, To: node}, Dir: cluster.Back},
			Resource{Link: cluster.Link{From: node, To: cluster.Any}, Dir: cluster.Forward})
	}
	return all
}
