package claims

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

func Rules() []string {
	return []string{ReleasedNothing: "released-nothing", ReleasedTwice: "released-twice",
		ReleasedOther:  "released-another's",
		RenewedNothing: "renewed-nothing", NoticedAfter: "after-release", RenewedOther: "renewed-another's",
		SelfRenewed: "watchdog-renewed-another's", LossLate: "loss-late",
		LossUnfounded: "loss-unfounded", NotKept: "not-kept", KeptShorter: "kept-shorter",
		DeniedHolder: "denied-holder", Revived: "revived", NotRenewed: "not-renewed", NotForced: "released-by-force",
		ConfirmedLost: "confirmed-lost", NotExtended: "not-extended",
		GrantOver: "grant-expired", FewerPermits: "fewer-permits",
		ShownFree: "shown-free", ShownOther: "shown-other", ShownGone: "shown-gone", ShownWrong: "shown-wrong",
		ShownExpired: "shown-expired", WaitersBeyond: "waiters-beyond", WaitersMissing: "waiters-missing",
		ForcedNothing: "forced-nothing", ForceMissed: "force-missed", ForceFault: "force-fault",
		Contradicted: "contradiction", GaveUpEarly: "failed", FailedHealthy: "failed-undisturbed",
		OwnerUnnamed:     "owner-unnamed",
		FailedWithEffect: "failed-with-effect",
		RenewalWaited:    "waited-renewal", Resurrected: "resurrected", DeniedGrant: "denied-grant",
		GrantLost: "grant-lost", HonestRemoved: "data-removed",
		NotForeign: "foreign-unfounded", NotSetUp: "not-set-up", Unacknowledged: "unacknowledged",
		Stolen:     "stolen",
		HonestData: "data-changed", HonestMinority: "too-few-replies", HonestPaused: "client-paused", HonestOutage: "outage",
		HonestStarved:  "slow-network",
		HonestReopened: "reopened", HonestPromise: "other-outlived",
		HonestSilent: "reports-no-loss", HonestReaders: "readers-share",
		HonestRights: "fault-refuses"}
}
