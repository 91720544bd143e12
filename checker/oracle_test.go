package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// This file judges small histories by the definitions of docs/explanation/checkers.md and by brute force: it examines
// every pair and every instant, and shares no code with the checkers except for promises. The checkers are compared
// with it.

// naiveHold is a hold as this file finds it.
type naiveHold struct {
	owner               int32
	reader, inner       bool
	called, from, until time.Duration
	promises            []segment.Segment
	back                time.Duration // release returned; never if that is not certain
	token               uint64
	nested              bool // entered again
	unsure              bool // the outcome of a release is unknown
	reported            bool // it was lost, and the lock said so
	span                *history.Span
}

// keptUntil is the time until which a server may keep a hold whose loss was reported: its lease counts from the grant;
// an unknown one may be a twentieth longer than its promise.
func (s *naiveHold) keptUntil() time.Duration {
	last := s.promises[len(s.promises)-1].Until
	if !s.reported || last == segment.Never || s.span.Valid == 0 {
		return 0
	}
	if s.span.Lease > 0 {
		return max(last, s.span.Return+s.span.Lease)
	}
	return last + (s.span.Valid-s.span.Call)/20
}

// promisedAt reports whether a promise was in force at t.
func (s *naiveHold) promisedAt(t time.Duration) bool {
	return slices.ContainsFunc(s.promises, func(p segment.Segment) bool { return p.From <= t && t < p.Until })
}

// effect is a change of the locks on which its owner relied.
type effect struct {
	at     int32
	span   *history.Span
	notice *history.Notice
}

// effectsOf are the effects of a history, in their order.
func effectsOf(h *history.History) []effect {
	var all []effect
	for i := range h.Spans {
		s := &h.Spans[i]
		switch {
		case s.Op == history.OpRelease:
			all = append(all, effect{s.Invoked, s, nil})
		case s.Outcome == history.OK && (s.Op == history.OpAcquire || s.Op == history.OpTry):
			all = append(all, effect{s.Ended, s, nil})
		}
	}
	for i := range h.Notices {
		all = append(all, effect{h.Notices[i].Index, nil, &h.Notices[i]})
	}
	slices.SortFunc(all, func(a, b effect) int { return cmp.Compare(a.at, b.at) })
	return all
}

// naive is the state of one owner: a hold to write and one to read.
type naive struct {
	depth [2]int
	now   [2]*naiveHold
	lost  [2]int // depth of lost holds, which it may still release
}

func mode(reads bool) int {
	if reads {
		return 1
	}
	return 0
}

// naiveHolds finds the holds of a key that is not a semaphore.
func naiveHolds(h *history.History) []*naiveHold {
	var all []*naiveHold
	owners := make([]naive, len(h.Owners))
	lose := func(o *naive, m int, n *history.Notice) {
		if o.depth[m] > 0 {
			o.now[m].until, o.lost[m], o.depth[m] = n.Time, o.depth[m], 0
			o.now[m].reported = n.F == history.Lost
		}
	}
	for _, e := range effectsOf(h) {
		if e.notice != nil { // each client is one owner here
			lose(&owners[e.notice.Owner], 0, e.notice)
			lose(&owners[e.notice.Owner], 1, e.notice)
			continue
		}
		s, o := e.span, &owners[e.span.Owner]
		if s.Op != history.OpRelease {
			all = o.take(s, all)
			continue
		}
		m := mode(!s.Write)
		if o.depth[m]+o.lost[m] == 0 {
			m = 1 - m
		}
		switch {
		case o.lost[m] > 0 && s.Outcome == history.OK:
			o.lost[m]--
		case o.lost[m] > 0:
			o.lost[m] = 0
		case o.depth[m] == 0:
		case s.Outcome == history.Fail:
			o.now[m].until, o.depth[m] = s.Call, 0
			if s.Write && m == 0 && o.depth[1] > 0 {
				o.now[1].until, o.depth[1] = s.Call, 0
			}
		default:
			o.now[m].unsure = o.now[m].unsure || s.Outcome != history.OK
			if o.depth[m]--; o.depth[m] == 0 {
				o.now[m].until = s.Call
				if !o.now[m].unsure {
					o.now[m].back = s.Return
				}
			}
		}
	}
	return all
}

// promisedAtGrant is promised, or the promise of a lease which counts from the grant.
func promisedAtGrant(s *history.Span) time.Duration {
	if until := ledger.Promised(s); s.Valid != 0 || until > s.Return {
		return until
	}
	return s.Return + s.Lease
}

func (o *naive) take(s *history.Span, all []*naiveHold) []*naiveHold {
	m := mode(!s.Write)
	if o.depth[m] > 0 {
		o.depth[m]++
		o.now[m].nested = true
		last := &o.now[m].promises[len(o.now[m].promises)-1]
		if s.Return <= last.Until {
			last.Until = max(s.Return, ledger.Promised(s))
		} else if ledger.Promised(s) > s.Return {
			o.now[m].promises = append(o.now[m].promises, segment.Of(s.Return, ledger.Promised(s)))
		}
		return all
	}
	token := s.Token
	if x := o.now[m]; o.lost[m] > 0 && (s.Call < x.until || s.Token == x.token && s.Call < x.keptUntil()) {
		token = 0 // perhaps the lost hold's
	}
	o.lost = [2]int{}
	o.depth[m] = 1
	o.now[m] = &naiveHold{owner: s.Owner, reader: m == 1, inner: o.depth[1-m] > 0, called: s.Call, from: s.Return,
		until: segment.Never, back: segment.Never, promises: []segment.Segment{{From: s.Return, Until: promisedAtGrant(s)}},
		token: token, span: s}
	return append(all, o.now[m])
}

// meetings counts the pairs of holds that exclusion and readers-writer forbid, and how many of them lease-exclusion
// forbids.
func meetings(holds []*naiveHold) (all, inside int) {
	for i, x := range holds {
		for _, y := range holds[:i] {
			if x.owner == y.owner || (x.reader && y.reader) || x.from >= y.until || y.from >= x.until {
				continue
			}
			all++
			from, until := max(x.from, y.from), min(x.until, y.until)
			if slices.ContainsFunc(x.promises, func(p segment.Segment) bool {
				return slices.ContainsFunc(y.promises, func(q segment.Segment) bool {
					return max(p.From, q.From, from) < min(p.Until, q.Until, until)
				})
			}) {
				inside++
			}
		}
	}
	return all, inside
}

// wrongTokens reports whether two holds have tokens that fencing forbids.
func wrongTokens(holds []*naiveHold, shared bool) bool {
	for _, x := range holds {
		for _, y := range holds {
			if x == y || x.inner || y.inner || x.token == 0 || y.token == 0 {
				continue
			}
			alone := func(s *naiveHold) bool { return !s.reader && !shared }
			switch {
			case x.from < y.called && (x.token > y.token || x.token == y.token && !y.reader), // certainly before
				x.token == y.token && alone(y) && (alone(x) || x.from < y.from),
				x.until <= y.from && x.from < y.from && x.token > y.token && alone(x) && alone(y) && y.promisedAt(y.from):
				return true
			}
		}
	}
	return false
}

// crowdedAt reports whether more permits than exist were held, at some time or at some instant.
func crowdedAt(h *history.History, limit int64) bool {
	has := make([]int64, len(h.Owners)) // relied on now
	least := slices.Clone(has)          // the permits from before this instant that are still held
	sum := func(of []int64) (n int64) {
		for _, x := range of {
			n += x
		}
		return n
	}
	all := effectsOf(h)
	for i := 0; i < len(all); {
		t, j := all[i].time(), i
		copy(least, has)
		for ; j < len(all) && all[j].time() == t; j++ {
			e := all[j]
			switch {
			case e.notice != nil:
				has[e.notice.Owner] = 0
			case e.span.Op != history.OpRelease:
				has[e.span.Owner] += int64(e.span.Permits)
			case e.span.Outcome == history.Fail && !e.span.Held:
				has[e.span.Owner] = 0
			default:
				has[e.span.Owner] = max(0, has[e.span.Owner]-int64(e.span.Permits))
			}
			for o := range has {
				least[o] = min(least[o], has[o])
			}
		}
		for ; i < j; i++ {
			if s := all[i].span; s != nil && s.Op != history.OpRelease && sum(least)+int64(s.Permits) > limit {
				return true
			}
		}
		if sum(has) > limit {
			return true
		}
	}
	return false
}

func (e effect) time() time.Duration {
	switch {
	case e.notice != nil:
		return e.notice.Time
	case e.span.Op == history.OpRelease:
		return e.span.Call
	}
	return e.span.Return
}
