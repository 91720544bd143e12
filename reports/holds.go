package reports

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// hold is a hold of [checker.FindHolds] with an end that can be drawn.
type hold struct {
	checker.Hold
	to time.Duration // Until, or the end of the history
}

func findHolds(h *history.History, o checker.Options) []hold {
	var holds []hold
	for _, found := range checker.FindHolds(h, o) {
		holds = append(holds, hold{found, max(found.From, min(found.Until, h.End))})
	}
	return holds
}

// String is the client of a hold.
func (h *hold) String() string { return clientName(h.Client) }

// validUntil is the end of the last promise; 0 if there was none, or one without end.
func (h *hold) validUntil() time.Duration {
	if n := len(h.Promises); n > 0 && h.Promises[n-1].Until != history.Infinity {
		return h.Promises[n-1].Until
	}
	return 0
}

// lost reports whether the client learned that it lost the lock.
func (h *hold) lost() bool { return h.End == checker.LossReported || h.End == checker.RenewalRefused }

// it refers to what is held, in a headline that has already named it.
func (h *hold) it() string {
	switch h.Permits {
	case 0:
		return "it"
	case 1:
		return "a permit"
	}
	return "permits"
}

// what names what is held: the permits of a semaphore, or else lock.
func (h *hold) what(lock string) string {
	if h.Permits == 0 {
		return lock
	}
	return format.Count(h.Permits, "permit")
}

// issuesTokens reports whether any grant has a fencing token.
func (r *Run) issuesTokens() bool {
	return slices.ContainsFunc(r.holds, func(h hold) bool { return h.Token > 0 })
}

// endOfValidity says that the promise to a holder ends.
func (r *Run) endOfValidity(h *hold) string {
	if r.validityName(h) != "its validity" {
		return fmt.Sprintf("the requested lease of %s ends, counted from the request", clientName(h.Client))
	}
	return fmt.Sprintf("the validity of %s's grant ends", clientName(h.Client))
}

// drawn is the interval in which a hold or its validity is drawn.
func (h *hold) drawn() interval {
	until, _ := h.promised()
	return interval{h.From, max(h.to, until)}
}

// promised is the end of the validity that counted, 0 if there was none; whole is
// false if a release ended it early.
func (h *hold) promised() (until time.Duration, whole bool) {
	until = h.validUntil()
	released := h.End == checker.Released || h.End == checker.ReleaseUnknown || h.End == checker.ReleaseRefused
	if released && until > h.to {
		return h.to, false
	}
	return until, true
}

// lastHold is the last hold of an owner that was granted before t; nil if there is none.
func (r *Run) lastHold(owner, key int32, t time.Duration) *hold {
	return lastOf(r.holds, func(h *hold) bool { return h.Owner == owner && h.Key == key && h.From <= t })
}

// releaseOf is the release that ended a hold, which was released.
func (r *Run) releaseOf(h *hold) *history.Span {
	return firstOf(r.History.Spans, func(s *history.Span) bool { return s.Invoked == h.Ended })
}

// endPoint is what ended a hold, or the last event.
func (h *hold) endPoint(r *Run) point {
	if h.Ended < 0 {
		return point{Event: r.lastEvent(), Time: r.History.End}
	}
	return h.ended()
}
