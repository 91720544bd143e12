package reports

import (
	"fmt"
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
	if f.class == history.FaultDemotes {
		return say("by %s", f.took())
	}
	return say("at %s", f.took())
}

// predicate is what a fault did to n targets: "was killed".
func (f *injection) predicate(n int) string {
	if f.verb == "" {
		return plural("was hit by fault "+quote(f.name), n)
	}
	return plural(f.verb, n)
}

// plural is a predicate of one subject with n subjects.
func plural(predicate string, n int) string {
	if n <= 1 {
		return predicate
	}
	predicate = strings.Replace(predicate, " its ", " their ", 1)
	if rest, passive := strings.CutPrefix(predicate, "was "); passive {
		return "were " + rest
	}
	return predicate
}

// back is that n nodes were up again after a fault that ended them, as a predicate.
func (f *injection) back(n int) string {
	if f.empties() {
		return plural("was back, empty,", n)
	}
	return plural("was back", n)
}
