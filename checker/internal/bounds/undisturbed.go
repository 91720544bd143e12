package bounds

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// Undisturbed finds the operations to which nothing happened: their outcomes are due to the lock alone.
type Undisturbed struct {
	*View
	excuses func(in excuse.Scope) excuse.Excuses
	crashed map[int]time.Duration // by client
	known   time.Duration         // until then it is known which faults were in force
}

// Undisturbed finds these operations. One slow server disturbs an operation that asks all of them, whatever
// Options.MayBeDown is.
func (v *View) Undisturbed(o given.Options) Undisturbed {
	o.MayBeDown = 0
	u := Undisturbed{v, v.ExcusesFor(o), v.Crashes(), v.firstUnknownFault()}
	if o.ForeignSuite && len(v.H.Faults) == 0 {
		u.known = -1
	}
	return u
}

// Ran is the longest part of s in which the servers were available to an operation and its client ran.
func (u *Undisturbed) Ran(span int32, s segment.Segment) segment.Segment {
	return segment.LongestOutside(s, u.excuses(excuse.ScopeOf(&u.H.Spans[span])).Away.Windows,
		u.ClientPauses()[u.Client(span)])
}

// Delaying are the words of faults that delay the operations of a lock.
func Delaying() []string {
	return []string{history.AffectsData, history.AffectsTraffic, history.AffectsDelays, history.AffectsCommands,
		history.AffectsClients}
}

// Anything is the word for which every fault counts.
const Anything = ""

// In reports whether no fault was in force in s, at a server or at the client of a span, that may have one of the
// effects words, and the client did not crash. Stalls are not considered, see ran.
func (u *Undisturbed) In(s segment.Segment, span int32, words []string) bool {
	client := u.Client(span)
	if at, crashed := u.crashed[client]; s.Until > u.known || crashed && at >= s.From && at <= s.Until {
		return false
	}
	return !u.excuses(excuse.ScopeOf(&u.H.Spans[span])).Dis.Any(s, func(f *excuse.FaultTime) bool {
		at := f.Client()
		if at >= 0 && at != client || f.Stall {
			return false
		}
		return slices.ContainsFunc(words, func(w string) bool { return w == Anything || f.MayAffect(w) })
	})
}

// firstUnknownFault is when the nemesis of another suite first did something that this harness has no name for, so that
// its effect and its duration are unknown; never: it did not.
func (v *View) firstUnknownFault() time.Duration {
	for _, f := range refs.All(v.H.Faults) {
		known := excuse.Explains(f.Name) || f.Name == history.SourceIgnored || f.Name == history.ProcessLeft ||
			f.Name == history.NoPassword
		if f.Phase == history.Noted && f.ID == 0 && !known {
			return f.Time
		}
	}
	return segment.Never
}
