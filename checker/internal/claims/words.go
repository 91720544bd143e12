package claims

import (
	"maps"

	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/property"
)

const (
	RuleHolderOnly = "a release or renewal succeeds only for the holder"
	ruleInspected  = "an inspection shows who holds the lock, and what was granted"
	ruleForced     = "a forced release says whether the lock was held"
	ruleCounted    = "a lock counts its waiters correctly"
	didWrongly     = "client $client $did $lock at $return without an error, although "
	wasShown       = "client $client inspected $lock at $return and "
	forcedReply    = "client $client released $lock by force at $return with the reply that "
	shownWaiters   = "client $client was shown $waiters at $return by $lock, for which $note "
)

// Words are the wordings of the rules of honesty, except for the rules that [honesty.violation] words
// itself.
func Words() map[int]finding.Wording {
	words := holdWords()
	maps.Copy(words, otherWords())
	return words
}

// holdWords are the wordings of the rules about replies and notices that concern a hold.
func holdWords() map[int]finding.Wording {
	return map[int]finding.Wording{
		ReleasedNothing: {Class: property.BrokenPromise, Rule: RuleHolderOnly, Text: didWrongly + "it had never acquired it"},
		RenewedNothing:  {Class: property.BrokenPromise, Rule: RuleHolderOnly, Text: didWrongly + "it had never acquired it"},
		ReleasedTwice: {Class: property.BrokenPromise, Rule: RuleHolderOnly, Text: didWrongly +
			"it had already released it"},
		ReleasedOther: {Class: property.BrokenPromise, X: finding.OtherHold, Rule: RuleHolderOnly, Text: didWrongly +
			"client $other had held it since $since"},
		RenewedOther: {Class: property.BrokenPromise, X: finding.OtherHold, Rule: RuleHolderOnly, Text: didWrongly +
			"client $other had held it since $since"},
		NotForced: {Class: property.BrokenPromise, X: finding.AnOp, Rule: RuleHolderOnly, Text: didWrongly +
			"it had been released by force at $since"},
		Revived: {Class: property.BrokenPromise, X: finding.AnOp, Rule: RuleHolderOnly, Text: didWrongly + "$note"},
		ConfirmedLost: {Class: property.BrokenPromise, Rule: RuleHolderOnly,
			Text: didWrongly + "$note no longer had it for that owner at $start"},
		DeniedHolder: {Class: property.BrokenPromise, X: finding.AHold,
			Rule: "the holder can release and renew the lock until its promise ends",
			Text: "client $client was denied the $noun of $lock at $return: the lock replied that it did not hold it, " +
				"although it was granted at $since and the promise $note"},
		NotRenewed: {Class: property.BrokenPromise,
			Rule: "a lock that renews its leases renews each before it ends, while its holder lives",
			Text: "client $client held $lock, which renews its lease by itself, and the lease was not renewed before $start"},
		NotExtended: {Class: property.BrokenPromise, X: finding.AHold, Rule: "a renewal that succeeds extends the promise",
			Text: "client $client renewed $lock at $return without an error, and the promise still ended at $note"},
		GrantOver: {Class: property.BrokenPromise, Rule: "a grant is valid when the client gets it",
			Text: "client $client was granted $lock at $return with a validity that had ended"},
		LossLate: {Class: property.BrokenPromise, Rule: "the lock reports a loss when its promise has ended",
			Text: "client $client relied on $lock until $end; the lock did not report that its promise had ended at $note"},
		LossUnfounded: {Rule: "the lock reports no loss while its promise is in force and no other client has acquired it",
			Text: "client $client received a loss report for $lock at $end, although no other client had acquired it and the " +
				"promise $note"},
		ShownFree: {Class: property.BrokenPromise, X: finding.AHold, Rule: ruleInspected,
			Text: wasShown + "found $note, although client $other held it since $since"},
		ShownOther: {Class: property.BrokenPromise, X: finding.AHold, Rule: ruleInspected,
			Text: wasShown + "was shown another owner, although client $other held it since $since as $note"},
		ShownWrong: {Class: property.BrokenPromise, X: finding.AHold, Rule: ruleInspected,
			Text: wasShown + "was shown $note; client $other held it since $since"},
		ShownGone: {Class: property.BrokenPromise, Rule: ruleInspected, Text: wasShown +
			"was shown $owner, which did not hold it"},
		ShownExpired: {Class: property.BrokenPromise, Rule: ruleInspected, Text: wasShown +
			"was shown $owner, whose lease had ended"},
	}
}

// otherWords are the wordings of the rules about other operations than releases, renewals and inspections.
func otherWords() map[int]finding.Wording {
	return map[int]finding.Wording{
		WaitersBeyond:  {Rule: ruleCounted, Text: shownWaiters + "can have waited"},
		WaitersMissing: {Rule: ruleCounted, Text: shownWaiters + "waited"},
		ForcedNothing: {Class: property.BrokenPromise, Rule: ruleForced,
			Text: forcedReply + "it had been held, although nobody can have held it"},
		ForceMissed: {Class: property.BrokenPromise, X: finding.AHold, Rule: ruleForced,
			Text: forcedReply + "nobody held it, although client $other had held it since $since"},
		FailedHealthy: {Rule: "an operation that nothing disturbs does not end with an error",
			Text: "the $op of $lock by client $client at $start ended with an error after $length although no fault was in " +
				"force ($note)"},
		Contradicted: {Class: property.BrokenPromise,
			Rule: "the replies of a lock about a hold or an operation do not contradict each other",
			Text: "client $client, $op of $lock at $start: $note"},
		RenewalWaited: {Rule: "a renewal ends when its hold ends",
			Text: "client $client requested to renew $lock at $call, and had no reply $length after the end of its promise " +
				"at $start"},
		OwnerUnnamed: {X: finding.OtherHold, Rule: "a release of a lost hold says whether another owner has the lock",
			Text: "the release of $lock by client $client at $return replied that the hold was lost, and not that another " +
				"owner had the lock, which client $other had held since $since"},
		NotForeign: {Rule: "a key is refused as foreign only if it holds something that is not a lock",
			Text: "client $client was refused $lock at $end because its key holds something that is not a lock, although only " +
				"locks were acquired there"},
		NotSetUp: {Rule: "a request that states the size of a semaphore sets it up",
			Text: "client $client was refused $lock at $end because it does not exist, although the request stated its size"},
		DeniedGrant: {Rule: "an acquire that fails says so if it may have held the lock before",
			Text: "the acquire of $lock by client $client failed at $return as one that never held it, although $note kept " +
				"it for that owner at $start"},
		Unacknowledged: {Rule: "a grant or a change waits for replicas",
			Text: "the $op of $lock by client $client at $call succeeded, although the acknowledgements of all replicas were " +
				"held"},
		GrantLost: {Class: property.BrokenPromise, Rule: "a lock that keeps its grants loses none with one of its servers",
			Text: "$note"},
		FewerPermits: {Class: property.BrokenPromise, Rule: "servers keep a hold for as long as the lock promises",
			Text: "at $start $note"},
	}
}
