package ledger

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/history"
)

// Level is something that an owner did inside a hold. The fold of the holds records it for [property.HoldCount].
type Level struct {
	Hold, Span  int32
	Depth       int32 // how often the owner holds the lock after it, in the mode of the hold
	Kind        levelKind
	Lapsed      bool // the promise had ended: it may be another hold, which counts from one
	ModeUnknown bool // the owner reads and writes, and an earlier release may have been of either
}

type levelKind uint8

const (
	Reentered     levelKind = iota // acquired again
	ReleasedInner                  // released, and still held
	WrongDepth                     // the reply has another hold count
	Refused                        // not granted although held
)

// noteLevel records a level of a hold that is still in its owner's list.
func (b *holdFold) noteLevel(h *Hold, l Level) {
	for l.Hold = b.list(h.Owner, h.Key); &b.Holds[l.Hold] != h; l.Hold = b.Holds[l.Hold].next {
	}
	l.ModeUnknown = len(b.modeUnknown) > 0 && b.modeUnknown[h.At()]
	b.Levels = append(b.Levels, l)
}

// compareCount compares the hold count in a reply, if it has one, with the depth. Of an owner that reads and writes it
// may be the count of one mode or of both together, and with the levels of which a loss was reported or without them.
func (b *holdFold) compareCount(i int32, s *history.Span, h *Hold, lapsed bool) {
	if s.Count == 0 {
		return
	}
	if !lapsed {
		b.Counted = append(b.Counted, i)
	}
	depth := h.depth + h.Extra().FailedReleases
	lost, both := h.Extra().LostLevels, depth
	if b.Usage[s.Key]&UsageMixed != 0 {
		if other := b.find(s.Owner, s.Key, !h.Reader); other != nil {
			both += other.depth + other.Extra().FailedReleases
			lost += other.Extra().LostLevels
		}
	}
	blurred := len(b.modeUnknown) > 0 && b.modeUnknown[h.At()]
	within := func(depth int32) bool { return depth <= s.Count && s.Count <= depth+lost }
	if within(depth) || within(both) || blurred && s.Count > 0 && s.Count < both {
		return
	}
	if s.Count < depth && s.Count >= depth-b.levelsLostDuring(s) { // the reply is later than the loss
		return
	}
	b.noteLevel(h, Level{Span: i, Depth: depth, Kind: WrongDepth, Lapsed: lapsed})
}

// levelsLostDuring counts the levels of the owner's hold of which a loss was reported between request and reply of s.
func (b *holdFold) levelsLostDuring(s *history.Span) (levels int32) {
	for _, n := range refs.All(b.H.Notices) {
		if n.F == history.Lost && n.Left > 0 && n.Owner == s.Owner && n.Key == s.Key &&
			n.Time >= s.Call && n.Time <= s.Return {
			levels++
		}
	}
	return levels
}

// leaveLevel records the levels of h that a successful release left.
func (b *holdFold) leaveLevel(i int32, s *history.Span, h *Hold) {
	if b.Usage[s.Key]&UsageMixed != 0 {
		b.noteUnknownMode(s, h)
	}
	if s.Outcome != history.OK {
		return
	}
	lapsed := s.Return >= h.LastPromise()
	b.compareCount(i, s, h, lapsed)
	if depth := h.depth + h.Extra().FailedReleases; depth > 0 {
		b.noteLevel(h, Level{Span: i, Depth: depth, Kind: ReleasedInner, Lapsed: lapsed})
	}
}

// noteUnknownMode records that a release by an owner that reads and writes may have been of either mode. Its counts are
// clear again when it has released both.
func (b *holdFold) noteUnknownMode(s *history.Span, h *Hold) {
	other := b.find(s.Owner, s.Key, !h.Reader)
	switch at := (h.At()); {
	case other == nil && h.depth+h.Extra().FailedReleases == 0:
		delete(b.modeUnknown, at)
	case other != nil && s.Write:
		b.modeUnknown[at] = true
	}
}

// noteRefused records that an owner was refused the lock that it holds.
func (b *holdFold) noteRefused(i int32, s *history.Span) {
	if b.H.Limit(s.Key) != 0 {
		return
	}
	if h := b.find(s.Owner, s.Key, !s.Write); h != nil && h.Ending == endOpen {
		depth := h.depth + h.Extra().FailedReleases
		b.noteLevel(h, Level{Span: i, Depth: depth, Kind: Refused, Lapsed: s.Return >= h.LastPromise()})
	}
}

// keptLevels are levels whose loss was reported before the owner released the others.
type keptLevels struct {
	levels int32
	until  time.Duration // servers may count them until then
}

// frees reports whether a release of the last known level shows that the lock is free. After one of unknown outcome
// levels may be left by its reply: then that one had no effect, or this one repeated it.
func frees(s *history.Span, h *Hold) bool {
	return s.Outcome == history.OK && !(h.Extra().MaybeLeft && s.Count > 0)
}
