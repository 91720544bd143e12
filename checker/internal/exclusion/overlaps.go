package exclusion

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
)

// overlapQuery says which pairs of holds to look for.
type overlapQuery struct {
	slack time.Duration                    // shorter overlaps are not certain
	end   func(*ledger.Hold) time.Duration // of a hold
	share bool                             // two readers may overlap
	keys  []bool                           // keys to search; nil: all
}

// pairSweep goes through the holds of one key in the order of their grants. Those that may not have ended are in two
// lists, because readers need not be compared with readers, of which there may be many.
type pairSweep struct {
	*bounds.View
	overlapQuery
	visit   func(x, y int32, s segment.Segment)
	writers []int32 // and readers, if these do not share
	readers []int32
	pairs   int
}

// overlaps visits all pairs of holds of one key of which each began before the other ended, by more than slack, the
// earlier grant first. It returns false if there were too many.
func overlaps(v *bounds.View, of overlapQuery, visit func(x, y int32, s segment.Segment)) bool {
	p := pairSweep{View: v, overlapQuery: of, visit: visit}
	for key, holds := range v.ByKey {
		if of.keys != nil && !of.keys[key] {
			continue
		}
		p.writers, p.readers = p.writers[:0], p.readers[:0]
		for j, y := range refs.At(v.Holds, holds) {
			p.writers = p.against(p.writers, j, y)
			if y.Reader && of.share {
				p.readers = append(p.readers, j)
				continue
			}
			p.readers = p.against(p.readers, j, y)
			p.writers = append(p.writers, j)
			if p.pairs > MaxPairs {
				return false
			}
		}
		if p.pairs > MaxPairs {
			return false
		}
	}
	return true
}

// against compares hold j with the holds of a list, and removes holds that have ended: every step either removes one
// for good or, as a rule, finds a pair.
func (p *pairSweep) against(active []int32, j int32, y *ledger.Hold) []int32 {
	kept := active[:0]
	for i, x := range refs.At(p.Holds, active) {
		if p.end(x)-y.From <= p.slack {
			continue
		}
		kept = append(kept, i)
		if p.end(y)-x.From > p.slack && x.Owner != y.Owner {
			p.visit(i, j, segment.Of(y.From, max(y.From, min(p.end(x), p.end(y)))))
			p.pairs++
		}
	}
	return kept
}
