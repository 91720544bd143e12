package faults

import (
	"cmp"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// gated is all that a run can do to servers that it did not start: look at them, and set the gates between them and its
// clients.
type gated struct {
	planned
	cluster.Links
	cluster.Witness
}

// Foreign says why a fault may not be injected at a planned target of servers that the run did not start; "" if it acts
// only on the run's own clients and their connections. failover: their owner has allowed failovers.
func (s Spec) Foreign(target string, t cluster.Topology, failover bool) (why string) {
	c := gated{planned: planned{t}}
	if s.Name == failoverSpec.Name || s.Name == clusterFailoverSpec.Name {
		if !failover {
			return "it needs --allow failover"
		}
		return s.WrongTopology(t.Kind)
	}
	if why := cmp.Or(s.WrongTopology(t.Kind), s.Lacks(c)); why != "" {
		return why + ", which the run did not start"
	}
	if s.WholeProcess {
		return ""
	}
	for _, r := range s.ResourcesAt(c, example(s.PlannedTarget(target, t))) {
		if _, isClient := cluster.ClientNumber(r.Link.From); r.Name == "" && !isClient && r.Link.From != cluster.Any &&
			r.Link.To != cluster.Any {
			return "the connections between servers have no gates, because the run did not start them"
		}
	}
	return ""
}

// example is a target in which names stand for words that only the run can resolve.
func example(target string) string {
	if from, to, pair := cutPair(target); pair {
		return example(from) + ">" + example(to)
	}
	switch shape(target) {
	case Holder, Waiter:
		return string(Client)
	case Master, Replica, Behind, Deciding:
		return string(Node)
	}
	return target
}
