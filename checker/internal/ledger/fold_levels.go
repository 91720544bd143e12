package ledger

import (
	"cmp"
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/history"
)

// loseAll ends the holds of an owner at a key that a notice reports as lost. The notice may be recorded after a grant
// that it does not cover: requested after the notice was sent, or in the other mode when the lost hold had already
// ended. It may also be recorded after the end of a hold that was lost only later, such as the reply that refused its
// renewal: its owner had not relied on it since the notice was sent.
func (b *holdFold) loseAll(n *history.Notice) {
	ended := n.Time
	if lost := b.find(n.Owner, n.Key, !n.Write); n.Moded && lost != nil && lost.Ending == endOpen {
		ended = min(ended, lost.LastPromise())
	}
	for i := b.list(n.Owner, n.Key); i >= 0; i = b.Holds[i].next {
		h := &b.Holds[i]
		if h.Key != n.Key || h.Asked > n.Time || n.Moded && h.Reader == n.Write && h.From > ended {
			continue
		}
		switch lost := max(n.Time, h.From); h.Ending { // the notice may be older than the record of the grant
		case endOpen:
			h.end(EndLost, lost, n.Index)
			b.noteLost(h)
		case EndLost:
			h.Until, h.Core = min(h.Until, lost), min(h.Core, lost)
		}
	}
}

// loseLevel ends one level of the only hold of an owner at a key, or of its hold in the lost mode. If the release of a
// level was invoked before, that was the lost level: then the owner has no more levels than the notice says are left.
// Those may include a grant whose reply is not recorded yet.
func (b *holdFold) loseLevel(n *history.Notice) {
	var only *Hold
	levels := int32(0)
	for i := b.list(n.Owner, n.Key); i >= 0; i = b.Holds[i].next {
		h := &b.Holds[i]
		if h.Key != n.Key || h.Ending != endOpen {
			continue
		}
		if levels += h.depth; n.Moded && h.Reader == n.Write {
			continue
		}
		if only != nil {
			return // it reads and writes: which of them was lost is unknown
		}
		only = h
	}
	switch {
	case only == nil || b.H.Limit(n.Key) != 0 || levels <= n.Left && levels+b.acquiring(n) <= n.Left:
	case only.depth == 1:
		only.end(EndLost, max(n.Time, only.From), n.Index)
		b.noteLost(only)
	default:
		only.depth--
		only.mutableExtra().LostLevels++
	}
}

// acquiring counts the acquires of the notice's owner and key that have no reply yet.
func (b *holdFold) acquiring(n *history.Notice) (count int32) {
	if b.acquires == nil {
		b.acquires = b.acquiresAround()
	}
	list := b.acquires[OfNotice(n)]
	next, _ := slices.BinarySearchFunc(list, n.Index, func(i, at int32) int {
		return cmp.Compare(b.H.Spans[i].Invoked, at)
	})
	for _, i := range slices.Backward(list[:next]) {
		if s := &b.H.Spans[i]; s.Ended >= 0 && s.Ended < n.Index {
			break // an owner sends one request at a time
		}
		count++
	}
	return count
}

// acquiresAround lists the acquires, by owner and key, where an owner lost one of several levels.
func (v *View) acquiresAround() map[OwnerKey][]int32 {
	acquires := make(map[OwnerKey][]int32)
	for _, n := range refs.All(v.H.Notices) {
		if n.F == history.Lost && n.Left > 0 {
			acquires[OfNotice(n)] = nil
		}
	}
	v.ListSpans(acquires, func(s *history.Span) bool { return excuse.IsAcquire(s.Op) })
	return acquires
}
