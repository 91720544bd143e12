package checker

import (
	"cmp"
	"slices"
	"time"
)

// permitBack is that permits of a hold were given back.
type permitBack struct {
	at      time.Duration
	hold    int32 // its place in the order of grants
	permits int64 // all that are left, if all is set
	all     bool
}

// permitSweep walks over the holds of one semaphore in the order of their
// grants, and over what they gave back in the order of time: a step for each.
type permitSweep struct {
	*view
	holds []int32
	slack time.Duration // what is given back within it is not certainly out
	backs []permitBack
	rest  []int64 // by place: permits that are out, of a hold that was granted, or will be
	old   int     // places before it were granted long enough ago that their order is certain
	sum   int64   // out, of those granted so far
	sure  int64   // the same, of those before old
}

// countPermits finds the most permits that were out. A finding is a grant
// that went over the limit; it lasts while that many are out.
//
// Of the grants of one instant those that last are out together when it is over;
// any of them, one that is given back in that instant too, met what was out before.
func (v *view) countPermits(holds []int32, limit int64, o Options, found *findings) (most int64, whole bool) {
	p := permitSweep{view: v, holds: holds, slack: o.ClockError}
	if !o.applies(permitsTouch) {
		p.slack = -1
	}
	p.prepare()
	var active []int32 // places of holds of which permits are out, and of some that have none any more
	pairs := 0
	for n, j := range holds {
		y := &v.holds[j]
		p.advance(n, y.from, o.ClockError)
		before, sum := v.weight(j)+p.sure, p.sum+p.rest[n]
		if y.until-y.from <= o.ClockError {
			sum = 0 // whatever is out, it does not stay out with it
		}
		if o.ClockError > 0 && y.until-y.from <= o.ClockError {
			before = 0 // its length is not certain
		}
		most = max(most, sum, before)
		if sum > limit || before > limit {
			active = slices.DeleteFunc(active, func(at int32) bool { return p.rest[at] == 0 })
			out := make([]int32, 0, len(active)+1)
			for _, at := range active {
				out = append(out, holds[at])
			}
			out = append(out, j)
			end := v.overUntil(out, limit, segment{y.from, y.until})
			found.add(finding{rule: tooMany, x: out[0], y: j, start: y.from, end: end})
			if pairs += len(out); pairs > maxPairs {
				return most, false
			}
		}
		p.sum += p.rest[n]
		active = append(active, int32(n))
	}
	return most, true
}

// prepare lists what was given back.
func (p *permitSweep) prepare() {
	p.rest = make([]int64, len(p.holds))
	p.backs = make([]permitBack, 0, len(p.holds))
	for n, i := range p.holds {
		p.rest[n] = p.weight(i)
		for _, part := range p.parts[i] {
			p.backs = append(p.backs, permitBack{at: part.at, hold: int32(n), permits: int64(part.permits)})
		}
		if until := p.view.holds[i].until; until != never {
			p.backs = append(p.backs, permitBack{at: until, hold: int32(n), all: true})
		}
	}
	slices.SortFunc(p.backs, func(a, b permitBack) int { return cmp.Compare(a.at, b.at) })
}

// advance takes off what is not certainly out after t, when place n is granted.
func (p *permitSweep) advance(n int, t, clockError time.Duration) {
	for len(p.backs) > 0 && p.backs[0].at-t <= p.slack {
		b := p.backs[0]
		p.backs = p.backs[1:]
		permits := min(b.permits, p.rest[b.hold])
		if b.all {
			permits = p.rest[b.hold]
		}
		p.rest[b.hold] -= permits
		if int(b.hold) < n {
			p.sum -= permits
		}
		if int(b.hold) < p.old {
			p.sure -= permits
		}
	}
	for p.old < n && t-p.view.holds[p.holds[p.old]].from > clockError {
		p.sure += p.rest[p.old]
		p.old++
	}
}
