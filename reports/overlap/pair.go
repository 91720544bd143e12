// Package overlap finds the two holds of a violation that were in force at once, and which servers granted them.
//
// Read [Pair] first.
package overlap

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Pair is two overlapping holds of one lock, with everything that explains them.
type Pair struct {
	R            *evidence.Run
	V            *checker.Violation
	A, B         *evidence.Hold // a was granted first
	Key          string
	ByA, ByB     Grant
	Stale        *history.Touched // a write by a after b had written or been granted; nil: none
	Promoted     *history.Sample  // the first in which b's granter is master; nil: none
	Unreplicated bool             // other nodes were sampled, and never had a's owner
	ValidUntil   time.Duration    // of a when b was granted
}

// Of finds the two holds of a violation; nil if it is not about two holds.
func Of(r *evidence.Run, v *checker.Violation) *Pair {
	two := evidence.AllOf(r.Holds, func(h *evidence.Hold) bool {
		return r.KeyName(h.Key) == v.Key && slices.Contains(v.Events, int(h.Granted))
	})
	if len(two) < 2 {
		two = holdsOf(r, v)
	}
	if len(two) < 2 || two[1].From >= two[0].To {
		return nil // no overlap: a violation of another kind, such as tokens that do not grow
	}
	p := Between(r, v, two[0], two[1])
	if p.Outlived() && v.Class == checker.BrokenPromise && !evidence.Overlaps(r.PropertyOf(v)) {
		return nil // their overlap is no fault of the lock
	}
	return p
}

// Between is the pair of two holds; a was granted first.
func Between(r *evidence.Run, v *checker.Violation, a, b *evidence.Hold) *Pair {
	p := &Pair{R: r, V: v, A: a, B: b, Key: v.Key, ValidUntil: a.ValidAt(b.From)}
	p.FindNodes()
	return p
}

// holdsOf finds the holds of the violation's owners during the violation.
func holdsOf(r *evidence.Run, v *checker.Violation) []*evidence.Hold {
	var found []*evidence.Hold
	for h := range evidence.Each(r.Holds) {
		if r.KeyName(h.Key) != v.Key || h.From > v.End || h.To < v.Start || h.From == h.To && v.Start != h.From {
			continue
		}
		for k, c := range v.Clients {
			if c == h.Client && (k >= len(v.Owners) || v.Owners[k] == r.OwnerName(h.Owner)) {
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

// FindNodes finds the node that granted each hold, in samples, and the late write, in the history.
func (p *Pair) FindNodes() {
	w := &p.R.Witness
	p.ByA = p.grantOf(p.A, evidence.Interval{From: p.A.Asked, Until: p.B.From})
	p.ByB = p.grantOf(p.B, evidence.Interval{From: p.B.Asked, Until: p.B.To})
	if by := p.ByA.Node; by != "" {
		others := slices.ContainsFunc(w.Nodes, func(n string) bool { return n != by && w.Sampled(n, p.A.From, p.B.From) })
		elsewhere := slices.ContainsFunc(p.ByA.Seen, func(s history.Sample) bool { return s.Node != by })
		p.Unreplicated = others && !elsewhere
	}
	if by := p.ByB.Node; by != "" {
		p.Promoted = w.Promotion(by, p.A.Asked, p.B.To)
	}
	p.Stale = evidence.FirstOf(p.R.History.Touches, func(t *history.Touched) bool {
		return t.Time >= p.B.From && t.Owner == p.A.Owner && p.R.KeyName(t.Key) == p.Key
	})
}

// Overlap is the length of the overlap: the violation's if it has one.
func (p *Pair) Overlap() time.Duration {
	if d := p.R.During(p.V).Length(); d > 0 {
		return d
	}
	return min(p.A.To, p.B.To) - p.B.From
}

// Outlived reports whether the validity of the first hold had ended when the second was granted.
func (p *Pair) Outlived() bool { return p.ValidUntil > 0 && p.ValidUntil <= p.B.From }

// Validity is the end of the first hold's promise that was in force, or had ended last, at the second grant.
func (p *Pair) Validity() evidence.Point { return p.R.PromiseEnd(p.A, p.ValidUntil) }

// ValidityName is the subject of a sentence about the end of that promise.
func (p *Pair) ValidityName() string { return p.R.PromiseName(p.A, p.Validity()) }

// EndOfValidity says that this promise ends.
func (p *Pair) EndOfValidity() string { return p.R.EndOfPromise(p.A, p.Validity()) }

// FaultOn is the last fault on target between from and the second grant that except does not accept (nil: any),
// preferably with an effect.
func (p *Pair) FaultOn(target string, from time.Duration, except func(*evidence.Fault) bool) *evidence.Fault {
	var best *evidence.Fault
	for f := range evidence.Each(p.R.Faults) {
		if f.On(target) && f.EffectTime() >= from && f.Inject <= p.B.From && (except == nil || !except(f)) &&
			(best == nil || len(f.Effects) >= len(best.Effects)) {
			best = f
		}
	}
	return best
}
