package reports

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// cause is what made two holds overlap, as far as the data shows.
type cause string

const (
	byFailover cause = "failover" // granted by one node, then by another one
	byStall    cause = "stall"    // the holder stood still until its lease had ended
	byRestart  cause = "restart"  // a node came back without the lock
	byExpiry   cause = "expiry"   // the promise had ended, why the holder stayed is not seen
	byUnknown  cause = "unknown"
)

// pair is two holds of one lock at once, with everything that explains them.
type pair struct {
	r         *Run
	v         *checker.Violation
	a, b      *hold // a was granted first
	key       string
	seenA     []sighting // nodes seen with a's owner until b was granted
	seenB     []sighting
	ga, gb    sighting // the nodes that granted; empty node: not seen
	hit       *faultLife
	cause     cause
	stale     *history.Touched // a write by a after b had written or been granted; nil: none
	promoted  time.Duration    // when gb's node was first seen as master; 0: not seen
	inferred  bool             // ga was not seen with a's owner, but was the only master then
	unspread  bool             // a's owner was looked for on other nodes and never seen there
	validTill time.Duration    // of a
}

// pairOf finds the two holds of a violation; nil if it is not about two holds.
func pairOf(r *Run, v *checker.Violation) *pair {
	var two []*hold
	for i := range r.holds {
		h := &r.holds[i]
		if r.keyName(h.Key) == v.Key && slices.Contains(v.Events, int(h.Granted)) {
			two = append(two, h)
		}
	}
	if len(two) < 2 {
		two = r.holdsOf(v)
	}
	if len(two) < 2 || two[1].From >= two[0].to {
		return nil // one after the other: a violation of another kind, such as tokens that do not grow
	}
	p := &pair{r: r, v: v, a: two[0], b: two[1], key: v.Key}
	p.validTill = p.a.validUntil()
	p.look()
	p.explain()
	return p
}

// holdsOf finds holds of the violation's owners that were on in its time.
func (r *Run) holdsOf(v *checker.Violation) []*hold {
	var found []*hold
	for i := range r.holds {
		h := &r.holds[i]
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

// look asks the witness who granted what, and the history what was written.
func (p *pair) look() {
	w := &p.r.seen
	p.seenA = w.sightings(p.key, p.r.ownerName(p.a.Owner), p.a.Asked, p.b.From)
	p.seenB = w.sightings(p.key, p.r.ownerName(p.b.Owner), p.b.Asked, p.b.to)
	p.ga, p.gb = w.granter(p.seenA), w.granter(p.seenB)
	if p.ga.node == "" && p.r.Manifest.Topology.Kind != cluster.Quorum {
		if only := w.onlyMaster(p.a.From); only != "" {
			p.ga, p.inferred = sighting{only, p.a.From, "master"}, true
		}
	}
	if p.ga.node != "" {
		others := false
		for _, n := range w.nodes {
			others = others || n != p.ga.node && w.watched(n, p.a.From, p.b.From)
		}
		elsewhere := slices.ContainsFunc(p.seenA, func(s sighting) bool { return s.node != p.ga.node })
		p.unspread = others && !elsewhere
	}
	if p.gb.node != "" {
		p.promoted, _ = w.promotion(p.gb.node, p.a.Asked, p.b.to)
	}
	for i := range p.r.History.Touches {
		t := &p.r.History.Touches[i]
		if t.Time >= p.b.From && t.Owner == p.a.Owner && p.r.keyName(t.Key) == p.key {
			p.stale = t
			break
		}
	}
}

// explain chooses the cause, from what is seen most surely.
func (p *pair) explain() {
	quorum := p.r.Manifest.Topology.Kind == cluster.Quorum
	stalled := p.faultOn(fmt.Sprintf("client:%d", p.a.Client), p.a.Asked)
	outlived := p.validTill > 0 && p.validTill <= p.b.From
	switch {
	case outlived && stalled != nil:
		p.cause, p.hit = byStall, stalled
	case outlived:
		p.cause = byExpiry
	case !quorum && p.ga.node != "" && p.gb.node != "" && p.ga.node != p.gb.node:
		p.cause, p.hit = byFailover, p.faultOn(p.ga.node, p.a.Asked)
	case p.ga.node != "" && p.wentAway(p.ga.node):
		p.cause, p.hit = byRestart, p.faultOn(p.ga.node, p.a.Asked)
	default:
		p.cause = byUnknown
	}
}

// faultOn is the last fault that hit target between from and b's grant; one that
// bit goes before one that did not.
func (p *pair) faultOn(target string, from time.Duration) *faultLife {
	var best *faultLife
	for i := range p.r.faults {
		f := &p.r.faults[i]
		if f.target != target || f.hit() < from || f.inject > p.b.From {
			continue
		}
		if best == nil || len(f.bites) >= len(best.bites) {
			best = f
		}
	}
	return best
}

// wentAway says whether node was down at some time between the two grants.
func (p *pair) wentAway(node string) bool {
	_, ok := p.r.seen.down(node, p.a.From, p.b.From)
	return ok
}

// overlap is how long both held the lock: of the violation if it says so.
func (p *pair) overlap() time.Duration {
	if d := p.v.End - p.v.Start; d > 0 {
		return d
	}
	return min(p.a.to, p.b.to) - p.b.From
}

// who are the two clients in words.
func (p *pair) who() string {
	if p.a.Client == p.b.Client {
		return clientName(p.a.Client) + ", twice,"
	}
	return clientName(p.a.Client) + " and " + clientName(p.b.Client)
}
