package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// holdFold finds holds: it applies operations and notices in the order of their effects.
type holdFold struct {
	openHolds
	lostOwners  map[int32]bool    // owners that lost a hold
	hasLost     map[ownerKey]bool // owners with an open hold that is lost
	clients     byClient
	all         bool // also the holds of owners whose program order is ordUnknown
	modeUnknown map[ownerKey]bool
	kept        map[ownerKey]keptLevels // lost levels of holds that were released
	forcible    *forcible               // nil until needed
	effects     map[int32]time.Duration // by forced release that ended a hold: by when it certainly had
	acquires    map[ownerKey][]int32    // see acquiring; nil until needed
}

// find is the open hold of an owner at a key, in the given mode; nil if there is none.
func (b *holdFold) find(owner, key int32, reader bool) *hold {
	for i := b.list(owner, key); i >= 0; i = b.holds[i].next {
		if h := &b.holds[i]; h.key == key && h.reader == reader {
			return h
		}
	}
	return nil
}

// released is the hold that a release belongs to. Few histories record the mode of a release. If the owner both reads
// and writes, a release without a mode is taken to end the write, because then it is only certain that the owner
// still reads.
func (b *holdFold) released(s *history.Span) *hold {
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
	if b.ownerOrder[s.Owner] == ordUnknown && !b.all {
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
	if b.h.Limit(s.Key) != 0 {
		b.acquirePermits(i, s)
		return
	}
	h := b.find(s.Owner, s.Key, !s.Write)
	debt := int32(0)
	if h != nil && h.ending == endOpen && h.depth == 0 { // the owner stopped relying on it, but its releases failed
		debt, h.core, h.ending = h.extra().failedReleases, s.Return, endUnknown
		b.usage[s.Key] |= usageNested // for the servers this is a re-entry
		b.regrants = append(b.regrants, i)
		b.noteLevel(h, level{span: i, depth: debt + 1, kind: reentered, lapsed: s.Return >= h.lastPromise()})
		b.close(h)
		h = nil
	}
	if h != nil && h.ending == endOpen && b.mayBeFirst(i) {
		b.refuse(h, s, s.Call, s.Invoked)
		b.ownerOrder[s.Owner] = max(b.ownerOrder[s.Owner], ordAfterUnknown)
	}
	if h != nil && h.ending == endOpen {
		h.depth++
		b.reenter(i, s, h)
		h.promise(s.Return, b.promisedBy(i))
		b.lease(h, s.Return, s.Lease)
		return
	}
	within := h != nil && s.Call < h.until // requested inside a hold that was lost before the reply came
	remains := within || b.mayBeFirst(i) || h != nil && s.Call < b.keptUntil(h)
	reenters := within || remains && s.Token != 0 && s.Token == h.token // perhaps, for the servers
	if h != nil {                                                       // lost, and acquired again
		b.close(h)
	}
	levels := int32(0)
	if k, ok := b.kept[ownerKey{s.Owner, s.Key}]; ok && s.Call < k.until {
		remains, levels = true, k.levels
	}
	b.begin(i, s, 1)
	h = &b.holds[len(b.holds)-1]
	h.remains = remains
	if debt > 0 || levels > 0 {
		h.mutableExtra().failedReleases, h.mutableExtra().lostLevels = debt, levels
	}
	if reenters { // with the token of the lost hold
		h.token, b.carried = 0, append(b.carried, i)
		b.ownerOrder[s.Owner] = max(b.ownerOrder[s.Owner], ordAfterUnknown)
	}
	b.noteOtherMode(i, s)
	b.compareCount(i, s, h, false)
}

// begin appends the hold that begins with a grant.
func (b *holdFold) begin(i int32, s *history.Span, depth int32) {
	b.holds = append(b.holds, hold{
		asked: s.Call, from: s.Return, until: never, core: never, freeBy: never,
		valid: b.promisedBy(i), token: s.Token, key: s.Key, owner: s.Owner,
		span: i, endEvent: -1, next: none, depth: depth, reader: !s.Write,
		expiredOnArrival: promised(s) <= s.Return,
	})
	b.push(int32(len(b.holds) - 1))
}

// noteOtherMode notes that the newest hold began inside one of the same owner in the other mode.
func (b *holdFold) noteOtherMode(i int32, s *history.Span) {
	h := b.find(s.Owner, s.Key, s.Write)
	switch {
	case h == nil:
	case h.ending == endOpen:
		b.usage[s.Key] |= usageNested | usageMixed
		b.regrants = append(b.regrants, i)
		b.holds[len(b.holds)-1].inner = true
	default: // lost, and acquired again
		b.close(h)
	}
}

// reenter notes an acquire inside a hold.
func (b *holdFold) reenter(i int32, s *history.Span, h *hold) {
	b.usage[s.Key] |= usageNested
	b.regrants = append(b.regrants, i)
	if s.Token != 0 && promised(s) > s.Return && h.orderingToken() != 0 && s.Token != h.token {
		if b.mayBeForced(s) {
			b.ownerOrder[s.Owner] = max(b.ownerOrder[s.Owner], ordAfterUnknown)
		} else {
			b.renumbered = append(b.renumbered, i)
		}
	}
	lapsed := s.Return >= h.lastPromise()
	b.noteLevel(h, level{span: i, depth: h.depth + h.extra().failedReleases, kind: reentered, lapsed: lapsed})
	b.compareCount(i, s, h, lapsed)
}

// release leaves one level. Of the outermost one only the invocation counts: from then on the owner does not rely on
// the lock, whatever the reply is.
func (b *holdFold) release(i int32, s *history.Span) {
	if b.h.Limit(s.Key) != 0 {
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
	if other := b.find(s.Owner, s.Key, !h.reader); other != nil && !s.Moded {
		h.ambiguous, other.ambiguous = true, true
	}
	if h.ending == endLost && s.Outcome != history.OK {
		b.close(h)
		return
	}
	if s.Outcome == history.Fail && s.Held {
		b.releaseRefused(h, s)
		return
	}
	if h.extra().failedReleases > 0 {
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
			h.mutableExtra().maybeLeft = true
		}
		if h.ending == endLost { // it was still held, in spite of the reported loss
			h.core = s.Call
		}
		return
	}
	how := endUnknown
	switch {
	case h.extra().lostLevels > 0:
		b.kept[ownerKey{h.owner, h.key}] = keptLevels{h.extra().lostLevels, b.leaseEnd(h)}
		how = endLost
	case frees(s, h) && !h.remains:
		how = endReleased
		b.freed(h, s.Return)
	}
	h.end(how, s.Call, s.Invoked)
	b.close(h)
}

// releaseRefused is a release that failed and had no effect. The owner stops relying on the lock, as with any
// release, but the lock is still held. If it is granted to another owner then, no order of the operations is legal,
// although there need not have been two holders at once (see the etcd history among Knossos' examples).
func (b *holdFold) releaseRefused(h *hold, s *history.Span) {
	if h.ending != endOpen || h.depth == 0 {
		return
	}
	h.mutableExtra().failedReleases++
	if h.depth--; h.depth == 0 {
		h.endBelief(s.Call, s.Invoked)
	}
}

// releaseAfterRefusal is a release of a hold of which releases have failed before.
func (b *holdFold) releaseAfterRefusal(i int32, s *history.Span, h *hold) {
	if s.Outcome == history.Fail || h.ending == endLost {
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
	h.mutableExtra().failedReleases--
	if b.leaveLevel(i, s, h); h.extra().failedReleases > 0 {
		return
	}
	h.core, h.ending = s.Call, endUnknown
	if frees(s, h) {
		h.ending = endReleased
		b.freed(h, s.Return)
	}
	b.close(h)
}

// releaseOfNothing notes a release that succeeded although its owner knew of no hold. If its last hold was lost, or an
// operation of unknown outcome came before, that may be the hold that was released.
func (b *holdFold) releaseOfNothing(i int32, s *history.Span) {
	switch {
	case b.ownerOrder[s.Owner] == ordSequential && !b.lostOwners[s.Owner]:
		b.orphans = append(b.orphans, i)
	case b.acquiredAtOnce(i, s):
		b.ownerOrder[s.Owner] = ordUnknown
	default:
		b.ownerOrder[s.Owner] = max(b.ownerOrder[s.Owner], ordAfterUnknown)
	}
}

// acquiredAtOnce reports whether the owner of release i acquired at the very instant at which the release returned.
// Equal times are concurrent, so that acquire may explain the release, and which holds the owner had is unknown.
func (b *holdFold) acquiredAtOnce(i int32, r *history.Span) bool {
	for n := int(i) + 1; n < len(b.h.Spans) && b.h.Spans[n].Call <= r.Return; n++ {
		s := &b.h.Spans[n]
		if s.Owner == r.Owner && s.Key == r.Key && isLockOp(s) && s.Op != history.OpRelease && s.Outcome != history.Fail {
			return true
		}
	}
	return false
}

// renew extends the promise; a renewal that is refused ends the hold.
func (b *holdFold) renew(i int32, s *history.Span) {
	switch {
	case s.Outcome == history.Fail && !s.Held:
		b.unrenewed = append(b.unrenewed, s)
		b.lose(s)
	case s.Outcome == history.OK && (s.Valid != 0 || s.Lease > 0):
		b.promise(s.Owner, s.Key, segment{s.Return, b.promisedBy(i)}, s.Lease)
	}
}

// promise replaces the promise of the holds of an owner at a key; at a semaphore only of the latest hold.
func (b *holdFold) promise(owner, key int32, made segment, lease time.Duration) {
	for i := b.list(owner, key); i >= 0; i = b.holds[i].next {
		if h := &b.holds[i]; h.key == key && h.until == never {
			b.lease(h, made.from, lease)
			if h.promise(made.from, made.until); b.h.Limit(key) != 0 {
				return
			}
		}
	}
}

// lose ends the holds of an owner at a key whose renewal was refused.
func (b *holdFold) lose(s *history.Span) {
	for n := b.list(s.Owner, s.Key); n >= 0; n = b.holds[n].next {
		if h := &b.holds[n]; h.key == s.Key && h.ending == endOpen {
			b.refuse(h, s, s.Return, s.Ended)
			b.noteLost(h)
		}
	}
}

// refuse ends a hold at t: its release or renewal s was refused because the servers no longer know it.
func (b *holdFold) refuse(h *hold, s *history.Span, t time.Duration, event int32) {
	h.end(endLost, max(t, h.from), event)
	b.endLapsed(h, s)
}

func (b *holdFold) notice(n *history.Notice) {
	switch {
	case n.F == history.Renewed && n.Valid != 0:
		b.promise(n.Owner, n.Key, segment{n.Time, n.Valid}, 0)
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
	for _, h := range refsAt(b.holds, b.clients.since(b.view, n.Process.Client(b.h.Clients))) {
		if h.ending == endOpen {
			h.end(endLost, max(n.Time, h.from), n.Index) // it may have been killed before the grant was recorded
			b.noteLost(h)
		}
	}
}

// noteLost notes that an open hold is lost.
func (b *holdFold) noteLost(h *hold) {
	b.hasLost[ownerKey{h.owner, h.key}] = true
}

// end ends a hold. Belief ends with the first such event; a release that succeeds after a reported loss proves that
// the lock was held for longer than that.
func (h *hold) end(how ending, at time.Duration, event int32) {
	h.endBelief(at, event)
	h.core, h.ending = at, how
}

// endBelief notes that the owner no longer relies on the hold, unless that was noted before.
func (h *hold) endBelief(at time.Duration, event int32) {
	if h.until == never {
		h.until, h.endEvent = at, event
	}
}

// close removes a hold from the open ones of its owner.
func (b *holdFold) close(h *hold) {
	if h.ending == endLost {
		b.lostOwners[h.owner] = true
	}
	b.unlink(h)
}
