package checker

import (
	"fmt"

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
	shownOther              // an inspect showed another owner than the holder
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
	failedHealthy           // operations failed although nothing disturbed them
	renewalWaited           // a renewal had no answer long after the end of its hold
	resurrected             // servers had a hold again after its loss was reported
	ownerUnnamed            // a release of a lost hold did not say that another owner had the lock
	failedWithEffect        // a release that certainly had no effect had one
	notForeign              // an acquire was refused because of data of another program, which there cannot be
	notSetUp                // an acquire failed because a semaphore does not exist, although it states its size
	deniedGrant             // an acquire failed as never granted, although a server had granted it
	stolen                  // a server replaced a hold by another owner's
	unacknowledged          // a grant or a change that waits for replicas succeeded without an acknowledgement
	grantLost               // servers lost a grant that the lock states to keep
	honestRemoved           // acquits: a fault removed data by itself
	honestData              // acquits: a fault may have changed the servers' data
	honestMinority          // acquits: of a quorum, masters that have the lock may not have replied
	honestPaused            // acquits: the client was paused, so that nothing could be reported to it
	honestStarved           // acquits: messages are delivered by priorities in a slow network
	honestOutage            // acquits: the servers were unavailable, which is a cause for the loss
	honestReopened          // acquits: the client closed its lock object
	honestPromise           // acquits: the promise to the other owner had ended
	honestSilent            // acquits: a lock that reports no losses: its lease states when the hold ends
	honestReaders           // acquits: a reader among readers
	honestRights            // acquits: a permission was revoked, or any fault, except of releases and renewals
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
		contradicted: "contradiction", gaveUpEarly: "failed", failedHealthy: "failed-undisturbed",
		ownerUnnamed:     "owner-unnamed",
		failedWithEffect: "failed-with-effect",
		renewalWaited:    "waited-renewal", resurrected: "resurrected", deniedGrant: "denied-grant",
		grantLost: "grant-lost", honestRemoved: "data-removed",
		notForeign: "foreign-unfounded", notSetUp: "not-set-up", unacknowledged: "unacknowledged",
		stolen:     "stolen",
		honestData: "data-changed", honestMinority: "too-few-replies", honestPaused: "client-paused", honestOutage: "outage",
		honestStarved:  "slow-network",
		honestReopened: "reopened", honestPromise: "other-outlived",
		honestSilent: "reports-no-loss", honestReaders: "readers-share",
		honestRights: "fault-refuses"}
}

// judge applies every rule. Those of one promise return at once if the lock does not state it.
func (c *honestyCheck) judge() {
	c.releasesOfNothing()
	c.operationsOfOthers()
	c.judgeLosses()
	c.judgeKeptPromises()
	c.judgeConfirmedLost()
	c.fewerPermits()
	c.judgeExtended()
	c.judgeAnswers()
	c.judgeLostGrants()
	c.judgeRenewed()
	c.judgeExpired()
	c.judgeShown()
	c.judgeWaiters()
	c.judgeFailures()
	c.judgeFailuresOfHealthy()
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
	c.judgeStolen()
}

const (
	ruleHolderOnly = "a release or renewal succeeds only for the holder"
	ruleInspected  = "an inspection shows who holds the lock, and what was granted"
	ruleForced     = "a forced release says whether the lock was held"
	ruleCounted    = "a lock counts its waiters correctly"
	didWrongly     = "client $client $did $lock at $return without an error, although "
	wasShown       = "client $client inspected $lock at $return and "
	forcedReply    = "client $client released $lock by force at $return with the reply that "
	shownWaiters   = "client $client was shown $waiters at $return by $lock, for which $note "
)

// honestyWords are the wordings of the rules of honesty, except for the rules that [honestyCheck.violation] words
// itself.
func honestyWords() map[int]wording {
	return map[int]wording{
		releasedNothing: {BrokenPromise, nothing, ruleHolderOnly, didWrongly + "it had never acquired it"},
		renewedNothing:  {BrokenPromise, nothing, ruleHolderOnly, didWrongly + "it had never acquired it"},
		releasedTwice:   {BrokenPromise, nothing, ruleHolderOnly, didWrongly + "it had already released it"},
		releasedOther:   {BrokenPromise, otherHold, ruleHolderOnly, didWrongly + "client $other had held it since $since"},
		renewedOther:    {BrokenPromise, otherHold, ruleHolderOnly, didWrongly + "client $other had held it since $since"},
		notForced:       {BrokenPromise, anOp, ruleHolderOnly, didWrongly + "it had been released by force at $since"},
		revived:         {BrokenPromise, anOp, ruleHolderOnly, didWrongly + "$note"},
		confirmedLost: {BrokenPromise, nothing, ruleHolderOnly,
			didWrongly + "$note no longer had it for that owner at $start"},
		deniedHolder: {BrokenPromise, aHold, "the holder can release and renew the lock until its promise ends",
			"client $client was denied the $noun of $lock at $return: the lock replied that it did not hold it, although it " +
				"was granted at $since and the promise $note"},
		notRenewed: {BrokenPromise, nothing,
			"a lock that renews its leases renews each before it ends, while its holder lives",
			"client $client held $lock, which renews its lease by itself, and the lease was not renewed before $start"},
		notExtended: {BrokenPromise, aHold, "a renewal that succeeds extends the promise",
			"client $client renewed $lock at $return without an error, and the promise still ended at $note"},
		grantOver: {BrokenPromise, nothing, "a grant is valid when the client gets it",
			"client $client was granted $lock at $return with a validity that had ended"},
		lossLate: {BrokenPromise, nothing, "the lock reports a loss when its promise has ended",
			"client $client relied on $lock until $end; the lock did not report that its promise had ended at $note"},
		lossUnfounded: {"", nothing,
			"the lock reports no loss while its promise is in force and no other client has acquired it",
			"client $client received a loss report for $lock at $end, although no other client had acquired it and the " +
				"promise $note"},
		shownFree: {BrokenPromise, aHold, ruleInspected,
			wasShown + "found $note, although client $other held it since $since"},
		shownOther: {BrokenPromise, aHold, ruleInspected,
			wasShown + "was shown another owner, although client $other held it since $since as $note"},
		shownWrong: {BrokenPromise, aHold, ruleInspected,
			wasShown + "was shown $note; client $other held it since $since"},
		shownGone:      {BrokenPromise, nothing, ruleInspected, wasShown + "was shown $owner, which did not hold it"},
		shownExpired:   {BrokenPromise, nothing, ruleInspected, wasShown + "was shown $owner, whose lease had ended"},
		waitersBeyond:  {"", nothing, ruleCounted, shownWaiters + "can have waited"},
		waitersMissing: {"", nothing, ruleCounted, shownWaiters + "waited"},
		forcedNothing: {BrokenPromise, nothing, ruleForced,
			forcedReply + "it had been held, although nobody can have held it"},
		forceMissed: {BrokenPromise, aHold, ruleForced,
			forcedReply + "nobody held it, although client $other had held it since $since"},
		failedHealthy: {"", nothing, "an operation that nothing disturbs does not end with an error",
			"the $op of $lock by client $client at $start ended with an error after $length although no fault was in force " +
				"($note)"},
		contradicted: {BrokenPromise, nothing,
			"the replies of a lock about a hold or an operation do not contradict each other",
			"client $client, $op of $lock at $start: $note"},
		renewalWaited: {"", nothing, "a renewal ends when its hold ends",
			"client $client requested to renew $lock at $call, and had no reply $length after the end of its promise at $start"},
		ownerUnnamed: {"", otherHold, "a release of a lost hold says whether another owner has the lock",
			"the release of $lock by client $client at $return replied that the hold was lost, and not that another owner " +
				"had the lock, which client $other had held since $since"},
		notForeign: {"", nothing, "a key is refused as foreign only if it holds something that is not a lock",
			"client $client was refused $lock at $end because its key holds something that is not a lock, although only " +
				"locks were acquired there"},
		notSetUp: {"", nothing, "a request that states the size of a semaphore sets it up",
			"client $client was refused $lock at $end because it does not exist, although the request stated its size"},
		deniedGrant: {"", nothing, "an acquire that fails says so if it may have held the lock before",
			"the acquire of $lock by client $client failed at $return as one that never held it, although $note kept it for " +
				"that owner at $start"},
		unacknowledged: {"", nothing, "a grant or a change waits for replicas",
			"the $op of $lock by client $client at $call succeeded, although the acknowledgements of all replicas were held"},
		grantLost:    {BrokenPromise, nothing, "a lock that keeps its grants loses none with one of its servers", "$note"},
		fewerPermits: {BrokenPromise, nothing, "servers keep a hold for as long as the lock promises", "at $start $note"},
	}
}

// violation puts a finding of [Honesty] into words.
func (c *honestyCheck) violation(f finding) Violation {
	if put := (map[int]func(finding) Violation{
		notKept: c.unkeptPromiseViolation, keptShorter: c.unkeptPromiseViolation, lossLate: c.lossViolation,
		lossUnfounded: c.lossViolation, gaveUpEarly: c.failureViolation, failedWithEffect: c.failedWithEffectViolation,
		resurrected: c.resurrectedViolation, selfRenewed: c.renewedItselfViolation, noticedAfter: c.noticedViolation,
		stolen: c.stolenViolation,
	})[f.rule]; put != nil {
		return put(f)
	}
	w := honestyWords()[f.rule]
	ofNothing := f.rule == releasedNothing || f.rule == renewedNothing || f.rule == releasedTwice
	if n := c.h.Spans[f.y].Permits; ofNothing && n > 1 {
		w.text = fmt.Sprintf("client $client $did %d permits of $lock at $return without an error, although it had fewer", n)
	}
	return c.word(f, w)
}

// lossViolation adds until when the promise to the hold of a finding lasted, and the event that ended it.
func (c *honestyCheck) lossViolation(f finding) Violation {
	h := &c.holds[f.x]
	f.note = promiseEnd(h.lastPromise())
	if f.rule == lossLate {
		f.note = format.Instant(c.validUntil(h))
	}
	w := c.word(f, honestyWords()[f.rule])
	if h.endEvent >= 0 {
		w.Events = []int{c.granted(h), int(h.endEvent)}
	}
	return w
}
