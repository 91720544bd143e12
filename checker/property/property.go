// Package property is promised API: the names of the properties that a lock must keep, the options with which package
// checker judges them, and the results. Package checker has all of them under its own name too.
package property

import (
	"time"

	"github.com/lockchaos/lockchaos/promise"
)

// Name is something that a lock must keep, by its name on the command line and in scenarios.
type Name string

// The properties.
const (
	Exclusion      Name = "exclusion"
	LeaseExclusion Name = "lease-exclusion"
	Permits        Name = "permits"
	ReadersWriter  Name = "readers-writer"
	Fencing        Name = "fencing"
	Damage         Name = "damage"
	Honesty        Name = "honesty"
	HoldCount      Name = "hold-count"
	Recovery       Name = "recovery"
	WakeUp         Name = "wake-up"
	Order          Name = "order"
	Leak           Name = "leak"
	Latch          Name = "latch"
	Linearizable   Name = "linearizable"
	Exercised      Name = "exercised"
)

// Outcome is the result for one property.
type Outcome string

// The outcomes. NotApplicable: the history has no operations that the property is about.
const (
	Holds         Outcome = "holds"
	Violated      Outcome = "violated"
	Undecided     Outcome = "undecided"
	NotApplicable Outcome = "not-applicable"
)

// Class is who is responsible for a violation: the lock or the holder.
type Class string

// The classes. BrokenPromise: it happened inside the validity that the lock had promised. OutlivedLease: the holder
// outlived its lease, which no lease-based lock can prevent; only fencing protects against it. The report calls it
// exposure.
const (
	BrokenPromise Class = "broken promise"
	OutlivedLease Class = "outlived lease"
)

// Violation is one proven violation of a property.
type Violation struct {
	Rule     string        `json:"rule"`              // the rule that was violated, as a sentence
	Text     string        `json:"text"`              // the event, as a sentence with clients and times
	Class    Class         `json:"class,omitempty"`   // empty where no lease is involved
	Key      string        `json:"key,omitempty"`     //
	Clients  []int         `json:"clients,omitempty"` // who was involved, first holder first
	Owners   []string      `json:"owners,omitempty"`  // their owner ids, in the same order
	Events   []int         `json:"events"`            // the evidence: indices of 2 or 3 events
	Start    time.Duration `json:"start_ns"`          // from when on it is certain
	End      time.Duration `json:"end_ns"`            // until when; Start if it is an instant
	Severity time.Duration `json:"severity_ns"`       // for sorting: duration, or 0
}

// Result is the result of one checker.
type Result struct {
	Property   Name             `json:"property"`
	Outcome    Outcome          `json:"outcome"`
	Summary    string           `json:"summary"`              // one sentence for the user
	Total      int              `json:"total"`                // number of violations, including ones that were not kept
	Violations []Violation      `json:"violations,omitempty"` // the longest first, at most Options.Keep
	Counts     map[string]int64 `json:"counts,omitempty"`     // numbers of examined items, by name
}

// Options of a judgement. The zero value means exact clocks and default limits.
type Options struct {
	ClockError time.Duration // error of the harness's clock: shorter overlaps are not certain
	Keep       int           // violations kept per property; 0 is 100
	Only       []Name        // judge only these and [Exercised]; empty: all
	Require    []Name        // the run is unsafe if one of these is violated; empty: all
	Search     time.Duration // longest search for a legal order; 0 is 5 s, negative: no search

	// SearchCommand is a command that runs one search, as the hidden command "chaos search" does. Long searches run in
	// that process, whose memory is bounded. Empty: searches run in this process, and only short ones.
	SearchCommand []string

	// Slack is how long a lock may take for actions that need not be immediate: to wake a waiter, to end a lease, to
	// report a loss, to reconnect to its servers. 0 is 1 s, or 16 times ReportDelay if that is longer.
	Slack time.Duration
	// ReportDelay is how late a busy machine may run the timer with which a lock reports a loss: a loss reported by then
	// counts as reported when the promise ended. 0 in virtual time.
	ReportDelay time.Duration
	// MayBeDown is how many servers may be unavailable at the same time without excusing the lock, as a quorum
	// tolerates it. 0: any outage excuses it.
	MayBeDown int
	// Promises are the promises that the lock states. A rule that judges a promise is applied only if the lock states it.
	Promises promise.Set
	// MaxBypass is how many later requests may overtake a waiter of a lock that states [promise.Fair]; 0 is first come,
	// first served. A request counts as later if it came more than QueueDelay after the waiter's; 0 is 100 ms.
	MaxBypass  int
	QueueDelay time.Duration
	// VirtualTime: the run was simulated, so no busy machine delayed a reply.
	VirtualTime bool
	// SimPriorities: the simulated network delivers by priority, so a client may wait although nothing is broken, and the
	// servers of a quorum may reply to it too late.
	SimPriorities bool
	// Shared: several clients use one lock object, so one of them may wait for requests of the others.
	Shared bool
	// NodeTimeout is cluster-node-timeout of a Redis Cluster; 0: not known. After that time the other servers may refuse
	// all commands. A server that hangs is no excuse before it at a lock that states [promise.PerServerFailures].
	NodeTimeout time.Duration
	// PerProgram is how many clients share a program, see [promise.ProgramsTakeTurns]; below 2: each client has a program
	// of its own.
	PerProgram int
	// Poll is the interval at which a waiter of a lock that states [promise.BoundedCost] polls; 0: unknown, the bounds on
	// requests then assume a second.
	Poll time.Duration
	// MaxHold is how long the lock renews a hold itself; 0: as long as its client lives.
	MaxHold time.Duration
	// ForeignLock: how the lock stores holds is not known. Samples then show only which values the keys had, and only
	// rules about these apply.
	ForeignLock bool
	// ForeignSuite: another suite recorded the history. If that notes no fault, it is not known which were in force, and
	// no operation counts as undisturbed.
	ForeignSuite bool
	// Permits is how many permits a key has, where the history does not say; "" stands for every other key.
	Permits map[string]int
	// LockKind is the kind of the lock if the history does not show it, such as a mutex that its holder
	// cannot acquire again. Empty: the kind that follows from Promises.
	LockKind LockKind

	// Thresholds are limits for measured numbers, such as "acquire.p99 < 2s". They do not change the verdict: see
	// Judgement.Thresholds. One that cannot be parsed is never met.
	Thresholds []string

	// What a run must have shown to be called safe, see [Exercised].
	MinContendedGrants int // grants while another owner requested the lock; 0 is 2, negative: none
	MinFaultsWhileHeld int // faults that hit while the lock was held, if any was injected; 0 is 1, negative: none

	// Progress is updated during the judgement; nil: no progress is reported.
	Progress *Progress
}

// LockKind is the kind of a lock, by its name on the command line.
type LockKind string

// The kinds. Of AnyKind, a lock that was granted again to its holder counts as reentrant.
const (
	AnyKind           LockKind = ""               // whatever the history shows
	Mutex             LockKind = "mutex"          // not granted to its holder
	Reentrant         LockKind = "reentrant"      // granted again to its holder, and released as often
	ReadersWriterLock LockKind = "readers-writer" // reentrant, for readers, who share it, and for a writer
	SemaphoreLock     LockKind = "semaphore"      // with a number of permits, see [Options.Permits]
)

// LockKinds are the kinds that a user can choose.
func LockKinds() []LockKind { return []LockKind{Mutex, Reentrant, ReadersWriterLock, SemaphoreLock} }

// HoldEnd is the reason why a hold ended, as a phrase for people.
type HoldEnd string

// The ends of a hold.
const (
	StillHeld      HoldEnd = "still held at the end"
	Released       HoldEnd = "released"
	ReleaseUnknown HoldEnd = "release of unknown outcome"
	ReleaseRefused HoldEnd = "release refused"
	RenewalRefused HoldEnd = "renewal refused"
	AcquiredAgain  HoldEnd = "acquired again, perhaps after its lease"
	LossReported   HoldEnd = "loss reported"
	Crashed        HoldEnd = "client crashed"
)

// LeaseStart says from when on the lease of a hold counts whose grant stated no validity.
type LeaseStart string

// The starts of a lease.
const (
	LeaseNotCounted  LeaseStart = ""                               // the grant stated a validity, or there is no lease
	LeaseFromRequest LeaseStart = "counted from the request"       // at the earliest: the servers may have begun it later
	LeaseFromServer  LeaseStart = "counted from a server's sample" // the first that shows it
	LeaseFromGrant   LeaseStart = "counted from the grant"         // counted from the request, it had ended before
)
