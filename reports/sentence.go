package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// by names the node that granted a hold, or says why it is not known.
func (p *pair) by(h *hold) sentence {
	switch by := p.knownBy(h); {
	case by.text != "", p.r.alone(): // of a history alone no server is known, and the page says so once
		return by
	case len(p.r.Samples) == 0:
		return say(" by an unknown node (nodes were not sampled)")
	}
	return say(" by an unknown node (no sample shows the grant)")
}

// knownBy names the node that granted a hold: " by n1"; or those of a quorum on which
// it was seen; empty if it is not known.
func (p *pair) knownBy(h *hold) sentence {
	w, all, granter := &p.r.witness, p.observedA, p.granterA
	if h == p.b {
		all, granter = p.observedB, p.granterB
	}
	switch {
	case len(p.r.Manifest.Nodes) == 1:
		return say(" by %s", p.r.Manifest.Nodes[0].Name)
	case p.r.byMajority() && granter != "":
		return say(" (%s was the leader)", granter)
	case !p.r.quorum() && granter != "":
		return say(" by %s", granter)
	case !p.r.quorum() || len(all) == 0:
		return sentence{}
	}
	var names []string
	var from []point
	for _, node := range w.nodes { // in their order, not in that of the samples
		for _, s := range allOf(all, func(s *history.Sample) bool { return s.Node == node }) {
			names = append(names, node)
			from = append(from, sampleAt(s))
		}
	}
	seen := proved(proofNodes, fmt.Sprintf("%d of %s", len(names), format.Count(len(w.nodes), "node")), from...)
	return say(" (seen on %s: %s)", seen, strings.Join(names, ", "))
}

// when says at or by which instant a fault took effect: that of a failover is observed later.
func (f *injection) when() sentence {
	if strings.Contains(f.name, "failover") || f.is("cluster-takeover") {
		return say("by %s", f.took())
	}
	return say("at %s", f.took())
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
	for _, row := range []struct {
		verb   string
		faults []string
	}{
		{"was killed", []string{"kill", "client-crash", "client-restart", "restart", "restart-empty"}},
		{"was paused", []string{"pause-client", "pause-node"}},
		{"stopped replicating", []string{"replication-hold"}},
		{"replicated late", []string{"replication-lag"}},
		{"got no acknowledgements from its replicas", []string{"wait-starved"}},
		{"lost power", []string{"power-loss"}},
		{"had its fsyncs delayed", []string{"slow-disk"}},
		{"was cut off", []string{"partition", "isolate", "partition-one-way", "split-brain", "unplug"}},
		{"was failed over", []string{"failover", "cluster-failover", "cluster-failover-force", "cluster-takeover"}},
		{"was promoted by hand", []string{"manual-promotion"}},
		{"was affected when the master's address moved", []string{"endpoint-change"}},
		{"had its clock changed", []string{"clock-jump", "clock-drift"}},
		{"lost keys", []string{"flushall", "key-deleted", "eviction"}},
		{"got a queue entry of another program", []string{"foreign-waiter"}},
		{"lost a wait queue", []string{"queue-deleted"}},
		{"lost holders", []string{"node-deleted"}},
		{"lost replies", []string{"reply-lost", "grant-reply-lost"}},
		{"had its requests executed twice", []string{"request-resent", "request-duplicated"}},
		{"had its replies delayed", []string{"reply-late", "grant-reply-late"}},
		{"missed a message", []string{"message-lost"}},
		{"disconnected its subscribers", []string{"pubsub-cut"}},
		{"took over the slots of the locks", []string{"slot-migration"}},
		{"had its connections reset", []string{"connection-reset", "packet-lost"}},
		{"lost its connections without a reset", []string{"silent-connections"}},
		{"was slowed down", []string{"slow-node", "latency", "jitter", "packet-late", "bandwidth"}},
		{"refused subscriptions", []string{"rights-revoked", "subscribe-refused", "channel-refused"}},
		{"refused to run scripts", []string{"scripts-refused"}},
		{"lost its cached scripts", []string{"script-flush"}},
		{"had data of another program under the names of locks", []string{"foreign-data"}},
		{"had no memory left for writes", []string{"memory-full"}},
		{"could not save its data and refused writes", []string{"snapshots-failing"}},
		{"was busy with a script", []string{"busy-script"}},
		{"refused connections", []string{"connection-limit"}},
		{"was made a read-only replica", []string{"read-only-demotion"}},
	} {
		if slices.Contains(row.faults, fault) {
			return row.verb
		}
	}
	return "was hit by fault " + quote(fault)
}
