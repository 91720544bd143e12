package reports

import (
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
