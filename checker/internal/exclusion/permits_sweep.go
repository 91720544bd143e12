package exclusion

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
)

// permitBack is a return of permits.
type permitBack struct {
	ledger.PartialReturn
	hold int32 // its index in the order of grants
}

// permitSweep goes through the holds of one semaphore in the order of their grants, and through the returns of
// permits by time, one step for each.
type permitSweep struct {
	*bounds.View
	holds []int32
	slack time.Duration // permits returned within it are not certainly held
	backs []permitBack
	left  []int64 // by index: permits that are or will be held
	old   int     // grants before it are old enough for their order to be certain
	sum   int64   // held, of the grants so far
	sure  int64   // the same, of the grants before old
}

// CountPermits finds the largest number of permits held at once. A finding is a grant that exceeded the limit; it
// lasts while that many are held.
//
// Of the grants at one instant, the lasting ones are held together after it; any of them, even one that is released at
// that instant, overlaps with earlier holds.
func CountPermits(v *bounds.View, holds []int32, o given.Options, found *finding.Findings) (most int64, whole bool) {
	p := permitSweep{View: v, holds: holds, slack: o.ClockError}
	if !o.Applies(PermitsTouch) {
		p.slack = -1
	}
	p.prepare()
	var active []int32 // indices of holds with permits, and of some whose permits have ended
	pairs := 0
	for n, j := range holds {
		y := &v.Holds[j]
		p.advance(n, y.From, o.ClockError)
		before, sum := v.Weight(j)+p.sure, p.sum+p.left[n]
		if y.Until-y.From <= o.ClockError {
			sum = 0 // the other holds do not overlap with it
		}
		if o.ClockError > 0 && y.Until-y.From <= o.ClockError {
			before = 0 // its length is not certain
		}
		_, limit := v.SizesIn(y.Key, segment.Of(y.Asked, y.From))
		most = max(most, sum, before)
		if sum > limit || before > limit {
			active = slices.DeleteFunc(active, func(at int32) bool { return p.left[at] == 0 })
			out := make([]int32, 0, len(active)+1)
			for _, at := range active {
				out = append(out, holds[at])
			}
			out = append(out, j)
			end := OverUntil(v, out, limit, segment.Of(y.From, y.Until))
			found.Add(finding.Finding{Rule: TooMany, X: out[0], Y: j, Start: y.From, End: end})
			if pairs += len(out); pairs > MaxPairs {
				return most, false
			}
		}
		p.sum += p.left[n]
		active = append(active, int32(n))
	}
	return most, true
}

// prepare lists the returns of permits.
func (p *permitSweep) prepare() {
	p.left = make([]int64, len(p.holds))
	p.backs = make([]permitBack, 0, len(p.holds))
	for n, i := range p.holds {
		p.left[n] = p.Weight(i)
		p.EachReturn(i, func(part ledger.PartialReturn) {
			if part.At != segment.Never {
				p.backs = append(p.backs, permitBack{part, int32(n)})
			}
		})
	}
	slices.SortFunc(p.backs, func(a, b permitBack) int { return cmp.Compare(a.At, b.At) })
}

// advance subtracts permits that are not certainly held after t, when hold n is granted.
func (p *permitSweep) advance(n int, t, clockError time.Duration) {
	for len(p.backs) > 0 && p.backs[0].At-t <= p.slack {
		b := p.backs[0]
		permits := int64(b.Permits)
		p.backs = p.backs[1:]
		p.left[b.hold] -= permits
		if int(b.hold) < n {
			p.sum -= permits
		}
		if int(b.hold) < p.old {
			p.sure -= permits
		}
	}
	for p.old < n && t-p.View.Holds[p.holds[p.old]].From > clockError {
		p.sure += p.left[p.old]
		p.old++
	}
}
