package evidence

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// Hold is a hold of [checker.FindHolds] with an end that can be drawn.
type Hold struct {
	checker.Hold
	To      time.Duration // Until, or the end of the history
	Endless bool          // the servers keep no end of it, and the lock states none: the lease was only requested
}

func findHolds(h *history.History, o checker.Options) []Hold {
	var holds []Hold
	for _, found := range checker.FindHolds(h, o) {
		holds = append(holds, Hold{Hold: found, To: max(found.From, min(found.Until, h.End))})
	}
	return holds
}

// String is the client of a hold.
func (h *Hold) String() string { return ClientName(h.Client) }

// ValidUntil is the end of the last promise; 0 if there was none, or one without end.
func (h *Hold) ValidUntil() time.Duration {
	if n := len(h.Promises); n > 0 && h.Promises[n-1].Until != history.Infinity {
		return h.Promises[n-1].Until
	}
	return 0
}

// DrawnValidity is the end of the last promise as it is drawn: 0 also for a hold that nothing but its release ends.
func (h *Hold) DrawnValidity() time.Duration {
	if h.Endless {
		return 0
	}
	return h.ValidUntil()
}

// ValidAt is the end of the last promise that was made by t; 0 if there was none, or one without end.
func (h *Hold) ValidAt(t time.Duration) (until time.Duration) {
	for _, p := range h.Promises {
		if p.From <= t && p.Until != history.Infinity {
			until = p.Until
		}
	}
	return until
}

// Lost reports whether the client learned that it lost the lock.
func (h *Hold) Lost() bool { return h.End == checker.LossReported || h.End == checker.RenewalRefused }

// It is the pronoun for the held lock or permits, in a headline that has already named them.
func (h *Hold) It() string {
	switch h.Permits {
	case 0:
		return "it"
	case 1:
		return "a permit"
	}
	return "permits"
}

// Modes of holds.
const (
	NoMode = iota // the lock has no modes
	Reading
	Writing
)

// ModeOf is the mode of a hold.
func (r *Run) ModeOf(h *Hold) int {
	if h.Reader {
		return Reading
	} else if r.History.Spans[h.Span].Moded {
		return Writing
	}
	return NoMode
}

// Object names the object of the hold: the permits of a semaphore, otherwise lock.
func (h *Hold) Object(lock string) string {
	if h.Permits == 0 {
		return lock
	}
	return format.Count(h.Permits, "permit")
}

// IssuesTokens reports whether any grant has a fencing token.
func (r *Run) IssuesTokens() bool {
	return slices.ContainsFunc(r.Holds, func(h Hold) bool { return h.Token > 0 })
}

// EndOfValidity says that the promise to a holder ends.
func (r *Run) EndOfValidity(h *Hold) string { return r.EndOfPromise(h, r.Validity(h)) }

// EndOfPromise is EndOfValidity for a promise that ends at end.
func (r *Run) EndOfPromise(h *Hold, end Point) string {
	if r.PromiseName(h, end) == "its validity" {
		return "the validity of " + ClientName(h.Client) + "'s grant ends"
	}
	return fmt.Sprintf("the requested lease of %s ends, %s", ClientName(h.Client), h.Lease)
}

// Drawn is the interval in which a hold or its validity is drawn.
func (h *Hold) Drawn() Interval {
	until, _ := h.Promised()
	return Interval{h.From, max(h.To, until)}
}

// Promised is the end of the validity that is drawn, 0 if there is none; whole is false if a release ended it early.
func (h *Hold) Promised() (until time.Duration, whole bool) {
	until = h.DrawnValidity()
	released := h.End == checker.Released || h.End == checker.ReleaseUnknown || h.End == checker.ReleaseRefused
	if released && until > h.To {
		return h.To, false
	}
	return until, true
}

// findEndless finds the holds whose lease the lock ignored: the servers keep no end of them, or of any hold if no
// sample shows this one.
func (r *Run) findEndless() {
	held, ended := false, false
	for s := range Each(r.Samples) {
		for _, k := range s.Keys { // in any order: each is looked at by itself
			held, ended = true, ended || keepsEnd(k)
		}
	}
	for h := range Each(r.Holds) {
		if h.Lease != checker.LeaseFromRequest {
			continue
		}
		stays := r.Kept.Showing(h.Span)
		h.Endless = held && !ended || len(stays) > 0 && !slices.ContainsFunc(stays, func(s *kept.Stay) bool {
			return keepsEnd(s.First.Keys[r.KeyName(h.Key)])
		})
	}
}

// keepsEnd reports whether a server may end the hold that a state shows: by an expiry, with a session, with a time in
// the value, or as permits, whose leases are kept elsewhere.
func keepsEnd(k history.KeyState) bool {
	return k.TTL >= 0 || k.Session != "" || k.Limit > 0 || kept.HasTime(k.Owner)
}

// LastHold is the last hold of an owner that was granted before t; nil if there is none.
func (r *Run) LastHold(owner, key int32, t time.Duration) *Hold {
	return LastOf(r.Holds, func(h *Hold) bool { return h.Owner == owner && h.Key == key && h.From <= t })
}

// HoldOf is the hold that an acquire began, by its index in History.Spans; nil if it began none.
func (r *Run) HoldOf(span int32) *Hold {
	if i, began := r.holdBy[span]; began {
		return &r.Holds[i]
	}
	return nil
}

// ReleaseOf is the release that ended a hold, which was released.
func (r *Run) ReleaseOf(h *Hold) *history.Span {
	return FirstOf(r.History.Spans, func(s *history.Span) bool { return s.Invoked == h.Ended })
}

// EndPoint is the event that ended a hold, or the last event.
func (h *Hold) EndPoint(r *Run) Point {
	if h.Ended < 0 {
		return Point{Event: r.LastEvent(), Time: r.History.End}
	}
	return h.EndedAt()
}
