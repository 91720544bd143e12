package claims

import (
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/property"
)

// The rules of honesty.
const (
	ReleasedNothing  = iota // a release by an owner that never held the lock succeeded
	ReleasedTwice           // the same by an owner that had released everything
	ReleasedOther           // a release succeeded while another owner certainly held the lock
	RenewedNothing          // a renewal by an owner that never held the lock succeeded
	NoticedAfter            // a notice about a hold that was released
	RenewedOther            // a renewal succeeded while another owner certainly held the lock
	SelfRenewed             // a lease was renewed by the lock itself after another owner had been granted the lock
	LossLate                // the promise had ended, and the loss was reported late or never
	LossUnfounded           // a loss was reported inside the promise, and no other owner was granted the lock
	NotKept                 // a server did not have a hold that was promised
	KeptShorter             // a server kept a hold for less time than was promised
	DeniedHolder            // a release or renewal was refused to the holder
	Revived                 // a release or renewal succeeded after the hold was denied, or a renewal after its loss
	NotRenewed              // a lease that the lock renews by itself ended
	NotForced               // a release or renewal succeeded after a forced release
	ConfirmedLost           // a release or renewal succeeded after the server had lost the hold
	NotExtended             // a renewal succeeded and extended nothing
	GrantOver               // a grant or renewal whose validity had ended when the client replied
	FewerPermits            // a server kept fewer permits than were promised
	ShownFree               // an inspect found a lock free that was held
	ShownOther              // an inspect showed another owner than the holder
	ShownGone               // an inspect showed an owner that did not hold the lock
	ShownWrong              // an inspect showed the owner, and a wrong token, hold count or rest of the lease
	ShownExpired            // an inspect showed an owner whose leases had ended
	WaitersBeyond           // more waiters were counted than can have waited
	WaitersMissing          // fewer waiters were counted than certainly waited
	ForcedNothing           // a forced release succeeded although nobody can have held the lock
	ForceMissed             // a forced release found nobody although a client held the lock
	ForceFault              // acquits: there was a fault
	Contradicted            // the lock contradicted itself
	GaveUpEarly             // a release or renewal gave up early, or another operation failed without a fault
	FailedHealthy           // operations failed although nothing disturbed them
	RenewalWaited           // a renewal had no answer long after the end of its hold
	Resurrected             // servers had a hold again after its loss was reported
	OwnerUnnamed            // a release of a lost hold did not say that another owner had the lock
	FailedWithEffect        // a release that certainly had no effect had one
	NotForeign              // an acquire was refused because of data of another program, which there cannot be
	NotSetUp                // an acquire failed because a semaphore does not exist, although it states its size
	DeniedGrant             // an acquire failed as never granted, although a server had granted it
	Stolen                  // a server replaced a hold by another owner's
	Unacknowledged          // a grant or a change that waits for replicas succeeded without an acknowledgement
	GrantLost               // servers lost a grant that the lock states to keep
	HonestRemoved           // acquits: a fault removed data by itself
	HonestData              // acquits: a fault may have changed the servers' data
	HonestMinority          // acquits: of a quorum, masters that have the lock may not have replied
	HonestPaused            // acquits: the client was paused, so that nothing could be reported to it
	HonestStarved           // acquits: messages are delivered by priorities in a slow network
	HonestOutage            // acquits: the servers were unavailable, which is a cause for the loss
	HonestReopened          // acquits: the client closed its lock object
	HonestPromise           // acquits: the promise to the other owner had ended
	HonestSilent            // acquits: a lock that reports no losses: its lease states when the hold ends
	HonestReaders           // acquits: a reader among readers
	HonestRights            // acquits: a permission was revoked, or any fault, except of releases and renewals
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

// Rules are the rules of honesty. Those without a sentence acquit, or [honesty.violation] has their words.
func Rules() finding.Rules {
	return finding.Rules{
		NoticedAfter: {Name: "after-release"}, SelfRenewed: {Name: "watchdog-renewed-another's"},
		NotKept: {Name: "not-kept"}, KeptShorter: {Name: "kept-shorter"}, ForceFault: {Name: "force-fault"},
		FailedWithEffect: {Name: "failed-with-effect"},
		Resurrected:      {Name: "resurrected"}, HonestRemoved: {Name: "data-removed"},
		HonestData: {Name: "data-changed"}, HonestMinority: {Name: "too-few-replies"},
		HonestPaused: {Name: "client-paused"}, HonestOutage: {Name: "outage"}, HonestStarved: {Name: "slow-network"},
		HonestReopened: {Name: "reopened"}, HonestPromise: {Name: "other-outlived"},
		HonestSilent: {Name: "reports-no-loss"}, HonestReaders: {Name: "readers-share"},
		HonestRights: {Name: "fault-refuses"},
	}.With(holdRules()).With(otherRules())
}

// holdRules are the rules about replies and notices that concern a hold.
func holdRules() finding.Rules {
	return finding.Rules{
		ReleasedNothing: {Name: "released-nothing", Class: property.BrokenPromise, Sentence: RuleHolderOnly,
			Text: didWrongly + "it had never acquired it"},
		RenewedNothing: {Name: "renewed-nothing", Class: property.BrokenPromise, Sentence: RuleHolderOnly, Text: didWrongly +
			"it had never acquired it"},
		ReleasedTwice: {Name: "released-twice", Class: property.BrokenPromise, Sentence: RuleHolderOnly, Text: didWrongly +
			"it had already released it"},
		ReleasedOther: {Name: "released-another's", Class: property.BrokenPromise, X: finding.OtherHold,
			Sentence: RuleHolderOnly, Text: didWrongly +
				"client $other had held it since $since"},
		RenewedOther: {Name: "renewed-another's", Class: property.BrokenPromise, X: finding.OtherHold,
			Sentence: RuleHolderOnly, Text: didWrongly +
				"client $other had held it since $since"},
		NotForced: {Name: "released-by-force", Class: property.BrokenPromise, X: finding.AnOp, Sentence: RuleHolderOnly,
			Text: didWrongly +
				"it had been released by force at $since"},
		Revived: {Name: "revived", Class: property.BrokenPromise, X: finding.AnOp, Sentence: RuleHolderOnly,
			Text: didWrongly + "$note"},
		ConfirmedLost: {Name: "confirmed-lost", Class: property.BrokenPromise, Sentence: RuleHolderOnly,
			Text: didWrongly + "$note no longer had it for that owner at $start"},
		DeniedHolder: {Name: "denied-holder", Class: property.BrokenPromise, X: finding.AHold,
			Sentence: "the holder can release and renew the lock until its promise ends",
			Text: "client $client was denied the $noun of $lock at $return: the lock replied that it did not hold it, " +
				"although it was granted at $since and the promise $note"},
		NotRenewed: {Name: "not-renewed", Class: property.BrokenPromise,
			Sentence: "a lock that renews its leases renews each before it ends, while its holder lives",
			Text: "client $client held $lock, which renews its lease by itself, and the lease was not renewed before " +
				"$start"},
		NotExtended: {Name: "not-extended", Class: property.BrokenPromise, X: finding.AHold,
			Sentence: "a renewal that succeeds extends the promise",
			Text:     "client $client renewed $lock at $return without an error, and the promise still ended at $note"},
		GrantOver: {Name: "grant-expired", Class: property.BrokenPromise,
			Sentence: "a grant is valid when the client gets it",
			Text:     "client $client was granted $lock at $return with a validity that had ended"},
		LossLate: {Name: "loss-late", Class: property.BrokenPromise,
			Sentence: "the lock reports a loss when its promise has ended",
			Text:     "client $client relied on $lock until $end; the lock did not report that its promise had ended at $note"},
		LossUnfounded: {Name: "loss-unfounded",
			Sentence: "the lock reports no loss while its promise is in force and no other client has acquired it",
			Text: "client $client received a loss report for $lock at $end, although no other client had acquired it and the " +
				"promise $note"},
		ShownFree: {Name: "shown-free", Class: property.BrokenPromise, X: finding.AHold, Sentence: ruleInspected,
			Text: wasShown + "found $note, although client $other held it since $since"},
		ShownOther: {Name: "shown-other", Class: property.BrokenPromise, X: finding.AHold, Sentence: ruleInspected,
			Text: wasShown + "was shown another owner, although client $other held it since $since as $note"},
		ShownWrong: {Name: "shown-wrong", Class: property.BrokenPromise, X: finding.AHold, Sentence: ruleInspected,
			Text: wasShown + "was shown $note; client $other held it since $since"},
		ShownGone: {Name: "shown-gone", Class: property.BrokenPromise, Sentence: ruleInspected, Text: wasShown +
			"was shown $owner, which did not hold it"},
		ShownExpired: {Name: "shown-expired", Class: property.BrokenPromise, Sentence: ruleInspected, Text: wasShown +
			"was shown $owner, whose lease had ended"},
	}
}

// otherRules are the rules about other operations than releases, renewals and inspections.
func otherRules() finding.Rules {
	return finding.Rules{
		WaitersBeyond:  {Name: "waiters-beyond", Sentence: ruleCounted, Text: shownWaiters + "can have waited"},
		WaitersMissing: {Name: "waiters-missing", Sentence: ruleCounted, Text: shownWaiters + "waited"},
		ForcedNothing: {Name: "forced-nothing", Class: property.BrokenPromise, Sentence: ruleForced,
			Text: forcedReply + "it had been held, although nobody can have held it"},
		ForceMissed: {Name: "force-missed", Class: property.BrokenPromise, X: finding.AHold, Sentence: ruleForced,
			Text: forcedReply + "nobody held it, although client $other had held it since $since"},
		FailedHealthy: {Name: "failed-undisturbed", Sentence: "an operation that nothing disturbs does not end with an error",
			Text: "the $op of $lock by client $client at $start ended with an error after $length although no fault was in " +
				"force ($note)"},
		Contradicted: {Name: "contradiction", Class: property.BrokenPromise,
			Sentence: "the replies of a lock about a hold or an operation do not contradict each other",
			Text:     "client $client, $op of $lock at $start: $note"},
		RenewalWaited: {Name: "waited-renewal", Sentence: "a renewal ends when its hold ends",
			Text: "client $client requested to renew $lock at $call, and had no reply $length after the end of its promise " +
				"at $start"},
		OwnerUnnamed: {Name: "owner-unnamed", X: finding.OtherHold,
			Sentence: "a release of a lost hold says whether another owner has the lock",
			Text: "the release of $lock by client $client at $return replied that the hold was lost, and not that another " +
				"owner had the lock, which client $other had held since $since"},
		NotForeign: {Name: "foreign-unfounded",
			Sentence: "a key is refused as foreign only if it holds something that is not a lock",
			Text: "client $client was refused $lock at $end because its key holds something that is not a lock, although only " +
				"locks were acquired there"},
		NotSetUp: {Name: "not-set-up", Sentence: "a request that states the size of a semaphore sets it up",
			Text: "client $client was refused $lock at $end because it does not exist, although the request stated its size"},
		DeniedGrant: {Name: "denied-grant", Sentence: "an acquire that fails says so if it may have held the lock before",
			Text: "the acquire of $lock by client $client failed at $return as one that never held it, although $note kept " +
				"it for that owner at $start"},
		Unacknowledged: {Name: "unacknowledged", Sentence: "a grant or a change waits for replicas",
			Text: "the $op of $lock by client $client at $call succeeded, although the acknowledgements of all replicas were " +
				"held"},
		GrantLost: {Name: "grant-lost", Class: property.BrokenPromise,
			Sentence: "a lock that keeps its grants loses none with one of its servers",
			Text:     "$note"},
		Stolen: {Name: "stolen", Class: property.BrokenPromise, X: finding.OtherHold,
			Sentence: "a server keeps a hold until its owner releases it or its lease ends",
			Text:     "$note; client $other had not released it"},
		GaveUpEarly: {Name: "failed", Sentence: "an operation ends with an error only if the lock has no alternative",
			Text: "the $op of $lock by client $client at $start ended with an error after $length, although there had been no " +
				"fault"},
		FewerPermits: {Name: "fewer-permits", Class: property.BrokenPromise,
			Sentence: "servers keep a hold for as long as the lock promises",
			Text:     "at $start $note"},
	}
}
