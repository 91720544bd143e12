package faults

import (
	"context"
	"slices"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// planned is a cluster that has not been started.
type planned struct{ topology cluster.Topology }

func (p planned) Topology() cluster.Topology     { return p.topology.Defaults() }
func (p planned) Nodes() []cluster.Node          { return PlannedNodes(p.topology) }
func (p planned) Endpoints(int) client.Endpoints { return client.Endpoints{} }
func (p planned) Close(context.Context) error    { return nil }

// PlannedNodes are the nodes that a cluster of topology t will have, without addresses.
func PlannedNodes(t cluster.Topology) (nodes []cluster.Node) {
	for i := range t.Size() {
		nodes = append(nodes, cluster.Node{Name: nodeName(i + 1)})
	}
	return nodes
}

// PlannedResources are what a fault of row s would control at target, as far as that is known before the run: nothing
// for words such as master and holder.
func (s Spec) PlannedResources(target string, t cluster.Topology) []Resource {
	name, ok := plannedName(s.orDefault(target), t)
	if !ok {
		return nil
	}
	return s.ResourcesAt(planned{t}, name)
}

// plannedName is what a target stands for in every run of topology t.
func plannedName(target string, t cluster.Topology) (name string, ok bool) {
	switch shape(target) {
	case Node, Nodes, Client, All:
		return target, true
	case Minority:
		return firstNodes((t.MasterCount() - 1) / 2), true
	case Majority:
		return firstNodes(t.MasterCount()/2 + 1), true
	case Pair, Servers:
		a, b, _ := cutPair(target)
		from, ok1 := plannedName(a, t)
		to, ok2 := plannedName(b, t)
		return from + ">" + to, ok1 && ok2
	}
	return "", false
}

// NodesDown are the nodes that do not serve clients while a fault of row s is in force at target. Those that only the
// run can name are counted in others.
func (s Spec) NodesDown(target string, t cluster.Topology) (nodes []string, others int) {
	if !s.Down {
		return nil, 0
	}
	target = s.orDefault(target)
	name, ok := plannedName(target, t)
	switch {
	case !ok && slices.Contains([]Target{Master, Replica, Behind, Deciding}, shape(target)):
		return nil, 1
	case !ok || !slices.Contains([]Target{Node, Nodes}, shape(name)):
		return nil, 0 // a link, or a client
	}
	return nodesOf(name), 0
}
