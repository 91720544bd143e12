package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// partialReturn is some permits of a hold that were released before the rest.
type partialReturn struct {
	at      time.Duration // release invoked
	permits int32
}

// acquirePermits begins a hold of a semaphore, whatever its owner holds already.
func (b *holdFold) acquirePermits(i int32, s *history.Span) {
	if at := (ownerKey{s.Owner, s.Key}); b.hasLost[at] {
		for n := b.list(s.Owner, s.Key); n >= 0; {
			h := &b.holds[n]
			if n = h.next; h.key == s.Key && h.ending != endOpen { // lost, and acquired again
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
	left, last, stale := s.Permits, none, b.hasLost[ownerKey{s.Owner, s.Key}]
	b.eachOf(s, func(n int32, h *hold) bool {
		if h.ending == endLost && s.Outcome != history.OK {
			left -= min(left, h.depth+h.extra().failedReleases)
			b.close(h)
			return true
		}
		some := min(left, h.depth)
		left -= some
		b.subtractPermits(n, s, some)
		if kept {
			h.mutableExtra().failedReleases += some
		}
		last = n
		return left > 0 || stale
	})
	if kept {
		return
	}
	b.eachOf(s, func(n int32, h *hold) bool {
		some := min(left, h.extra().failedReleases)
		left -= some
		if some > 0 {
			h.mutableExtra().failedReleases -= some
		}
		if h.depth+h.extra().failedReleases == 0 {
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
	var only *hold
	n := 0
	b.eachOf(s, func(_ int32, h *hold) bool {
		b.refuse(h, s, s.Call, s.Invoked)
		b.close(h)
		only = h
		n++
		return true
	})
	if n == 1 && only.extra().partForced {
		only.freeBy = min(only.freeBy, s.Return)
	}
}

// eachOf visits the open holds of the owner of s at its key, the latest first, until visit returns false.
func (b *holdFold) eachOf(s *history.Span, visit func(n int32, h *hold) bool) {
	for n := b.list(s.Owner, s.Key); n >= 0; {
		at, h := n, &b.holds[n]
		if n = h.next; h.key == s.Key && !visit(at, h) {
			return
		}
	}
}

// subtractPermits takes permits off hold n: its owner no longer relies on them.
func (b *holdFold) subtractPermits(n int32, s *history.Span, permits int32) {
	h := &b.holds[n]
	switch h.depth -= permits; {
	case permits == 0:
	case h.ending == endLost: // it was still held, in spite of the reported loss
		h.core = s.Call
	case h.depth == 0:
		h.endBelief(s.Call, s.Invoked)
	default:
		b.parts[n] = append(b.parts[n], partialReturn{s.Call, permits})
	}
}

// finish ends a hold without permits.
func (b *holdFold) finish(h *hold, s *history.Span) {
	how := endUnknown
	if s.Outcome == history.OK {
		how = endReleased
		b.freed(h, s.Return)
	}
	h.end(how, s.Call, s.Invoked)
	b.close(h)
}

// weight is how many permits hold i began with.
func (v *view) weight(i int32) int64 { return int64(v.h.Spans[v.holds[i].span].Permits) }

// outAfter is how many permits of hold i its owner relied on for longer than slack after t.
func (v *view) outAfter(i int32, t, slack time.Duration) int64 {
	if v.holds[i].until-t <= slack {
		return 0
	}
	n := v.weight(i)
	for _, p := range v.parts[i] {
		if p.at-t <= slack {
			n -= int64(p.permits)
		}
	}
	return n
}

// eachReturn visits the returns of the permits of hold i: before its end, and the rest then.
func (v *view) eachReturn(i int32, visit func(partialReturn)) {
	rest := int32(v.weight(i))
	for _, p := range v.parts[i] {
		if p.at < v.holds[i].until {
			visit(p)
			rest -= p.permits
		}
	}
	visit(partialReturn{v.holds[i].until, rest})
}
