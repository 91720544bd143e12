package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// undisturbed finds the operations to which nothing happened: their outcomes are due to the lock alone.
type undisturbed struct {
	*view
	excuses func(in scope) excuses
	crashed map[int]time.Duration // by client
	known   time.Duration         // until then it is known which faults were in force
}

// undisturbed finds these operations. One slow server disturbs an operation that asks all of them, whatever
// Options.MayBeDown is.
func (v *view) undisturbed(o Options) undisturbed {
	o.MayBeDown = 0
	u := undisturbed{v, v.excusesFor(o), v.crashes(), v.firstUnknownFault()}
	if o.ForeignSuite && len(v.h.Faults) == 0 {
		u.known = -1
	}
	return u
}

// ran is the longest part of s in which the servers were available to an operation and its client ran.
func (u *undisturbed) ran(span int32, s segment) segment {
	return longestOutside(s, u.excuses(scopeOf(&u.h.Spans[span])).away.windows, u.clientPauses()[u.client(span)])
}

// delaying are the words of faults that delay the operations of a lock.
func delaying() []string {
	return []string{history.AffectsData, history.AffectsTraffic, history.AffectsDelays, history.AffectsCommands,
		history.AffectsClients}
}

// anything is the word for which every fault counts.
const anything = ""

// in reports whether no fault was in force in s, at a server or at the client of a span, that may have one of the
// effects words, and the client did not crash. Stalls are not considered, see ran.
func (u *undisturbed) in(s segment, span int32, words []string) bool {
	client := u.client(span)
	if at, crashed := u.crashed[client]; s.until > u.known || crashed && at >= s.from && at <= s.until {
		return false
	}
	return !u.excuses(scopeOf(&u.h.Spans[span])).dis.any(s, func(f *faultTime) bool {
		at := f.client()
		if at >= 0 && at != client || f.stall {
			return false
		}
		return slices.ContainsFunc(words, func(w string) bool { return w == anything || f.mayAffect(w) })
	})
}

// firstUnknownFault is when the nemesis of another suite first did something that this harness has no name for, so that
// its effect and its duration are unknown; never: it did not.
func (v *view) firstUnknownFault() time.Duration {
	for _, f := range refs(v.h.Faults) {
		known := explains(f.Name) || f.Name == history.SourceIgnored || f.Name == history.ProcessLeft ||
			f.Name == history.NoPassword
		if f.Phase == history.Noted && f.ID == 0 && !known {
			return f.Time
		}
	}
	return never
}
