package checker

import (
	"cmp"
	"slices"

	"github.com/lockchaos/lockchaos/history"
)

// loseAll ends the holds of an owner at a key that a notice reports as lost. The notice may be recorded after a grant
// that it does not cover: requested after the notice was sent, or in the other mode when the lost hold had already
// ended. It may also be recorded after the end of a hold that was lost only later, such as the reply that refused its
// renewal: its owner had not relied on it since the notice was sent.
func (b *holdFold) loseAll(n *history.Notice) {
	ended := n.Time
	if lost := b.find(n.Owner, n.Key, !n.Write); n.Moded && lost != nil && lost.ending == endOpen {
		ended = min(ended, lost.lastPromise())
	}
	for i := b.list(n.Owner, n.Key); i >= 0; i = b.holds[i].next {
		h := &b.holds[i]
		if h.key != n.Key || h.asked > n.Time || n.Moded && h.reader == n.Write && h.from > ended {
			continue
		}
		switch lost := max(n.Time, h.from); h.ending { // the notice may be older than the record of the grant
		case endOpen:
			h.end(endLost, lost, n.Index)
			b.noteLost(h)
		case endLost:
			h.until, h.core = min(h.until, lost), min(h.core, lost)
		}
	}
}

// loseLevel ends one level of the only hold of an owner at a key, or of its hold in the lost mode. If the release of a
// level was invoked before, that was the lost level: then the owner has no more levels than the notice says are left.
// Those may include a grant whose reply is not recorded yet.
func (b *holdFold) loseLevel(n *history.Notice) {
	var only *hold
	levels := int32(0)
	for i := b.list(n.Owner, n.Key); i >= 0; i = b.holds[i].next {
		h := &b.holds[i]
		if h.key != n.Key || h.ending != endOpen {
			continue
		}
		if levels += h.depth; n.Moded && h.reader == n.Write {
			continue
		}
		if only != nil {
			return // it reads and writes: which of them was lost is unknown
		}
		only = h
	}
	switch {
	case only == nil || b.h.Limit(n.Key) != 0 || levels <= n.Left && levels+b.acquiring(n) <= n.Left:
	case only.depth == 1:
		only.end(endLost, max(n.Time, only.from), n.Index)
		b.noteLost(only)
	default:
		only.depth--
		only.mutableExtra().lostLevels++
	}
}

// acquiring counts the acquires of the notice's owner and key that have no reply yet.
func (b *holdFold) acquiring(n *history.Notice) (count int32) {
	if b.acquires == nil {
		b.acquires = b.acquiresAround()
	}
	list := b.acquires[ownerKey{n.Owner, n.Key}]
	next, _ := slices.BinarySearchFunc(list, n.Index, func(i, at int32) int {
		return cmp.Compare(b.h.Spans[i].Invoked, at)
	})
	for _, i := range slices.Backward(list[:next]) {
		if s := &b.h.Spans[i]; s.Ended >= 0 && s.Ended < n.Index {
			break // an owner sends one request at a time
		}
		count++
	}
	return count
}

// acquiresAround lists the acquires, by owner and key, where an owner lost one of several levels.
func (v *view) acquiresAround() map[ownerKey][]int32 {
	acquires := make(map[ownerKey][]int32)
	for _, n := range refs(v.h.Notices) {
		if n.F == history.Lost && n.Left > 0 {
			acquires[ownerKey{n.Owner, n.Key}] = nil
		}
	}
	v.listSpans(acquires, func(s *history.Span) bool { return isAcquire(s.Op) })
	return acquires
}
