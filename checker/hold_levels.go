package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// level is something that an owner did inside a hold. The fold of the holds records it for [HoldCount].
type level struct {
	hold, span  int32
	depth       int32 // how often the owner holds the lock after it, in the mode of the hold
	kind        levelKind
	lapsed      bool // the promise had ended: it may be another hold, which counts from one
	modeUnknown bool // the owner reads and writes, and an earlier release may have been of either
}

type levelKind uint8

const (
	reentered     levelKind = iota // acquired again
	releasedInner                  // released, and still held
	wrongDepth                     // the reply has another hold count
	refused                        // not granted although held
)

// noteLevel records a level of a hold that is still in its owner's list.
func (b *holdFold) noteLevel(h *hold, l level) {
	for l.hold = b.list(h.owner, h.key); &b.holds[l.hold] != h; l.hold = b.holds[l.hold].next {
	}
	l.modeUnknown = len(b.modeUnknown) > 0 && b.modeUnknown[ownerKey{h.owner, h.key}]
	b.levels = append(b.levels, l)
}

// compareCount compares the hold count in a reply, if it has one, with the depth. Of an owner that reads and writes it
// may be the count of one mode or of both together, and with the levels of which a loss was reported or without them.
func (b *holdFold) compareCount(i int32, s *history.Span, h *hold, lapsed bool) {
	if s.Count == 0 {
		return
	}
	if !lapsed {
		b.counted = append(b.counted, i)
	}
	depth := h.depth + h.extra().failedReleases
	lost, both := h.extra().lostLevels, depth
	if b.usage[s.Key]&usageMixed != 0 {
		if other := b.find(s.Owner, s.Key, !h.reader); other != nil {
			both += other.depth + other.extra().failedReleases
			lost += other.extra().lostLevels
		}
	}
	blurred := len(b.modeUnknown) > 0 && b.modeUnknown[ownerKey{h.owner, h.key}]
	within := func(depth int32) bool { return depth <= s.Count && s.Count <= depth+lost }
	if within(depth) || within(both) || blurred && s.Count > 0 && s.Count < both {
		return
	}
	if s.Count < depth && s.Count >= depth-b.levelsLostDuring(s) { // the reply is later than the loss
		return
	}
	b.noteLevel(h, level{span: i, depth: depth, kind: wrongDepth, lapsed: lapsed})
}

// levelsLostDuring counts the levels of the owner's hold of which a loss was reported between request and reply of s.
func (b *holdFold) levelsLostDuring(s *history.Span) (levels int32) {
	for _, n := range refs(b.h.Notices) {
		if n.F == history.Lost && n.Left > 0 && n.Owner == s.Owner && n.Key == s.Key &&
			n.Time >= s.Call && n.Time <= s.Return {
			levels++
		}
	}
	return levels
}

// leaveLevel records the levels of h that a successful release left.
func (b *holdFold) leaveLevel(i int32, s *history.Span, h *hold) {
	if b.usage[s.Key]&usageMixed != 0 {
		b.noteUnknownMode(s, h)
	}
	if s.Outcome != history.OK {
		return
	}
	lapsed := s.Return >= h.lastPromise()
	b.compareCount(i, s, h, lapsed)
	if depth := h.depth + h.extra().failedReleases; depth > 0 {
		b.noteLevel(h, level{span: i, depth: depth, kind: releasedInner, lapsed: lapsed})
	}
}

// noteUnknownMode records that a release by an owner that reads and writes may have been of either mode. Its counts are
// clear again when it has released both.
func (b *holdFold) noteUnknownMode(s *history.Span, h *hold) {
	other := b.find(s.Owner, s.Key, !h.reader)
	switch at := (ownerKey{h.owner, h.key}); {
	case other == nil && h.depth+h.extra().failedReleases == 0:
		delete(b.modeUnknown, at)
	case other != nil && s.Write:
		b.modeUnknown[at] = true
	}
}

// noteRefused records that an owner was refused the lock that it holds.
func (b *holdFold) noteRefused(i int32, s *history.Span) {
	if b.h.Limit(s.Key) != 0 {
		return
	}
	if h := b.find(s.Owner, s.Key, !s.Write); h != nil && h.ending == endOpen {
		depth := h.depth + h.extra().failedReleases
		b.noteLevel(h, level{span: i, depth: depth, kind: refused, lapsed: s.Return >= h.lastPromise()})
	}
}

// keptLevels are levels whose loss was reported before the owner released the others.
type keptLevels struct {
	levels int32
	until  time.Duration // servers may count them until then
}

// frees reports whether a release of the last known level shows that the lock is free. After one of unknown outcome
// levels may be left by its reply: then that one had no effect, or this one repeated it.
func frees(s *history.Span, h *hold) bool {
	return s.Outcome == history.OK && !(h.extra().maybeLeft && s.Count > 0)
}
