package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/internal/format"
)

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

// honestyWords are the wordings of the rules of honesty, except for those that [honestyCheck.violation] words itself.
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
		fewerPermits: {BrokenPromise, nothing, "servers keep a hold for as long as the lock promises", "at $start $note"},
	}
}

// violation puts a finding of [Honesty] into words.
func (c *honestyCheck) violation(f finding) Violation {
	switch f.rule {
	case notKept, keptShorter:
		return c.unkeptPromiseViolation(f)
	case lossLate, lossUnfounded:
		return c.lossViolation(f)
	case gaveUpEarly:
		return c.failureViolation(f)
	case failedWithEffect:
		return c.failedWithEffectViolation(f)
	case resurrected:
		return c.resurrectedViolation(f)
	case selfRenewed:
		return c.renewedItselfViolation(f)
	case noticedAfter:
		return c.noticedViolation(f)
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
