package checker

import (
	"math"
	"slices"
	"time"

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
	*view
	chains         map[ownerKey][]chain
	of             []int32           // by hold: index of its chain
	open           map[ownerKey]bool // owners with an operation on a key in flight
	first          map[int32]int32   // by owner: the invocation of its first operation in flight
	since          []time.Duration   // by key: tokens of grants from then on may be compared one by one
	sure           []time.Duration   // by key: until then the holders are certain
	oldest         int32             // event with which the first kept chain begins
	overlappingOps map[int32]bool    // spans: evidence that the holds of an owner are unknown
	touch          []int32           // by key: the touch with the greatest token; -1: none
}

// trim drops events that can no longer matter.
func (s *Stream) trim() {
	h := s.b.History()
	v, err := safeView(s.o.withLimits(h), s.o)
	if err != nil {
		return
	}
	k := retention{view: v, chains: make(map[ownerKey][]chain), open: make(map[ownerKey]bool),
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
	k.since = slices.Repeat([]time.Duration{k.h.End - clockError}, len(k.h.Keys))
	k.sure = slices.Clone(k.since)
	crashed := make(map[int]int32) // clients that crashed, and the event
	for _, n := range refs(k.h.Notices) {
		if n.F == history.Crash {
			crashed[n.Process.Client(k.h.Clients)] = n.Index
		}
	}
	for _, s := range refs(k.h.Spans) {
		if s.Ended >= 0 {
			continue
		}
		k.open[ownerKey{s.Owner, s.Key}] = true
		if s.Op == history.OpRelease { // see endNow
			k.sure[s.Key] = min(k.sure[s.Key], s.Call-clockError)
		}
		if _, known := k.first[s.Owner]; !known {
			k.first[s.Owner] = s.Invoked
		}
		if at, is := crashed[s.Process.Client(k.h.Clients)]; is && at > s.Invoked {
			continue // it will not be granted
		}
		if isLockOp(s) {
			k.since[s.Key] = min(k.since[s.Key], s.Call-clockError)
		}
	}
}

// findOverlapping keeps the first two overlapping operations of each owner whose holds are unknown.
func (k *retention) findOverlapping() {
	k.overlappingOps = make(map[int32]bool)
	last := make(map[int32]int32) // by owner: 1 + the operation that completed last; -1: the evidence is found
	for i, s := range refs(k.h.Spans) {
		before := last[s.Owner]
		if k.ownerOrder[s.Owner] != ordUnknown || !isLockOp(s) || before < 0 {
			continue
		}
		if before > 0 && s.Invoked < k.h.Spans[before-1].Ended {
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
	k.of = make([]int32, len(k.holds))
	for i, h := range refs(k.holds) {
		at := ownerKey{h.owner, h.key}
		list := k.chains[at]
		end := int32(math.MaxInt32)
		if h.until != never && h.endEvent >= 0 {
			end = h.endEvent
		}
		if begin := k.h.Spans[h.span].Invoked; len(list) == 0 || begin > list[len(list)-1].to {
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
		last.kept = last.to == math.MaxInt32 || k.open[at] || k.ownerOrder[at.owner] != ordSequential
	}
}

// recent keeps the holds that ended so recently that it is not certain yet which others overlapped with them, or for
// how long: a hold that has not ended may end at this very instant.
func (k *retention) recent() {
	for i, h := range refs(k.holds) {
		if max(h.from, h.until) >= k.sure[h.key] {
			k.keep(i)
		}
	}
}

// tokens keeps the holds whose tokens may be compared.
func (k *retention) tokens() {
	for key, holds := range k.byKey {
		best, ended := none, none // the greatest token, and the greatest of a hold that has ended
		for i, h := range refsAt(k.holds, holds) {
			switch {
			case !k.hasToken(i):
				continue
			case h.from >= k.since[key]:
				k.keep(i)
				continue
			}
			if best < 0 || h.token > k.holds[best].token {
				best = i
			}
			if h.until != never && (ended < 0 || h.token > k.holds[ended].token) {
				ended = i
			}
		}
		for _, i := range []int32{best, ended} {
			if i >= 0 {
				k.keep(i)
			}
		}
	}
	k.touch = slices.Repeat([]int32{none}, len(k.h.Keys))
	for i, t := range refs(k.h.Touches) {
		if best := k.touch[t.Key]; best < 0 || t.Token > k.h.Touches[best].Token {
			k.touch[t.Key] = i
		}
	}
}

func (k *retention) keep(i int32) {
	h := &k.holds[i]
	k.chains[ownerKey{h.owner, h.key}][k.of[i]].kept = true
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
	if setsSize(s) { // there are few of them
		return true
	}
	if s.Op == history.OpRelease && k.ownerOrder[s.Owner] != ordSequential && s.Return >= k.h.End {
		return true // it may have returned a permit that is requested at this very instant
	}
	if s.Op == history.OpForceRelease {
		return s.Ended >= k.oldest
	}
	return s.Outcome == history.Info || k.overlappingOps[i] || k.within(ownerKey{s.Owner, s.Key}, s.Invoked)
}

func (k *retention) within(at ownerKey, event int32) bool {
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
	return k.within(ownerKey{n.Owner, n.Key}, n.Index)
}

func (k *retention) keepsTouch(i int32, t *history.Touched) bool { return k.touch[t.Key] == i }
