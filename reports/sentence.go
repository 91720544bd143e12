package reports

import (
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// nodes names the node that granted a hold, or counts those of a quorum.
func (p *pair) nodes(s *proofs, all []history.Sample) string {
	w := &p.r.witness
	switch {
	case len(p.r.Manifest.Nodes) == 1:
		return p.r.Manifest.Nodes[0].Name
	case len(all) == 0 && len(p.r.Samples) == 0:
		return "an unknown node (nodes were not sampled)"
	case len(all) == 0:
		return "an unknown node (no sample shows the grant)"
	case !p.r.quorum():
		return w.granter(all)
	}
	var names []string
	var from []point
	for _, node := range w.nodes { // in their order, not in that of the samples
		for i := range all {
			if all[i].Node == node {
				names = append(names, node)
				from = append(from, sampleAt(&all[i]))
			}
		}
	}
	text := s.add(proofNodes, fmt.Sprintf("%d of %s", len(names), format.Count(len(w.nodes), "node")), from...)
	text += " (" + strings.Join(names, ", ") + ")"
	if len(all) < len(w.nodes)/2+1 { // a majority granted it, but not all were sampled in time
		return "a majority, seen on " + text
	}
	return text
}

// faultVerbs is what a fault does to n targets, as a predicate.
func faultVerbs(fault string, n int) string {
	text := faultVerb(fault)
	if rest, passive := strings.CutPrefix(text, "was "); passive && n > 1 {
		return "were " + rest
	}
	return text
}

// faultVerb is what a fault does to its target, as a predicate.
func faultVerb(fault string) string {
	switch fault {
	case "kill":
		return "was killed"
	case "client-crash":
		return "was killed"
	case "pause-client", "pause-node":
		return "was paused"
	case "replication-hold":
		return "had its replication held back"
	case "restart":
		return "was restarted"
	case "restart-empty":
		return "was restarted empty"
	case "power-loss":
		return "lost power"
	case "partition", "isolate", "partition-one-way", "split-brain", "unplug":
		return "was cut off"
	case "failover", "cluster-failover", "cluster-failover-force", "cluster-takeover":
		return "was failed over"
	case "clock-jump", "clock-drift":
		return "had its clock changed"
	case "flushall", "key-deleted", "eviction":
		return "lost keys"
	case "reply-lost", "grant-reply-lost":
		return "lost replies"
	case "reply-late", "grant-reply-late":
		return "had replies held back"
	case "message-lost":
		return "lost a message"
	case "connection-reset", "packet-lost":
		return "had its connections reset"
	case "slow-node", "latency", "jitter", "packet-late", "bandwidth":
		return "was slowed down"
	}
	return "was hit by fault " + quote(fault)
}
