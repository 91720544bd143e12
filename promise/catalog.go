package promise

// The promises, in the order of [Catalog], which has the meaning of each.
const (
	// Portable.

	Reentrant Set = 1 << iota
	Try
	Renew
	Watchdog
	ReportsLoss
	Wakes
	Fair
	Fenced
	ReadWrite
	Downgrade
	Permits
	MultiKey
	Scripts
	KeepsGrants
	Unleased

	// House: operations and kinds of locks.

	RefusesReentry
	WriterPreference
	RefusesUpgrade
	RefusesExcessPermits
	NoHeadOfLineBlocking
	ManagesPermits
	ForceRelease
	ForceReleasePermits
	Latch
	HasDo
	Guard
	FencedReaders
	Inspect
	InspectOwner
	CountWaiters
	CountsHolds
	Reopen
	CloseEndsWaits

	// House: guarantees.

	RetriesRelease1500ms
	RetriesTransientErrors
	ReleaseSurvivesCancel
	RenewalsEndWithHold
	AwaitsReplicas
	DistinguishesNotOwner
	PollsWithoutMessages
	SurvivesSlotMigration
	PerServerFailures
	ReleasesWhenMemoryFull
	MultiKeyBacksOff4s
	ProgramsTakeTurns
	BoundedCost

	All = BoundedCost<<1 - 1 // every promise
)

// rows is the catalog, in the order of the constants.
//
//nolint:gochecknoglobals // a table, never changed
var rows = []Promise{
	{
		Set: Reentrant, Name: "reentrant", Replies: []string{"acquire.count"},
		Meaning: "can be acquired again by an owner that holds it; it is free after the same number of releases",
	},
	{Set: Try, Name: "try", Ops: []string{"try"}, Meaning: "can be acquired without waiting: only if it is free"},
	{Set: Renew, Name: "renew", Ops: []string{"renew"}, Meaning: "extends a lease when its owner requests it"},
	{
		Set: Watchdog, Name: "watchdog", Replies: []string{"renewed"},
		Meaning: "renews the lease itself while its client lives, if the request has no lease (`lease_ms` 0)",
	},
	{
		Set: ReportsLoss, Name: "reports-loss", Replies: []string{"lost"},
		Meaning: "sends the notice `lost`, also for a hold whose lease ends. Without this promise, workloads `mixed` and " +
			"`waiters` consider a hold over when its validity ends",
	},
	{Set: Wakes, Name: "wakes", Meaning: "notifies waiters of a release, so they need not poll"},
	{Set: Fair, Name: "fair", Meaning: "is granted to waiters in the order of their requests"},
	{
		Set: Fenced, Name: "fenced", Replies: []string{"acquire.token"},
		Meaning: "has a fencing token for each grant",
	},
	{
		Set: ReadWrite, Name: "read-write", Fields: []string{"acquire.mode"},
		Meaning: "is shared by readers, and exclusive for a writer",
	},
	{
		Set: Downgrade, Name: "downgrade",
		Meaning: "lets an owner that holds it for writing acquire it for reading too, and keep the read hold after it " +
			"releases the write hold",
	},
	{
		Set: Permits, Name: "permits", Fields: []string{"acquire.permits", "acquire.limit"},
		Meaning: "is a semaphore: a number of permits, of which each acquire takes some",
	},
	{Set: MultiKey, Name: "multi-key", Fields: []string{"acquire.keys"}, Meaning: "acquires all of several keys or none"},
	{
		Set: Scripts, Name: "scripts",
		Meaning: "calls scripts by hash (`EVALSHA`), so flushing the script cache affects it",
	},
	{
		Set: KeepsGrants, Name: "keeps-grants",
		Meaning: "keeps a grant until it is released or its promise ends, provided that its servers keep their stored " +
			"data; also when one of them is killed, paused, cut off or replaced",
	},
	{
		Set: Unleased, Name: "unleased",
		Meaning: "has no leases: a hold lasts until it is released. `lease_ms` is always 0 then, and no rule about leases " +
			"applies",
	},

	{
		Set: RefusesReentry, Name: "refuses-reentry", House: true, Replies: []string{"acquire.code"},
		Meaning: "refuses an owner that already holds it, with code `reentered`",
	},
	{
		Set: WriterPreference, Name: "writer-preference", House: true,
		Meaning: "keeps new readers out while a writer waits",
	},
	{
		Set: RefusesUpgrade, Name: "refuses-upgrade", House: true, Replies: []string{"acquire.code"},
		Meaning: "refuses an owner that holds it for reading and requests it for writing, with code `upgrade`, instead of " +
			"letting it wait for itself",
	},
	{
		Set: RefusesExcessPermits, Name: "refuses-excess-permits", House: true, Former: []string{"refuses-excess"},
		Replies: []string{"acquire.code"},
		Meaning: "refuses a request for more permits than the semaphore has, with code `out-of-range`, instead of letting " +
			"it wait",
	},
	{
		Set: NoHeadOfLineBlocking, Name: "no-head-of-line-blocking", House: true, Former: []string{"overtakes"},
		Meaning: "is a semaphore that grants a request if enough permits are free, even while a larger request waits, or a " +
			"readers-writer lock that admits readers while a writer waits for other readers",
	},
	{
		Set: ManagesPermits, Name: "manages-permits", House: true, Ops: []string{"resize", "add-permits", "drop-permits"},
		Fields: []string{"try.drain"}, Former: []string{"resize", "change-permits", "drain"},
		Meaning: "is a semaphore whose number of permits can be changed, and all of whose free permits can be taken at once",
	},
	{
		Set: ForceRelease, Name: "force-release", House: true, Ops: []string{"force-release"},
		Meaning: "can be released for every owner that holds it",
	},
	{
		Set: ForceReleasePermits, Name: "force-release-permits", House: true, Fields: []string{"force-release.permits"},
		Former: []string{"force-permits"},
		Meaning: "takes some permits of one owner, which loses the hold, so its next renewal or release fails; that " +
			"release returns the remaining permits",
	},
	{
		Set: Latch, Name: "latch", House: true, Ops: []string{"arm", "count-down", "await", "delete"},
		Former: []string{"delete", "counts-unnamed"},
		Meaning: "is a count-down latch. It has no operation of locks except `inspect`, if it states that, and counts each " +
			"`count-down` without an `owner` as a new participant",
	},
	{
		Set: HasDo, Name: "has-do", House: true, Fields: []string{"acquire.scoped", "release.failed"},
		Former:  []string{"scoped"},
		Meaning: "has a form that holds the lock for a block of code (`Do` in Go, a `with` statement in Python)",
	},
	{
		Set: Guard, Name: "guard", House: true, Ops: []string{"guard"}, Former: []string{"guards"},
		Meaning: "comes with a resource that refuses old fencing tokens",
	},
	{
		Set: FencedReaders, Name: "fenced-readers", House: true, Replies: []string{"acquire.token"},
		Meaning: "has a fencing token for each read grant as well: that of the last writer, or one that concurrent readers " +
			"share, so no reader is rejected because of another",
	},
	{
		Set: Inspect, Name: "inspect", House: true, Ops: []string{"inspect"},
		Meaning: "shows who holds it or, of a latch, its count",
	},
	{
		Set: InspectOwner, Name: "inspect-owner", House: true, Ops: []string{"inspect-owner"},
		Meaning: "shows whether an owner of the client holds it",
	},
	{
		Set: CountWaiters, Name: "count-waiters", House: true, Ops: []string{"count-waiters"},
		Meaning: "shows how many acquires wait in its queue at a server",
	},
	{
		Set: CountsHolds, Name: "counts-holds", House: true, Former: []string{"counts"},
		Replies: []string{"acquire.count", "try.count", "release.count"},
		Meaning: "replies to each acquire, try and release with the owner's hold count, `count`; left out: 0",
	},
	{
		Set: Reopen, Name: "reopen", House: true, Ops: []string{"reopen"},
		Meaning: "can be closed and opened again within its client",
	},
	{
		Set: CloseEndsWaits, Name: "close-ends-waits", House: true, Fields: []string{"acquire.close_ms"},
		Former: []string{"ends-waits"},
		Meaning: "ends an acquire when the lock object is closed. RedLock, multi-locks and the semaphore without leases do " +
			"not state it: such an acquire may leave votes or permits behind",
	},

	{
		Set: RetriesRelease1500ms, Name: "retries-release-1500ms", House: true, Former: []string{"repeats"},
		Meaning: "repeats a release that got no reply, and the requests that undo an abandoned acquire, for at least 1.5 s " +
			"or until a server replies. Native locks do not state it, nor `retries-transient-errors`, with an option " +
			"`timeout` below 1.5 s",
	},
	{
		Set: RetriesTransientErrors, Name: "retries-transient-errors", House: true, Former: []string{"persists"},
		Meaning: "retries after transient errors (the server is busy, is loading its data, or does not reply): an acquire " +
			"until its wait is over, a release for at least 1.5 s. Without a fault, no operation ends with an error; in a " +
			"simulation, no acquire ends with an unknown outcome while a majority of a quorum is available. Native locks do " +
			"not state it with option `replicas`, because an acquire fails if too few replicas confirm it, nor with option " +
			"`calls`, because one of two concurrent acquires may end with an unknown outcome. An acquire of a lock that " +
			"states `multi-key` may end early with an unknown outcome, because it may start again only after it has " +
			"certainly given back what it has",
	},
	{
		Set: ReleaseSurvivesCancel, Name: "release-survives-cancel", House: true, Fields: []string{"release.canceled"},
		Former: []string{"detached"},
		Meaning: "executes a release whose caller has given up too: a program that gives up and then releases must not " +
			"keep the lock",
	},
	{
		Set: RenewalsEndWithHold, Name: "renewals-end-with-hold", House: true, Former: []string{"ends-renewals"},
		Meaning: "ends a renewal when the hold ends, with an error if no server has replied by then",
	},
	{
		Set: AwaitsReplicas, Name: "awaits-replicas", House: true,
		Meaning: "replies `ok` to an acquire, or to a change of the number of permits or of a latch, only after a replica " +
			"has acknowledged it. Native locks state it with option `replicas`",
	},
	{
		Set: DistinguishesNotOwner, Name: "distinguishes-not-owner", House: true, Former: []string{"names-owner"},
		Replies: []string{"release.code"},
		Meaning: "fails a release of a lost hold with code `not-owner` instead of `lost` if another owner has the lock by " +
			"then",
	},
	{
		Set: PollsWithoutMessages, Name: "polls-without-messages", House: true, Former: []string{"falls-back"},
		Meaning: "works without messages: while the server refuses subscriptions, waiters poll at least every half second, " +
			"and no operation fails because the server refuses to publish",
	},
	{
		Set: SurvivesSlotMigration, Name: "survives-slot-migration", House: true, Former: []string{"migrates"},
		Meaning: "stays available while its keys move to another server of a Redis Cluster: its operations take no longer " +
			"than usual",
	},
	{
		Set: PerServerFailures, Name: "per-server-failures", House: true, Former: []string{"isolates"},
		Meaning: "in a Redis Cluster, neither delays nor loses a lock of one server because another server hangs",
	},
	{
		Set: ReleasesWhenMemoryFull, Name: "releases-when-memory-full", House: true, Former: []string{"full-memory"},
		Meaning: "can be released and renewed while a server is out of memory and refuses commands that may need some",
	},
	{
		Set: MultiKeyBacksOff4s, Name: "multi-key-backs-off-4s", House: true, Former: []string{"backs-off"},
		Replies: []string{"acquire.undone"},
		Meaning: "while an acquire of several `keys` has to wait for one of them, it does not keep the others for more " +
			"than 4 s at a time, or 9 s while a server does not reply: it releases them, so that a client that wants one of " +
			"them alone gets it. Such an acquire replies with `undone`, whether it is granted or not. Without it, an acquire " +
			"of several keys may keep them for as long as it waits",
	},
	{
		Set: ProgramsTakeTurns, Name: "programs-take-turns", House: true, Former: []string{"takes-turns"},
		Meaning: "is not kept by one program (`per_process`) for more than 3 s and 100 grants while a client of another " +
			"program waits: a lock that a release hands to a waiter of the same program must now and then be freed for all",
	},
	{
		Set: BoundedCost, Name: "bounded-cost", House: true, Former: []string{"frugal"},
		Meaning: "keeps within the bounds of [checkers.md](../explanation/checkers.md#cost) on requests and subscriptions",
	},
}
