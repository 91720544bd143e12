package checker

import (
	"fmt"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of honesty.
const (
	releasedNothing  = iota // a release by an owner that never held the lock succeeded
	releasedTwice           // the same by an owner that had released everything
	releasedOther           // a release succeeded while another owner certainly held the lock
	renewedNothing          // a renewal by an owner that never held the lock succeeded
	noticedAfter            // a notice about a hold that was released
	renewedOther            // a renewal succeeded while another owner certainly held the lock
	selfRenewed             // a lease was renewed by the lock itself after another owner had been granted the lock
	lossLate                // the promise had ended, and the loss was reported late or never
	lossUnfounded           // a loss was reported inside the promise, and no other owner was granted the lock
	notKept                 // a server did not have a hold that was promised
	keptShorter             // a server kept a hold for less time than was promised
	deniedHolder            // a release or renewal was refused to the holder
	revived                 // a release or renewal succeeded after the hold was denied, or a renewal after its loss
	notRenewed              // a lease that the lock renews by itself ended
	notForced               // a release or renewal succeeded after a forced release
	confirmedLost           // a release or renewal succeeded after the server had lost the hold
	notExtended             // a renewal succeeded and extended nothing
	grantOver               // a grant or renewal whose validity had ended when the client replied
	fewerPermits            // a server kept fewer permits than were promised
	shownFree               // an inspect found a lock free that was held
	shownOther              // an inspect showed another owner than the one that held the lock
	shownGone               // an inspect showed an owner that did not hold the lock
	shownWrong              // an inspect showed the owner, and a wrong token, hold count or rest of the lease
	shownExpired            // an inspect showed an owner whose leases had ended
	waitersBeyond           // more waiters were counted than can have waited
	waitersMissing          // fewer waiters were counted than certainly waited
	forcedNothing           // a forced release succeeded although nobody can have held the lock
	forceMissed             // a forced release found nobody although a client held the lock
	forceFault              // acquits: there was a fault
	contradicted            // the lock contradicted itself
	gaveUpEarly             // a release or renewal gave up early, or another operation failed without a fault
	renewalWaited           // a renewal had no answer long after the end of its hold
	resurrected             // servers had a hold again after its loss was reported
	ownerUnnamed            // a release of a lost hold did not say that another owner had the lock
	failedWithEffect        // a release that certainly had no effect had one
	notForeign              // an acquire was refused because of data of another program, which there cannot be
	notSetUp                // an acquire failed because a semaphore does not exist, although it states its size
	deniedGrant             // an acquire failed as one that never held the lock, although a server had granted it
	unacknowledged          // a grant or a change that waits for replicas succeeded without an acknowledgement
	honestData              // acquits: a fault may have changed what servers keep
	honestMinority          // acquits: of a quorum, masters that have the lock may not have replied
	honestPaused            // acquits: the client was paused, so that nothing could be reported to it
	honestStarved           // acquits: messages are delivered by priorities in a slow network
	honestOutage            // acquits: the servers were unavailable, which is a cause for the loss
	honestReopened          // acquits: the client closed its lock object
	honestPromise           // acquits: the promise to the other owner had ended
	honestSilent            // acquits: a lock that reports no losses: its lease states when the hold ends
	honestReaders           // acquits: a reader among readers
	honestRights            // acquits: a permission was revoked, or, of other operations than those, there was a fault
)

func honestyRules() []string {
	return []string{releasedNothing: "released-nothing", releasedTwice: "released-twice",
		releasedOther:  "released-another's",
		renewedNothing: "renewed-nothing", noticedAfter: "after-release", renewedOther: "renewed-another's",
		selfRenewed: "watchdog-renewed-another's", lossLate: "loss-late",
		lossUnfounded: "loss-unfounded", notKept: "not-kept", keptShorter: "kept-shorter",
		deniedHolder: "denied-holder", revived: "revived", notRenewed: "not-renewed", notForced: "released-by-force",
		confirmedLost: "confirmed-lost", notExtended: "not-extended",
		grantOver: "grant-expired", fewerPermits: "fewer-permits",
		shownFree: "shown-free", shownOther: "shown-other", shownGone: "shown-gone", shownWrong: "shown-wrong",
		shownExpired: "shown-expired", waitersBeyond: "waiters-beyond", waitersMissing: "waiters-missing",
		forcedNothing: "forced-nothing", forceMissed: "force-missed", forceFault: "force-fault",
		contradicted: "contradiction", gaveUpEarly: "failed", ownerUnnamed: "owner-unnamed",
		failedWithEffect: "failed-with-effect",
		renewalWaited:    "waited-renewal", resurrected: "resurrected", deniedGrant: "denied-grant",
		notForeign: "foreign-unfounded", notSetUp: "not-set-up", unacknowledged: "unacknowledged",
		honestData: "data-changed", honestMinority: "too-few-replies", honestPaused: "client-paused", honestOutage: "outage",
		honestStarved:  "slow-network",
		honestReopened: "reopened", honestPromise: "other-outlived",
		honestSilent: "reports-no-loss", honestReaders: "readers-share",
		honestRights: "fault-refuses"}
}

// checkHonesty looks for replies and reports that were not true: a release or a renewal that succeeded although the
// owner was not the holder (redis-py#490, ShedLock#2583), and a loss that was reported late, never, or without cause.
//
// Releases and renewals. An owner that was granted the lock later, still relies on it and is still promised it,
// proves that the earlier owner no longer holds it: an operation of the earlier owner that lies entirely in such an
// interval was not made by a holder. An owner that never acquired the lock, or has released it, does not hold it;
// owners with operations of unknown outcome are not judged.
//
// Losses. A lock can report a loss when its promise has ended by its own clock. The report is late if the client
// relied on the lock for longer than the slack after that. Only what the lock could have reported counts: not the
// time in which the client was paused, and not a lock that takes a lease, replies with its validity and never reports
// losses, because the validity says everything. A loss has no cause if the promise was in force, no other owner was
// granted the lock by then, and the servers were available.
func checkHonesty(v *view, o Options) Result {
	c := honestyCheck{view: v, o: o, found: newFindings(o), dis: v.disturbances(o), all: v.allDisturbances(o)}
	c.unknown = sync.OnceValue(v.firstUnknown)
	c.promises = sync.OnceValue(func() *promiseIndex { return newPromiseIndex(v) })
	c.seen, c.acts, c.shownOps = sync.OnceValue(c.lastSeen), sync.OnceValue(c.noticedActs), sync.OnceValue(c.findShownOps)
	c.releasesOfNothing()
	c.operationsOfOthers()
	c.judgeLosses()
	c.judgeKeptPromises()
	c.judgeConfirmedLost()
	c.fewerPermits()
	c.judgeExtended()
	c.judgeAnswers()
	c.judgeRenewed()
	c.judgeExpired()
	c.judgeShown()
	c.judgeWaiters()
	c.judgeFailures()
	c.judgeEffectsOfFailures()
	c.judgeContradictions()
	c.judgeForcedReleases()
	c.judgeLateRenewals()
	c.judgeResurrected()
	c.judgeOwnerNamed()
	c.judgeAfterRelease()
	c.judgeRenewedOthers()
	c.judgeDeniedGrants()
	c.judgeForeign()
	c.judgeNotSetUp()
	c.judgeUnacknowledged()
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
		r.Summary = fmt.Sprintf("all true: %s to releases and renewals, %s", format.Count(c.replies, "reply"),
			format.Count(c.losses, "loss report"))
	}
	return r
}

// honestyCheck is one run of the check.
type honestyCheck struct {
	*view
	o     Options
	found *findings

	dis, all disturbances // those that may explain anything except what operators do; those of all faults

	// computed when needed
	unknown  func() []time.Duration         // by key: when the first acquire of unknown outcome was invoked
	promises func() *promiseIndex           // of all promises of the history
	seen     func() map[int]time.Duration   // see lastSeen
	acts     func() map[ownerKey]*ownerActs // see noticedActs
	shownOps func() map[ownerKey][]int32    // see findShownOps

	replies, losses, outlived int
	unjudged                  bool // an owner whose holds are unknown released or renewed
}

// touched reports whether one of some faults may have changed what servers keep in s, which excuses the lock.
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
		for n < len(holds) && c.holds[holds[n]].from+c.o.ClockError < s.Call {
			n++
		}
		before[s.Key] = n
		c.unjudged = c.unjudged || c.ownerOrder[s.Owner] == ordUnknown
		if c.ownerOrder[s.Owner] == ordUnknown {
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
// earlier is a matter of exclusion: only one that came later can have taken it over. Whether the owner shares the
// lock with readers follows from what it held, because a release or renewal does not say its mode.
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
		case h.until-c.o.ClockError <= s.Return:
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
