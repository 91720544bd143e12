package client

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
)

// Capability is something that a lock can do or promises, by its name in the reply to init. The harness neither
// requests nor judges what a lock does not state.
type Capability string

// The capabilities.
const (
	Reentrant        Capability = "reentrant"         // an owner may acquire the lock again, and releases it as often
	RefusesReentry   Capability = "refuses-reentry"   // an owner that holds the lock is refused, with code reentered
	CanTry           Capability = "try"               // op try: acquire if it is free
	CanRenew         Capability = "renew"             // op renew: extend the lease
	Unleased         Capability = "unleased"          // a hold has no lease: it lasts until it is released
	RenewsItself     Capability = "watchdog"          // without a lease: the lock renews it while its client lives
	ReportsLoss      Capability = "reports-loss"      // sends the notice lost
	Wakes            Capability = "wakes"             // a waiter is notified of a release; it need not poll
	Fair             Capability = "fair"              // first come, first served
	Fenced           Capability = "fenced"            // a grant has a fencing token
	SharesReads      Capability = "read-write"        // modes read and write
	CanDowngrade     Capability = "downgrade"         // a writer may also read, and keeps reading after its write hold
	PrefersWriters   Capability = "writer-preference" // a writer that waits keeps new readers out
	RefusesUpgrade   Capability = "refuses-upgrade"   // a reader that requests to write is refused at once: code upgrade
	HasPermits       Capability = "permits"           // a semaphore: permits and limit
	RefusesExcess    Capability = "refuses-excess"    // a request for more permits than there are: code out-of-range
	Overtakes        Capability = "overtakes"         // a request that fits passes one that does not: permits, readers
	PartialRelease   Capability = "partial-release"   // a release of some of the permits of one acquire
	CanResize        Capability = "resize"            // op resize: set the number of permits
	CanChangePermits Capability = "change-permits"    // ops add-permits and drop-permits: change the number of permits
	CanDrain         Capability = "drain"             // a try with drain: all permits that are free
	CanForcePermits  Capability = "force-permits"     // op force-release with permits: some of those of one owner
	IsLatch          Capability = "latch"             // a count-down latch: ops arm, count-down, await; no ops of locks
	CanDelete        Capability = "delete"            // op delete: remove a latch
	CountsUnnamed    Capability = "counts-unnamed"    // a count-down without an owner counts as a new participant
	SeveralKeys      Capability = "multi-key"         // one acquire or release of several keys, all or none
	CanForceRelease  Capability = "force-release"     // op force-release: release the lock for every owner
	Scoped           Capability = "scoped"            // holds the lock for a block of code: scoped, failed
	Guards           Capability = "guards"            // op guard: a resource that refuses old tokens
	FencedReaders    Capability = "fenced-readers"    // readers have the token of the last writer, or share one
	CanInspect       Capability = "inspect"           // op inspect: who holds the lock, or the state of a latch
	InspectsOwner    Capability = "inspect-owner"     // op inspect-owner: whether an owner of this client holds the lock
	CountsWaiters    Capability = "count-waiters"     // op count-waiters: how many waiters a server has in the queue
	Reopens          Capability = "reopen"            // op reopen: close the lock object and open another one
	EndsWaits        Capability = "ends-waits"        // an acquire with close_ms ends when the lock object is closed
	Repeats          Capability = "repeats"           // a release without a reply is repeated for 1.5 s
	Persists         Capability = "persists"          // retries acquires and releases after transient errors
	EndsRenewals     Capability = "ends-renewals"     // a requested renewal ends when the hold does
	AwaitsReplicas   Capability = "awaits-replicas"   // grants, and changes of a semaphore or a latch, wait for replicas
	NamesOwner       Capability = "names-owner"       // a release of a lost hold says whether another owner has the lock
	FallsBack        Capability = "falls-back"        // waiters poll while the server refuses subscriptions
	Migrates         Capability = "migrates"          // stays available while its keys move to another server
	BacksOff         Capability = "backs-off"         // does not keep a key for long while it waits for another
	Isolates         Capability = "isolates"          // a server that hangs delays no lock of another server
	FullMemory       Capability = "full-memory"       // can be released and renewed while a server is out of memory
	Detached         Capability = "detached"          // a release with canceled is executed too
	Counts           Capability = "counts"            // replies to acquire, try and release have the hold count
	Frugal           Capability = "frugal"            // keeps within the bounds of cost in docs/explanation/checkers.md
	TakesTurns       Capability = "takes-turns"       // no program keeps the lock to itself while others wait
	CachesScripts    Capability = "scripts"           // calls scripts by hash, so that SCRIPT FLUSH affects it
)

// AllCapabilities returns every capability, in the order of the documentation.
func AllCapabilities() Capabilities {
	return Capabilities{
		Reentrant, RefusesReentry, CanTry, CanRenew, Unleased, RenewsItself, ReportsLoss, Wakes, Fair, Fenced, SharesReads,
		CanDowngrade, PrefersWriters, RefusesUpgrade, HasPermits, RefusesExcess, Overtakes, PartialRelease,
		CanResize, CanChangePermits, CanDrain, CanForcePermits, IsLatch, CanDelete, CountsUnnamed, SeveralKeys,
		CanForceRelease, Scoped, Guards, FencedReaders, CanInspect, InspectsOwner, CountsWaiters, Reopens,
		EndsWaits, Repeats, Persists, EndsRenewals, AwaitsReplicas, NamesOwner, FallsBack, Migrates, BacksOff, Isolates,
		FullMemory, Detached, Counts, Frugal, TakesTurns, CachesScripts,
	}
}

// Capabilities are what a lock can do and promises.
type Capabilities []Capability

// Has reports whether c contains all of these.
func (c Capabilities) Has(all ...Capability) bool { return len(c.Missing(all...)) == 0 }

// Missing returns those of wanted that c does not contain.
func (c Capabilities) Missing(wanted ...Capability) Capabilities {
	return slices.DeleteFunc(slices.Clone(wanted), func(w Capability) bool { return slices.Contains(c, w) })
}

// Check refuses a capability that does not exist: if the harness ignored a misspelled one, it would not test it.
func (c Capabilities) Check() error {
	unknown := AllCapabilities().Missing(c...)
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("unknown capability %q; docs/reference/protocol.md lists those that exist", unknown[0])
}

// With returns c and more.
func (c Capabilities) With(more ...Capability) Capabilities { return slices.Concat(c, more) }

// Without returns c without some.
func (c Capabilities) Without(some ...Capability) Capabilities {
	return Capabilities(some).Missing(c...)
}

// Common is what the locks of one run can do and promise together: what each of them has, and [Unleased] if one of them
// has it, because that says what a lock lacks. Without locks it is nil.
func Common(locks ...Capabilities) Capabilities {
	if len(locks) == 0 {
		return nil
	}
	common := locks[0]
	for _, other := range locks[1:] {
		unleased := common.Has(Unleased) || other.Has(Unleased)
		common = common.Without(common.Without(other...)...).Without(Unleased)
		if unleased {
			common = common.With(Unleased)
		}
	}
	return common
}

// String lists the names, separated by commas.
func (c Capabilities) String() string {
	return strings.Join(format.Texts(c, func(one Capability) Capability { return one }), ", ")
}
