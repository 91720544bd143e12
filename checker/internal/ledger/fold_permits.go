package ledger

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/history"
)

// PartialReturn is some permits of a hold that were released before the rest.
type PartialReturn struct {
	At      time.Duration // release invoked
	Permits int32
}

// acquirePermits begins a hold of a semaphore, whatever its owner holds already.
func (b *holdFold) acquirePermits(i int32, s *history.Span) {
	if at := (Of(s)); b.hasLost[at] {
		for n := b.list(s.Owner, s.Key); n >= 0; {
			h := &b.Holds[n]
			if n = h.next; h.Key == s.Key && h.Ending != endOpen { // lost, and acquired again
				b.close(h)
			}
		}
		delete(b.hasLost, at)
	}
	b.begin(i, s, s.Permits)
}

// releasePermits returns permits of a semaphore, the latest first. Permits are alike, so any other choice adds up to
// the same. From the invocation on the owner does not rely on them, whatever the reply is. Permits of a failed release,
// which are still at the servers, are returned after all that the owner relies on.
func (b *holdFold) releasePermits(i int32, s *history.Span) {
	kept := s.Outcome == history.Fail && s.Held
	if s.Outcome == history.Fail && !kept { // the servers no longer know these permits
		b.losePermits(s)
		return
	}
	left, last, stale := s.Permits, refs.None, b.hasLost[Of(s)]
	b.eachOf(s, func(n int32, h *Hold) bool {
		if h.Ending == EndLost && s.Outcome != history.OK {
			left -= min(left, h.depth+h.Extra().FailedReleases)
			b.close(h)
			return true
		}
		some := min(left, h.depth)
		left -= some
		b.subtractPermits(n, s, some)
		if kept {
			h.mutableExtra().FailedReleases += some
		}
		last = n
		return left > 0 || stale
	})
	if kept {
		return
	}
	b.eachOf(s, func(n int32, h *Hold) bool {
		some := min(left, h.Extra().FailedReleases)
		left -= some
		if some > 0 {
			h.mutableExtra().FailedReleases -= some
		}
		if h.depth+h.Extra().FailedReleases == 0 {
			b.finish(h, s)
		}
		return left > 0 || n != last
	})
	if left > 0 && s.Outcome == history.OK {
		b.releaseOfNothing(i, s)
	}
}

// losePermits ends the holds of an owner whose release is refused because they were lost. If the reason is that some of
// the permits had been released by force, the release has returned the rest of the only hold that it can mean.
func (b *holdFold) losePermits(s *history.Span) {
	var only *Hold
	n := 0
	b.eachOf(s, func(_ int32, h *Hold) bool {
		if h.Ending != EndLost {
			b.refuse(h, s, s.Call, s.Invoked)
		}
		b.close(h)
		only = h
		n++
		return true
	})
	if n == 1 && only.Extra().partForced {
		only.FreeBy = min(only.FreeBy, s.Return)
	}
}

// eachOf visits the open holds of the owner of s at its key, the latest first, until visit returns false.
func (b *holdFold) eachOf(s *history.Span, visit func(n int32, h *Hold) bool) {
	for n := b.list(s.Owner, s.Key); n >= 0; {
		at, h := n, &b.Holds[n]
		if n = h.next; h.Key == s.Key && !visit(at, h) {
			return
		}
	}
}

// subtractPermits takes permits off hold n: its owner no longer relies on them.
func (b *holdFold) subtractPermits(n int32, s *history.Span, permits int32) {
	h := &b.Holds[n]
	switch h.depth -= permits; {
	case permits == 0:
	case h.Ending == EndLost: // it was still held, in spite of the reported loss
		h.Core = s.Call
	case h.depth == 0:
		h.endBelief(s.Call, s.Invoked)
	default:
		b.Parts[n] = append(b.Parts[n], PartialReturn{s.Call, permits})
	}
}

// finish ends a hold without permits.
func (b *holdFold) finish(h *Hold, s *history.Span) {
	how := EndUnknown
	if s.Outcome == history.OK {
		how = EndReleased
		b.freed(h, s.Return)
	}
	h.end(how, s.Call, s.Invoked)
	b.close(h)
}

// Weight is how many permits hold i began with.
func (v *View) Weight(i int32) int64 { return int64(v.H.Spans[v.Holds[i].Span].Permits) }

// OutAfter is how many permits of hold i its owner relied on for longer than slack after t.
func (v *View) OutAfter(i int32, t, slack time.Duration) int64 {
	if v.Holds[i].Until-t <= slack {
		return 0
	}
	return v.OutAt(i, t+slack)
}

// OutAt is how many permits of hold i its owner relies on at t, which is not after its end.
func (v *View) OutAt(i int32, t time.Duration) int64 {
	n := v.Weight(i)
	for _, p := range v.Parts[i] {
		if p.At <= t {
			n -= int64(p.Permits)
		}
	}
	return n
}

// PermitsAt is how many permits of some holds clients rely on at t.
func (v *View) PermitsAt(holds []int32, t time.Duration) (sum int64) {
	for _, i := range holds {
		sum += v.OutAfter(i, t, 0)
	}
	return sum
}

// EachReturn visits the returns of the permits of hold i: before its end, and the rest then.
func (v *View) EachReturn(i int32, visit func(PartialReturn)) {
	rest := int32(v.Weight(i))
	for _, p := range v.Parts[i] {
		if p.At < v.Holds[i].Until {
			visit(p)
			rest -= p.Permits
		}
	}
	visit(PartialReturn{v.Holds[i].Until, rest})
}
