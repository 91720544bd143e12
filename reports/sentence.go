package reports

import (
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
)

// by names the node that granted a hold, or says why it is not known.
func (p *pair) by(s *proofs, h *hold) string {
	switch by := p.knownBy(s, h); {
	case by != "", p.r.alone(): // of a history alone no server is known, and the page says so once
		return by
	case len(p.r.Samples) == 0:
		return " by an unknown node (nodes were not sampled)"
	}
	return " by an unknown node (no sample shows the grant)"
}

// knownBy names the node that granted a hold: " by n1"; or those of a quorum on which
// it was seen; "" if it is not known.
func (p *pair) knownBy(s *proofs, h *hold) string {
	w, all, granter := &p.r.witness, p.observedA, p.granterA
	if h == p.b {
		all, granter = p.observedB, p.granterB
	}
	switch {
	case len(p.r.Manifest.Nodes) == 1:
		return " by " + p.r.Manifest.Nodes[0].Name
	case p.r.byMajority() && granter != "":
		return " (" + granter + " was the leader)"
	case !p.r.quorum() && granter != "":
		return " by " + granter
	case !p.r.quorum() || len(all) == 0:
		return ""
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
	return " (seen on " + text + ": " + strings.Join(names, ", ") + ")"
}

// when says at or by which instant a fault took effect: that of a failover is observed later.
func (f *injection) when(s *proofs) string {
	if strings.Contains(f.name, "failover") || f.is("cluster-takeover") {
		return "by " + s.instant(f.took())
	}
	return "at " + s.instant(f.took())
}

// faultVerbs is what a fault does to n targets, as a predicate.
func faultVerbs(fault string, n int) string {
	text := faultVerb(fault)
	if n > 1 {
		text = strings.Replace(text, " its ", " their ", 1)
		if rest, passive := strings.CutPrefix(text, "was "); passive {
			return "were " + rest
		}
	}
	return text
}

// back is that n nodes were up again after a fault that ended them, as a predicate.
func (f *injection) back(n int) string {
	text := "was back"
	if n > 1 {
		text = "were back"
	}
	if f.is("restart-empty") {
		text += ", empty,"
	}
	return text
}

// faultVerb is what a fault does to its target, as a predicate.
func faultVerb(fault string) string {
	switch fault {
	case "kill", "client-crash", "client-restart", "restart", "restart-empty":
		return "was killed"
	case "pause-client", "pause-node":
		return "was paused"
	case "replication-hold":
		return "stopped replicating"
	case "replication-lag":
		return "replicated late"
	case "wait-starved":
		return "got no acknowledgements from its replicas"
	case "power-loss":
		return "lost power"
	case "slow-disk":
		return "had its fsyncs delayed"
	case "partition", "isolate", "partition-one-way", "split-brain", "unplug":
		return "was cut off"
	case "failover", "cluster-failover", "cluster-failover-force", "cluster-takeover":
		return "was failed over"
	case "manual-promotion":
		return "was promoted by hand"
	case "endpoint-change":
		return "was affected when the master's address moved"
	case "clock-jump", "clock-drift":
		return "had its clock changed"
	case "flushall", "key-deleted", "eviction":
		return "lost keys"
	case "foreign-waiter":
		return "got a queue entry of another program"
	case "queue-deleted":
		return "lost a wait queue"
	case "node-deleted":
		return "lost holders"
	case "reply-lost", "grant-reply-lost":
		return "lost replies"
	case "request-resent", "request-duplicated":
		return "had its requests executed twice"
	case "reply-late", "grant-reply-late":
		return "had its replies delayed"
	case "message-lost":
		return "missed a message"
	case "pubsub-cut":
		return "disconnected its subscribers"
	case "slot-migration":
		return "took over the slots of the locks"
	case "connection-reset", "packet-lost":
		return "had its connections reset"
	case "silent-connections":
		return "lost its connections without a reset"
	case "slow-node", "latency", "jitter", "packet-late", "bandwidth":
		return "was slowed down"
	}
	return refusalVerb(fault)
}

// refusalVerb is [faultVerb] of a fault that makes a server refuse requests.
func refusalVerb(fault string) string {
	switch fault {
	case "rights-revoked", "subscribe-refused", "channel-refused":
		return "refused subscriptions"
	case "scripts-refused":
		return "refused to run scripts"
	case "script-flush":
		return "lost its cached scripts"
	case "foreign-data":
		return "had data of another program under the names of locks"
	case "memory-full":
		return "had no memory left for writes"
	case "snapshots-failing":
		return "could not save its data and refused writes"
	case "busy-script":
		return "was busy with a script"
	case "connection-limit":
		return "refused connections"
	case "read-only-demotion":
		return "was made a read-only replica"
	}
	return "was hit by fault " + quote(fault)
}
