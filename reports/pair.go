package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// pair is two overlapping holds of one lock, with everything that explains them.
type pair struct {
	r            *Run
	v            *checker.Violation
	a, b         *hold // a was granted first
	key          string
	observedA    []history.Sample // nodes with a's owner until b was granted
	observedB    []history.Sample
	granterA     string // the node that granted a; empty: unknown
	granterB     string
	stale        *history.Touched // a write by a after b had written or been granted; nil: none
	promoted     *history.Sample  // the first in which b's granter is master; nil: none
	inferred     bool             // granterA is not in observedA, but was the only master then
	unreplicated bool             // other nodes were sampled, and never had a's owner
	validUntil   time.Duration    // of a
}

// pairOf finds the two holds of a violation; nil if it is not about two holds.
func pairOf(r *Run, v *checker.Violation) *pair {
	two := allOf(r.holds, func(h *hold) bool {
		return r.keyName(h.Key) == v.Key && slices.Contains(v.Events, int(h.Granted))
	})
	if len(two) < 2 {
		two = r.holdsOf(v)
	}
	if len(two) < 2 || two[1].From >= two[0].to {
		return nil // no overlap: a violation of another kind, such as tokens that do not grow
	}
	p := &pair{r: r, v: v, a: two[0], b: two[1], key: v.Key}
	p.validUntil = p.a.validUntil()
	p.findNodes()
	return p
}

// holdsOf finds the holds of the violation's owners during the violation.
func (r *Run) holdsOf(v *checker.Violation) []*hold {
	var found []*hold
	for h := range each(r.holds) {
		if r.keyName(h.Key) != v.Key || h.From > v.End || h.to < v.Start || h.From == h.to && v.Start != h.From {
			continue
		}
		for k, c := range v.Clients {
			if c == h.Client && (k >= len(v.Owners) || v.Owners[k] == r.ownerName(h.Owner)) {
				found = append(found, h)
				break
			}
		}
	}
	if len(v.Clients) < 2 || len(found) < 2 || found[1].From > v.End {
		return nil
	}
	return found[:2]
}

// findNodes finds out from samples which node granted which hold, and from the history what was written.
func (p *pair) findNodes() {
	w := &p.r.witness
	p.observedA = w.firstWith(p.key, p.r.ownerName(p.a.Owner), interval{p.a.Asked, p.b.From}, p.a.From)
	p.observedB = w.firstWith(p.key, p.r.ownerName(p.b.Owner), interval{p.b.Asked, p.b.to}, p.b.From)
	p.granterA, p.granterB = w.granter(p.observedA, p.a.From), w.granter(p.observedB, p.b.From)
	if nodes := p.r.Manifest.Nodes; len(nodes) == 1 {
		p.granterA, p.granterB = nodes[0].Name, nodes[0].Name
	}
	if !p.r.quorum() && !p.r.byMajority() {
		if p.granterA == "" {
			p.granterA = w.changed(p.key, p.a.From)
		}
		if p.granterB == "" {
			p.granterB = w.changed(p.key, p.b.From)
		}
	}
	if p.granterA == "" && !p.r.quorum() {
		if only := w.soleMaster(p.a.From); only != "" {
			p.granterA, p.inferred = only, true
		}
	}
	if p.granterB == "" && !p.r.quorum() {
		p.granterB = w.soleMaster(p.b.From)
	}
	if p.granterA != "" {
		others := false
		for _, n := range w.nodes {
			others = others || n != p.granterA && w.sampled(n, p.a.From, p.b.From)
		}
		elsewhere := slices.ContainsFunc(p.observedA, func(s history.Sample) bool { return s.Node != p.granterA })
		p.unreplicated = others && !elsewhere
	}
	if p.granterB != "" {
		p.promoted = w.promotion(p.granterB, p.a.Asked, p.b.to)
	}
	p.stale = firstOf(p.r.History.Touches, func(t *history.Touched) bool {
		return t.Time >= p.b.From && t.Owner == p.a.Owner && p.r.keyName(t.Key) == p.key
	})
}

// overlap is the length of the overlap: that of the violation if it has one.
func (p *pair) overlap() time.Duration {
	if d := p.r.during(p.v).length(); d > 0 {
		return d
	}
	return min(p.a.to, p.b.to) - p.b.From
}

// outlived reports whether the validity of the first hold had ended when the second was granted.
func (p *pair) outlived() bool { return p.validUntil > 0 && p.validUntil <= p.b.From }

// faultOn is the last fault on target between from and the second grant that except does not accept (nil: any),
// preferably one that took effect.
func (p *pair) faultOn(target string, from time.Duration, except func(*injection) bool) *injection {
	var best *injection
	for f := range each(p.r.faults) {
		if f.on(target) && f.effectTime() >= from && f.inject <= p.b.From && (except == nil || !except(f)) &&
			(best == nil || len(f.effects) >= len(best.effects)) {
			best = f
		}
	}
	return best
}

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
