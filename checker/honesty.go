package checker

import (
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// checkHonesty looks for replies and reports that were not true: a release or a renewal that succeeded although the
// owner was not the holder (redis-py#490, ShedLock#2583), and a loss that was reported late, never, or without cause.
//
// Releases and renewals. An owner that was granted the lock later, still relies on it and is still promised it,
// proves that the earlier owner no longer holds it: an operation of the earlier owner that lies entirely in such an
// interval was not made by a holder. An owner that never acquired the lock, or has released it, does not hold it;
// owners with operations of unknown outcome are not judged.
//
// Losses. A lock can report a loss when its promise has ended by its own clock. The report is late if the client relied
// on the lock for longer than the slack after that. Only time in which the lock could have reported counts: not the
// time in which the client was paused, and not a lock that takes a lease, replies with its validity and never reports
// losses, because the validity says everything. A loss has no cause if the promise was in force, no other owner was
// granted the lock by then, and the servers were available.
func checkHonesty(v *view, o Options) Result {
	c := newHonestyCheck(v, o)
	c.judge()
	r := c.found.result(Honesty, c.violation)
	r.Counts = map[string]int64{"releases_and_renewals": int64(c.replies), "losses_reported": int64(c.losses),
		"promises_outlived": int64(c.outlived)}
	switch {
	case r.Outcome == Violated:
	case c.unjudged:
		r.Outcome, r.Summary = Undecided, unknownHolds(c.unknownCounts)
	case c.replies == 0 && c.losses == 0 && c.outlived == 0:
		r.Outcome, r.Summary = NotApplicable, noReplies
	default:
		r.Summary = format.Each(c.replies, "release or renewal reply", "true") + "; " +
			format.Each(c.losses, "loss report", "true")
	}
	return r
}

// newHonestyCheck is a check that has judged nothing yet.
func newHonestyCheck(v *view, o Options) *honestyCheck {
	c := &honestyCheck{view: v, o: o, found: newFindings(o), dis: v.disturbances(o), all: v.allDisturbances(o)}
	c.unknown = sync.OnceValue(v.firstUnknown)
	c.promises = sync.OnceValue(func() *promiseIndex { return newPromiseIndex(v) })
	c.seen, c.acts, c.shownOps = sync.OnceValue(c.lastSeen), sync.OnceValue(c.noticedActs), sync.OnceValue(c.findShownOps)
	c.reopens = sync.OnceValue(c.findReopens)
	return c
}

// honestyCheck is one run of the check.
type honestyCheck struct {
	*view
	o     Options
	found *findings

	dis, all disturbances // faults that may explain anything except operators' actions; all faults

	// computed when needed
	unknown  func() []time.Duration         // by key: when the first acquire of unknown outcome was invoked
	promises func() *promiseIndex           // of all promises of the history
	seen     func() map[int]time.Duration   // see lastSeen
	acts     func() map[ownerKey]*ownerActs // see noticedActs
	shownOps func() map[ownerKey]*shownOps  // see findShownOps
	reopens  func() map[int][]segment       // see findReopens

	refused []lostGrant // see refusedHold

	replies, losses, outlived int
	unjudged                  bool // an owner whose holds are unknown released or renewed
}

// touched reports whether one of some faults may have changed the servers' data in s, which excuses the lock.
func (c *honestyCheck) touched(by disturbances, s segment) bool {
	return c.o.applies(honestData) && by.mayAffect(s, anyClient, history.AffectsData)
}

// releasesOfNothing judges releases by owners without a hold.
func (c *honestyCheck) releasesOfNothing() {
	for i, s := range refsAt(c.h.Spans, c.orphans) {
		rule := releasedNothing
		if _, before := c.lastHold(s.Owner, s.Key, s.Call); before {
			rule = releasedTwice
		}
		c.found.add(finding{rule: rule, x: -1, y: i, start: s.Call, end: s.Return})
	}
}

// operationsOfOthers judges releases and renewals that lie inside the hold of another owner.
func (c *honestyCheck) operationsOfOthers() {
	before := make([]int, len(c.byKey)) // by key: how many holds began before the operation
	for i, s := range refs(c.h.Spans) {
		if (s.Op != history.OpRelease && s.Op != history.OpRenew) || s.Outcome != history.OK {
			continue
		}
		c.replies++
		holds, n := c.byKey[s.Key], before[s.Key]
		for n < len(holds) && c.holds[holds[n]].from < s.Call {
			n++
		}
		before[s.Key] = n
		c.unjudged = c.unjudged || c.ownerOrder[s.Owner] == ordUnknown
		if c.ownerOrder[s.Owner] == ordUnknown || c.mayBeOfNothing(s) {
			continue
		}
		if c.h.Limit(s.Key) > 1 || c.h.Limit(s.Key) == history.UnknownLimit {
			c.renewalOfNothing(i, s)
			continue
		}
		c.within(i, s, n)
	}
}

// renewalOfNothing judges a renewal of permits: its owner has to have acquired some before.
func (c *honestyCheck) renewalOfNothing(i int32, s *history.Span) {
	if s.Op != history.OpRenew || c.ownerOrder[s.Owner] != ordSequential {
		return
	}
	if _, held := c.lastHold(s.Owner, s.Key, s.Return); held {
		return
	}
	for _, a := range refs(c.h.Spans) {
		if a.Owner == s.Owner && a.Key == s.Key && isAcquire(a.Op) &&
			a.Outcome != history.Fail {
			return
		}
	}
	c.found.add(finding{rule: renewedNothing, x: -1, y: i, start: s.Call, end: s.Return})
}

// within looks for another owner's promise around s, among the n holds before it. An owner that was granted the lock
// earlier is a matter of exclusion: only a later owner can have taken it over. Whether the owner shares the lock with
// readers follows from the mode of its hold, because a release or renewal does not say its mode.
func (c *honestyCheck) within(i int32, s *history.Span, n int) {
	holds, mine, over := c.byKey[s.Key], int32(-1), int32(-1) // over: a hold of its own that had ended before
	other, writer := int32(-1), int32(-1)                     // an owner that came later; and one of these that writes
	for m := n - 1; m >= 0 && n-m <= maxLookBack && mine < 0; m-- {
		h := &c.holds[holds[m]]
		switch {
		case h.owner == s.Owner && h.until >= s.Call:
			mine = holds[m]
		case h.owner == s.Owner:
			over = max(over, holds[m])
		case over >= 0: // it came before
		case h.from+c.o.ClockError >= s.Call || h.until-c.o.ClockError <= s.Return:
		case c.o.applies(honestPromise) && !(h.promisedAt(s.Call) && h.promisedAt(s.Return)):
		default:
			if other = holds[m]; !h.reader {
				writer = holds[m]
			}
		}
	}
	if mine >= 0 && other < 0 {
		return
	}
	if mine < 0 {
		mine = over
	}
	if mine < 0 {
		if i, held := c.lastHold(s.Owner, s.Key, s.Return); held {
			mine = i
		}
	}
	if mine >= 0 && c.o.applies(honestReaders) && (c.holds[mine].reader || !s.Write) {
		other = writer
	}
	rule := releasedOther
	if s.Op == history.OpRenew {
		rule = renewedOther
	}
	switch {
	case mine >= 0 && other >= 0:
		c.found.add(finding{rule: rule, x: other, y: i, start: s.Call, end: s.Return})
	case mine < 0 && s.Op == history.OpRenew && c.ownerOrder[s.Owner] == ordSequential:
		c.found.add(finding{rule: renewedNothing, x: -1, y: i, start: s.Call, end: s.Return})
	}
}

// maxLookBack is how many holds are searched for a holder.
const maxLookBack = 64
