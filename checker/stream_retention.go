package checker

import (
	"math"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/fencing"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// This file decides which events a [Stream] has to keep.
//
// Two holds overlap only if one of them had not ended when the other was granted: so further findings of exclusion,
// lease-exclusion, permits and readers-writer are about holds that have not ended, or about later grants. Fencing
// compares a grant with the greatest token of the grants that were certainly before it, and with the tokens of the
// others: all that came after the request.

// chain is a series of one owner's operations on one key, before and after which it held nothing: from the event that
// requested the first hold to the event that ended the last.
type chain struct {
	from, to int32 // event indices
	kept     bool
}

// retention is the part of a history that is kept.
type retention struct {
	*bounds.View
	chains         map[ledger.OwnerKey][]chain
	of             []int32                  // by hold: index of its chain
	open           map[ledger.OwnerKey]bool // owners with an operation on a key in flight
	first          map[int32]int32          // by owner: the invocation of its first operation in flight
	since          []time.Duration          // by key: tokens of grants from then on may be compared one by one
	sure           []time.Duration          // by key: until then the holders are certain
	oldest         int32                    // event with which the first kept chain begins
	overlappingOps map[int32]bool           // spans: evidence that the holds of an owner are unknown
	touch          []int32                  // by key: the touch with the greatest token; -1: none
}

// trim drops events that can no longer matter.
func (s *Stream) trim() {
	h := s.b.History()
	v, err := safeView(s.o.WithLimits(h), s.o)
	if err != nil {
		return
	}
	k := retention{View: v, chains: make(map[ledger.OwnerKey][]chain), open: make(map[ledger.OwnerKey]bool),
		first: make(map[int32]int32), oldest: math.MaxInt32}
	k.pending(s.o.ClockError)
	k.findOverlapping()
	k.link()
	k.mark()
	k.recent()
	k.tokens()
	k.compact()
	s.trimGrants(&k)
	was := len(h.Spans)
	s.b.Trim(k.keepsSpan, k.keepsNotice, k.keepsTouch)
	s.trimmed.operations += was - len(h.Spans)
	s.limit = max(streamBatch, 3*len(h.Spans), 3*len(h.Notices), 3*len(h.Touches), len(h.Keys))
}

// pending examines the operations in flight.
func (k *retention) pending(clockError time.Duration) {
	k.since = slices.Repeat([]time.Duration{k.H.End - clockError}, len(k.H.Keys))
	k.sure = slices.Clone(k.since)
	crashed := make(map[int]int32) // clients that crashed, and the event
	for _, n := range refs.All(k.H.Notices) {
		if n.F == history.Crash {
			crashed[n.Process.Client(k.H.Clients)] = n.Index
		}
	}
	for _, s := range refs.All(k.H.Spans) {
		if s.Ended >= 0 {
			continue
		}
		k.open[ledger.Of(s)] = true
		if s.Op == history.OpRelease { // see endNow
			k.sure[s.Key] = min(k.sure[s.Key], s.Call-clockError)
		}
		if _, known := k.first[s.Owner]; !known {
			k.first[s.Owner] = s.Invoked
		}
		if at, is := crashed[s.Process.Client(k.H.Clients)]; is && at > s.Invoked {
			continue // it will not be granted
		}
		if excuse.IsLockOp(s) {
			k.since[s.Key] = min(k.since[s.Key], s.Call-clockError)
		}
	}
}

// findOverlapping keeps the first two overlapping operations of each owner whose holds are unknown.
func (k *retention) findOverlapping() {
	k.overlappingOps = make(map[int32]bool)
	last := make(map[int32]int32) // by owner: 1 + the operation that completed last; -1: the evidence is found
	for i, s := range refs.All(k.H.Spans) {
		before := last[s.Owner]
		if k.OwnerOrder[s.Owner] != ledger.OrdUnknown || !excuse.IsLockOp(s) || before < 0 {
			continue
		}
		if before > 0 && s.Invoked < k.H.Spans[before-1].Ended {
			k.overlappingOps[before-1], k.overlappingOps[i] = true, true
			last[s.Owner] = -1
			continue
		}
		if s.Outcome != history.Info {
			last[s.Owner] = i + 1
		}
	}
}

// link finds the chains. Holds are in the order of their grants.
func (k *retention) link() {
	k.of = make([]int32, len(k.Holds))
	for i, h := range refs.All(k.Holds) {
		at := h.At()
		list := k.chains[at]
		end := int32(math.MaxInt32)
		if h.Until != segment.Never && h.EndEvent >= 0 {
			end = h.EndEvent
		}
		if begin := k.H.Spans[h.Span].Invoked; len(list) == 0 || begin > list[len(list)-1].to {
			list = append(list, chain{from: begin, to: end})
		} else {
			list[len(list)-1].to = max(list[len(list)-1].to, end)
		}
		k.chains[at] = list
		k.of[i] = int32(len(list) - 1)
	}
}

// mark keeps the chains that have not ended.
func (k *retention) mark() {
	for at, list := range k.chains { // order does not matter
		last := &list[len(list)-1]
		last.kept = last.to == math.MaxInt32 || k.open[at] || k.OwnerOrder[at.Owner] != ledger.OrdSequential
	}
}

// recent keeps the holds that ended so recently that it is not certain yet which others overlapped with them, or for
// how long: a hold that has not ended may end at this very instant.
func (k *retention) recent() {
	for i, h := range refs.All(k.Holds) {
		if max(h.From, h.Until) >= k.sure[h.Key] {
			k.keep(i)
		}
	}
}

// tokens keeps the holds whose tokens may be compared.
func (k *retention) tokens() {
	for key, holds := range k.ByKey {
		best, ended := refs.None, refs.None // the greatest token, and the greatest of a hold that has ended
		for i, h := range refs.At(k.Holds, holds) {
			switch {
			case !fencing.HasToken(k.View, i):
				continue
			case h.From >= k.since[key]:
				k.keep(i)
				continue
			}
			if best < 0 || h.Token > k.Holds[best].Token {
				best = i
			}
			if h.Until != segment.Never && (ended < 0 || h.Token > k.Holds[ended].Token) {
				ended = i
			}
		}
		for _, i := range []int32{best, ended} {
			if i >= 0 {
				k.keep(i)
			}
		}
	}
	k.touch = slices.Repeat([]int32{refs.None}, len(k.H.Keys))
	for i, t := range refs.All(k.H.Touches) {
		if best := k.touch[t.Key]; best < 0 || t.Token > k.H.Touches[best].Token {
			k.touch[t.Key] = i
		}
	}
}

func (k *retention) keep(i int32) {
	h := &k.Holds[i]
	k.chains[h.At()][k.of[i]].kept = true
}

// compact drops the chains that are not kept.
func (k *retention) compact() {
	for at, list := range k.chains { // order does not matter
		kept := list[:0]
		for _, c := range list {
			if c.kept {
				kept = append(kept, c)
				k.oldest = min(k.oldest, c.from)
			}
		}
		k.chains[at] = kept
	}
}

// keepsSpan reports whether a completed operation is kept. One of unknown outcome may always take effect, and two
// overlapping operations of an owner are the reason why its holds are unknown.
func (k *retention) keepsSpan(i int32, s *history.Span) bool {
	if first, open := k.first[s.Owner]; open && s.Invoked >= first {
		return true
	}
	if bounds.SetsSize(s) { // there are few of them
		return true
	}
	if s.Op == history.OpRelease && k.OwnerOrder[s.Owner] != ledger.OrdSequential && s.Return >= k.H.End {
		return true // it may have returned a permit that is requested at this very instant
	}
	if s.Op == history.OpForceRelease {
		return s.Ended >= k.oldest
	}
	return s.Outcome == history.Info || k.overlappingOps[i] || k.within(ledger.Of(s),
		s.Invoked)
}

func (k *retention) within(at ledger.OwnerKey, event int32) bool {
	for _, c := range k.chains[at] {
		if c.from <= event && event <= c.to {
			return true
		}
	}
	return false
}

func (k *retention) keepsNotice(n *history.Notice) bool {
	if n.F == history.Crash {
		return n.Index >= k.oldest
	}
	return k.within(ledger.OfNotice(n), n.Index)
}

func (k *retention) keepsTouch(i int32, t *history.Touched) bool { return k.touch[t.Key] == i }
