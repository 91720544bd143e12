package faults

import (
	"context"
	"slices"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// paper is a cluster that is only planned.
type paper struct{ topology cluster.Topology }

func (p paper) Topology() cluster.Topology     { return p.topology.Defaults() }
func (p paper) Nodes() []cluster.Node          { return PlannedNodes(p.topology) }
func (p paper) Endpoints(int) client.Endpoints { return client.Endpoints{} }
func (p paper) Close(context.Context) error    { return nil }

// PlannedNodes are the nodes that a cluster of topology t will have, without addresses.
func PlannedNodes(t cluster.Topology) (nodes []cluster.Node) {
	for i := range t.Size() {
		nodes = append(nodes, cluster.Node{Name: nodeNumber(i + 1)})
	}
	return nodes
}

// PlannedNodes are the things that a fault of row s would have in its power at
// target, as far as that can be known before the run; none for words such as
// master and holder.
func (s Spec) PlannedResources(target string, t cluster.Topology) []Resource {
	name, ok := fixed(s.or(target), t)
	if !ok {
		return nil
	}
	return s.ResourcesAt(paper{t}, name)
}

// fixed is the name that a target stands for in every run.
func fixed(target string, t cluster.Topology) (name string, ok bool) {
	switch shape(target) {
	case Node, Nodes, Client, All:
		return target, true
	case Minority:
		return some(paper{t}, (t.MasterCount()-1)/2), true
	case Majority:
		return some(paper{t}, t.MasterCount()/2+1), true
	case Pair, Servers:
		a, b, _ := cutPair(target)
		from, ok1 := fixed(a, t)
		to, ok2 := fixed(b, t)
		return from + ">" + to, ok1 && ok2
	}
	return "", false
}

// Downs are the nodes that do not serve their clients while a fault of row s is in
// force at target. Those whom only the run can name are counted: others.
func (s Spec) NodesDown(target string, t cluster.Topology) (nodes []string, others int) {
	if !s.Down {
		return nil, 0
	}
	target = s.or(target)
	name, ok := fixed(target, t)
	switch {
	case !ok && slices.Contains([]Target{Master, Replica, Behind, Deciding}, shape(target)):
		return nil, 1
	case !ok || !slices.Contains([]Target{Node, Nodes}, shape(name)):
		return nil, 0 // a link, or a client
	}
	return names(name), 0
}

// or is target, or the default of s.
func (s Spec) or(target string) string {
	if target == "" {
		return string(s.Targets[0])
	}
	return target
}
