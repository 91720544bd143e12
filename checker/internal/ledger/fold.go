package ledger

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// holdFold finds holds: it applies operations and notices in the order of their effects.
type holdFold struct {
	openHolds
	lostOwners  map[int32]bool    // owners that lost a hold
	hasLost     map[OwnerKey]bool // owners with an open hold that is lost
	clients     byClient
	all         bool // also the holds of owners whose program order is OrdUnknown
	modeUnknown map[OwnerKey]bool
	kept        map[OwnerKey]keptLevels // lost levels of holds that were released
	forcible    *forcible               // nil until needed
	effects     map[int32]time.Duration // by forced release that ended a hold: by when it certainly had
	acquires    map[OwnerKey][]int32    // see acquiring; nil until needed
}

// find is the open hold of an owner at a key, in the given mode; nil if there is none.
func (b *holdFold) find(owner, key int32, reader bool) *Hold {
	for i := b.list(owner, key); i >= 0; i = b.Holds[i].next {
		if h := &b.Holds[i]; h.Key == key && h.Reader == reader {
			return h
		}
	}
	return nil
}

// released is the hold that a release belongs to. Few histories record the mode of a release. If the owner both reads
// and writes, a release without a mode is taken to end the write, because then it is only certain that the owner
// still reads.
func (b *holdFold) released(s *history.Span) *Hold {
	if h := b.find(s.Owner, s.Key, !s.Write); h != nil {
		return h
	}
	return b.find(s.Owner, s.Key, s.Write)
}

func (b *holdFold) span(i int32, s *history.Span) {
	if s.Op == history.OpForceRelease {
		b.forced(i, s)
		return
	}
	if b.OwnerOrder[s.Owner] == OrdUnknown && !b.all {
		return
	}
	switch s.Op {
	case history.OpAcquire, history.OpTry:
		switch s.Outcome {
		case history.OK:
			b.acquire(i, s)
		case history.Fail:
			b.noteRefused(i, s)
		}
	case history.OpRelease:
		b.release(i, s)
	case history.OpRenew:
		b.renew(i, s)
	}
}

// acquire begins a hold or enters one again. An acquire of unknown outcome does neither: it may have had no effect, and
// only certain effects count.
func (b *holdFold) acquire(i int32, s *history.Span) {
	if b.H.Limit(s.Key) != 0 {
		b.acquirePermits(i, s)
		return
	}
	h := b.find(s.Owner, s.Key, !s.Write)
	debt := int32(0)
	if h != nil && h.Ending == endOpen && h.depth == 0 { // the owner stopped relying on it, but its releases failed
		debt, h.Core, h.Ending = h.Extra().FailedReleases, s.Return, EndUnknown
		b.Usage[s.Key] |= UsageNested // for the servers this is a re-entry
		b.Regrants = append(b.Regrants, i)
		b.noteLevel(h, Level{Span: i, Depth: debt + 1, Kind: Reentered, Lapsed: s.Return >= h.LastPromise()})
		b.close(h)
		h = nil
	}
	if h != nil && h.Ending == endOpen && b.mayBeFirst(i) {
		b.refuse(h, s, s.Call, s.Invoked)
		b.OwnerOrder[s.Owner] = max(b.OwnerOrder[s.Owner], OrdAfterUnknown)
	}
	if h != nil && h.Ending == endOpen {
		h.depth++
		b.reenter(i, s, h)
		h.promise(s.Return, b.PromisedBy(i))
		b.lease(h, s.Return, s.Lease)
		return
	}
	within := h != nil && s.Call < h.Until // requested inside a hold that was lost before the reply came
	remains := within || b.mayBeFirst(i) || h != nil && s.Call < b.keptUntil(h)
	reenters := within || remains && s.Token != 0 && s.Token == h.Token // perhaps, for the servers
	if h != nil {                                                       // lost, and acquired again
		b.close(h)
	}
	levels := int32(0)
	if k, ok := b.kept[Of(s)]; ok && s.Call < k.until {
		remains, levels = true, k.levels
	}
	b.begin(i, s, 1)
	h = &b.Holds[len(b.Holds)-1]
	h.Remains = remains
	if debt > 0 || levels > 0 {
		h.mutableExtra().FailedReleases, h.mutableExtra().LostLevels = debt, levels
	}
	if reenters { // with the token of the lost hold
		h.Token, b.Carried = 0, append(b.Carried, i)
		b.OwnerOrder[s.Owner] = max(b.OwnerOrder[s.Owner], OrdAfterUnknown)
	}
	b.noteOtherMode(i, s)
	b.compareCount(i, s, h, false)
}

// begin appends the hold that begins with a grant.
func (b *holdFold) begin(i int32, s *history.Span, depth int32) {
	b.Holds = append(b.Holds, Hold{
		Asked: s.Call, From: s.Return, Until: segment.Never, Core: segment.Never, FreeBy: segment.Never,
		Valid: b.PromisedBy(i), Token: s.Token, Key: s.Key, Owner: s.Owner,
		Span: i, EndEvent: -1, next: refs.None, depth: depth, Reader: !s.Write,
		ExpiredOnArrival: Promised(s) <= s.Return,
	})
	b.push(int32(len(b.Holds) - 1))
}

// noteOtherMode notes that the newest hold began inside one of the same owner in the other mode.
func (b *holdFold) noteOtherMode(i int32, s *history.Span) {
	h := b.find(s.Owner, s.Key, s.Write)
	switch {
	case h == nil:
	case h.Ending == endOpen:
		b.Usage[s.Key] |= UsageNested | UsageMixed
		b.Regrants = append(b.Regrants, i)
		b.Holds[len(b.Holds)-1].Inner = true
	default: // lost, and acquired again
		b.close(h)
	}
}

// reenter notes an acquire inside a hold.
func (b *holdFold) reenter(i int32, s *history.Span, h *Hold) {
	b.Usage[s.Key] |= UsageNested
	b.Regrants = append(b.Regrants, i)
	if s.Token != 0 && Promised(s) > s.Return && h.OrderingToken() != 0 && s.Token != h.Token {
		if b.mayBeForced(s) {
			b.OwnerOrder[s.Owner] = max(b.OwnerOrder[s.Owner], OrdAfterUnknown)
		} else {
			b.Renumbered = append(b.Renumbered, i)
		}
	}
	lapsed := s.Return >= h.LastPromise()
	b.noteLevel(h, Level{Span: i, Depth: h.depth + h.Extra().FailedReleases, Kind: Reentered, Lapsed: lapsed})
	b.compareCount(i, s, h, lapsed)
}

// release leaves one level. Of the outermost one only the invocation counts: from then on the owner does not rely on
// the lock, whatever the reply is.
func (b *holdFold) release(i int32, s *history.Span) {
	if b.H.Limit(s.Key) != 0 {
		b.releasePermits(i, s)
		return
	}
	h := b.released(s)
	if h == nil {
		if s.Outcome == history.OK {
			b.releaseOfNothing(i, s)
		}
		return
	}
	if other := b.find(s.Owner, s.Key, !h.Reader); other != nil && !s.Moded {
		h.Ambiguous, other.Ambiguous = true, true
	}
	if h.Ending == EndLost && s.Outcome != history.OK {
		b.close(h)
		return
	}
	if s.Outcome == history.Fail && s.Held {
		b.releaseRefused(h, s)
		return
	}
	if h.Extra().FailedReleases > 0 {
		b.releaseAfterRefusal(i, s, h)
		return
	}
	if s.Outcome == history.Fail { // the servers no longer know this hold
		b.refuse(h, s, s.Call, s.Invoked)
		b.close(h)
		if h = b.find(s.Owner, s.Key, s.Write); h != nil && s.Write { // perhaps nor its read
			b.refuse(h, s, s.Call, s.Invoked)
			b.close(h)
		}
		return
	}
	h.depth--
	if b.leaveLevel(i, s, h); h.depth > 0 {
		if s.Outcome == history.Info {
			h.mutableExtra().MaybeLeft = true
		}
		if h.Ending == EndLost { // it was still held, in spite of the reported loss
			h.Core = s.Call
		}
		return
	}
	how := EndUnknown
	switch {
	case h.Extra().LostLevels > 0:
		b.kept[h.At()] = keptLevels{h.Extra().LostLevels, b.leaseEnd(h)}
		how = EndLost
	case frees(s, h) && !h.Remains:
		how = EndReleased
		b.freed(h, s.Return)
	}
	h.end(how, s.Call, s.Invoked)
	b.close(h)
}

// releaseRefused is a release that failed and had no effect. The owner stops relying on the lock, as with any
// release, but the lock is still held. If it is granted to another owner then, no order of the operations is legal,
// although there need not have been two holders at once (see the etcd history among Knossos' examples).
func (b *holdFold) releaseRefused(h *Hold, s *history.Span) {
	if h.Ending != endOpen || h.depth == 0 {
		return
	}
	h.mutableExtra().FailedReleases++
	if h.depth--; h.depth == 0 {
		h.endBelief(s.Call, s.Invoked)
	}
}

// releaseAfterRefusal is a release of a hold of which releases have failed before.
func (b *holdFold) releaseAfterRefusal(i int32, s *history.Span, h *Hold) {
	if s.Outcome == history.Fail || h.Ending == EndLost {
		b.refuse(h, s, s.Call, s.Invoked)
		b.close(h)
		return
	}
	if h.depth > 0 {
		h.depth--
		if b.leaveLevel(i, s, h); h.depth == 0 {
			h.endBelief(s.Call, s.Invoked)
		}
		return
	}
	h.mutableExtra().FailedReleases--
	if b.leaveLevel(i, s, h); h.Extra().FailedReleases > 0 {
		return
	}
	h.Core, h.Ending = s.Call, EndUnknown
	if frees(s, h) {
		h.Ending = EndReleased
		b.freed(h, s.Return)
	}
	b.close(h)
}

// releaseOfNothing notes a release that succeeded although its owner knew of no hold. If its last hold was lost, or an
// operation of unknown outcome came before, that may be the hold that was released.
func (b *holdFold) releaseOfNothing(i int32, s *history.Span) {
	switch {
	case b.OwnerOrder[s.Owner] == OrdSequential && !b.lostOwners[s.Owner]:
		b.Orphans = append(b.Orphans, i)
	case b.acquiredAtOnce(i, s):
		b.OwnerOrder[s.Owner] = OrdUnknown
	default:
		b.OwnerOrder[s.Owner] = max(b.OwnerOrder[s.Owner], OrdAfterUnknown)
	}
}

// acquiredAtOnce reports whether the owner of release i acquired at the very instant at which the release returned.
// Equal times are concurrent, so that acquire may explain the release, and which holds the owner had is unknown.
func (b *holdFold) acquiredAtOnce(i int32, r *history.Span) bool {
	for n := int(i) + 1; n < len(b.H.Spans) && b.H.Spans[n].Call <= r.Return; n++ {
		s := &b.H.Spans[n]
		if s.Owner == r.Owner && s.Key == r.Key && excuse.IsLockOp(s) && s.Op != history.OpRelease &&
			s.Outcome != history.Fail {
			return true
		}
	}
	return false
}

// renew extends the promise; a renewal that is refused ends the hold.
func (b *holdFold) renew(i int32, s *history.Span) {
	switch {
	case s.Outcome == history.Fail && !s.Held:
		b.lose(s)
	case s.Outcome == history.OK && (s.Valid != 0 || s.Lease > 0):
		b.promise(s.Owner, s.Key, segment.Of(s.Return, b.PromisedBy(i)), s.Lease)
	}
}

// promise replaces the promise of the holds of an owner at a key; at a semaphore only of the latest hold.
func (b *holdFold) promise(owner, key int32, made segment.Segment, lease time.Duration) {
	for i := b.list(owner, key); i >= 0; i = b.Holds[i].next {
		if h := &b.Holds[i]; h.Key == key && h.Until == segment.Never {
			b.lease(h, made.From, lease)
			if h.promise(made.From, made.Until); b.H.Limit(key) != 0 {
				return
			}
		}
	}
}

// lose ends the holds of an owner at a key whose renewal was refused.
func (b *holdFold) lose(s *history.Span) {
	for n := b.list(s.Owner, s.Key); n >= 0; n = b.Holds[n].next {
		if h := &b.Holds[n]; h.Key == s.Key && h.Ending == endOpen {
			b.refuse(h, s, s.Return, s.Ended)
			b.noteLost(h)
		}
	}
}

// refuse ends a hold at t: its release or renewal s was refused because the servers no longer know it.
func (b *holdFold) refuse(h *Hold, s *history.Span, t time.Duration, event int32) {
	h.end(EndLost, max(t, h.From), event)
	b.endLapsed(h, s)
}

func (b *holdFold) notice(n *history.Notice) {
	switch {
	case n.F == history.Renewed && n.Valid != 0:
		b.promise(n.Owner, n.Key, segment.Of(n.Time, n.Valid), 0)
	case n.F == history.Lost && n.Left > 0: // one of several levels, which had a shorter lease
		b.lostOwners[n.Owner] = true
		b.loseLevel(n)
	case n.F == history.Lost:
		b.loseAll(n)
	case n.F == history.Crash:
		b.crash(n)
	}
}

// crash ends every hold of a client, under any of its process numbers.
func (b *holdFold) crash(n *history.Notice) {
	for _, h := range refs.At(b.Holds, b.clients.since(b.View, n.Process.Client(b.H.Clients))) {
		if h.Ending == endOpen {
			h.end(EndLost, max(n.Time, h.From), n.Index) // it may have been killed before the grant was recorded
			b.noteLost(h)
		}
	}
}

// noteLost notes that an open hold is lost.
func (b *holdFold) noteLost(h *Hold) {
	b.hasLost[h.At()] = true
}

// end ends a hold. Belief ends with the first such event; a release that succeeds after a reported loss proves that
// the lock was held for longer than that.
func (h *Hold) end(how Ending, at time.Duration, event int32) {
	h.endBelief(at, event)
	h.Core, h.Ending = at, how
}

// endBelief notes that the owner no longer relies on the hold, unless that was noted before.
func (h *Hold) endBelief(at time.Duration, event int32) {
	if h.Until == segment.Never {
		h.Until, h.EndEvent = at, event
	}
}

// close removes a hold from the open ones of its owner.
func (b *holdFold) close(h *Hold) {
	if h.Ending == EndLost {
		b.lostOwners[h.Owner] = true
	}
	b.unlink(h)
}
