package checker

import "github.com/lockchaos/lockchaos/checker/property"

// The types of options and results.
type (
	Property   = property.Name       // something that a lock must keep
	Outcome    = property.Outcome    // the result for one property
	Class      = property.Class      // who is responsible for a violation: the lock or the holder
	Violation  = property.Violation  // one proven violation of a property
	Result     = property.Result     // the result of one checker
	Options    = property.Options    // of a judgement; the zero value means exact clocks and default limits
	Progress   = property.Progress   // how far a judgement is
	LockKind   = property.LockKind   // the kind of a lock, by its name on the command line
	HoldEnd    = property.HoldEnd    // the reason why a hold ended, as a phrase for people
	LeaseStart = property.LeaseStart // from when on the lease of a grant counts
)

// The properties.
const (
	Exclusion      = property.Exclusion
	LeaseExclusion = property.LeaseExclusion
	Permits        = property.Permits
	ReadersWriter  = property.ReadersWriter
	Fencing        = property.Fencing
	Damage         = property.Damage
	Honesty        = property.Honesty
	HoldCount      = property.HoldCount
	Recovery       = property.Recovery
	WakeUp         = property.WakeUp
	Order          = property.Order
	Leak           = property.Leak
	Latch          = property.Latch
	Linearizable   = property.Linearizable
	Exercised      = property.Exercised
)

// The outcomes.
const (
	Holds         = property.Holds
	Violated      = property.Violated
	Undecided     = property.Undecided
	NotApplicable = property.NotApplicable
)

// The classes of violations.
const (
	BrokenPromise = property.BrokenPromise
	OutlivedLease = property.OutlivedLease
)

// The kinds of locks.
const (
	AnyKind           = property.AnyKind
	Mutex             = property.Mutex
	Reentrant         = property.Reentrant
	ReadersWriterLock = property.ReadersWriterLock
	SemaphoreLock     = property.SemaphoreLock
)

// The ends of a hold.
const (
	StillHeld      = property.StillHeld
	Released       = property.Released
	ReleaseUnknown = property.ReleaseUnknown
	ReleaseRefused = property.ReleaseRefused
	RenewalRefused = property.RenewalRefused
	AcquiredAgain  = property.AcquiredAgain
	LossReported   = property.LossReported
	Crashed        = property.Crashed
)

// The starts of a lease.
const (
	LeaseNotCounted  = property.LeaseNotCounted
	LeaseFromRequest = property.LeaseFromRequest
	LeaseFromServer  = property.LeaseFromServer
	LeaseFromGrant   = property.LeaseFromGrant
)

// LockKinds are the kinds that a user can choose.
func LockKinds() []LockKind { return property.LockKinds() }
