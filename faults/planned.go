package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/topology"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// planned is a cluster that has not been started.
type planned struct{ topology cluster.Topology }

func (p planned) Topology() cluster.Topology       { return p.topology.Defaults() }
func (p planned) Nodes() []cluster.Node            { return plannedNodes(p.topology) }
func (p planned) Endpoints(int) topology.Endpoints { return topology.Endpoints{} }
func (p planned) Close(context.Context) error      { return nil }

// plannedNodes are the nodes that a cluster of topology t will have, without addresses.
func plannedNodes(t cluster.Topology) (nodes []cluster.Node) {
	for i := range t.Size() {
		nodes = append(nodes, cluster.Node{Name: nodeName(i + 1)})
	}
	return nodes
}

// PlannedTarget is target as far as it is known before the run: the fault's default instead of "", and the nodes of
// minority and majority. [Resolve] does the rest.
func (s Spec) PlannedTarget(target string, t cluster.Topology) string {
	switch target = s.orDefault(target); shape(target) {
	case Minority:
		return firstNodes((t.Voters() - 1) / 2)
	case Majority:
		return firstNodes(t.Voters()/2 + 1)
	}
	return target
}

// PlannedResources are the resources that a fault of row s would control at a planned target; none at words such as
// master and holder, which only the run can resolve.
func (s Spec) PlannedResources(target string, t cluster.Topology) []Resource {
	if !isName(target) {
		return nil
	}
	return s.ResourcesAt(planned{t}, target)
}

// isName reports whether a planned target is the same in every run.
func isName(target string) bool {
	switch shape(target) {
	case Node, Nodes, Client, All:
		return true
	case Pair, Servers, Watch:
		from, to, _ := cutPair(target)
		return (isName(from) || isSentinel(from)) && (isName(to) || isSentinel(to))
	}
	return false
}

// NodesDown are the nodes that do not serve clients while a fault of row s is in force at a planned target. Those that
// only the run can name are counted in others.
func (s Spec) NodesDown(target string) (nodes []string, others int) {
	if !s.Down {
		return nil, 0
	}
	switch shape(target) {
	case Node, Nodes:
		return nodesOf(target), 0
	case Master, Replica, Behind, Deciding:
		return nil, 1
	}
	return nil, 0 // a link, or a client
}
