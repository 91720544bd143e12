// Package checker judges recorded histories: one file for each property that a
// lock has to keep. It imports only package history, so that any history can be
// judged, whoever recorded it.
//
// Read [Judge] first, then [Result]. Times are the harness's. Safety is judged
// on the smallest intervals that are certain (no false alarm), liveness on the
// largest. A checker never passes what it could not decide, and a history that
// tested nothing is not safe but inconclusive (see [Bite]).
package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// Property is something a lock has to keep; the names are those of the
// command line and of scenarios.
type Property string

// The properties.
const (
	Exclusion      Property = "exclusion"
	LeaseExclusion Property = "lease-exclusion"
	Permits        Property = "permits"
	ReadersWriter  Property = "readers-writer"
	Fencing        Property = "fencing"
	Damage         Property = "damage"
	Honesty        Property = "honesty"
	HoldCount      Property = "hold-count"
	Recovery       Property = "recovery"
	WakeUp         Property = "wake-up"
	Order          Property = "order"
	Leak           Property = "leak"
	Linearizable   Property = "linearizable"
	Bite           Property = "bite"
)

// Outcome of one property.
type Outcome string

// The outcomes. NotApplicable: the history has nothing that this property speaks of.
const (
	Holds         Outcome = "holds"
	Violated      Outcome = "violated"
	Undecided     Outcome = "undecided"
	NotApplicable Outcome = "not-applicable"
)

// Class says who is to blame for a violation.
type Class string

// The classes. BrokenPromise: it happened inside the validity that the lock
// had promised. OutlivedLease: the holder outlived its lease, which no lease
// lock can prevent; only fencing helps (the report calls this exposure).
const (
	BrokenPromise Class = "broken promise"
	OutlivedLease Class = "outlived lease"
)

// Verdict on a whole run.
type Verdict string

// The verdicts. The order of harm is safe, inconclusive, unsafe.
const (
	Safe         Verdict = "safe"
	Unsafe       Verdict = "unsafe"
	Inconclusive Verdict = "inconclusive"
)

// Violation is one proof that a property did not hold.
type Violation struct {
	Rule     string        `json:"rule"`              // the rule that was broken, as a sentence
	Text     string        `json:"text"`              // what happened, as a sentence with names and times
	Class    Class         `json:"class,omitempty"`   // empty where nobody's lease is concerned
	Key      string        `json:"key,omitempty"`     //
	Clients  []int         `json:"clients,omitempty"` // who took part, first holder first
	Owners   []string      `json:"owners,omitempty"`  // their owner ids, in the same order
	Events   []int         `json:"events"`            // 2 or 3 event indices: the minimal witness
	Start    time.Duration `json:"start_ns"`          // from when it was certain
	End      time.Duration `json:"end_ns"`            // until when; Start if it is an instant
	Severity time.Duration `json:"severity_ns"`       // for sorting: length in time, or 0
}

// Result is what one checker found.
type Result struct {
	Property   Property         `json:"property"`
	Outcome    Outcome          `json:"outcome"`
	Summary    string           `json:"summary"`              // one sentence a reader can act on
	Total      int              `json:"total"`                // violations in all
	Violations []Violation      `json:"violations,omitempty"` // the worst ones first, at most Options.Keep
	Counts     map[string]int64 `json:"counts,omitempty"`     // what was looked at, by name
}

// Options of a judgement. The zero value judges with exact clocks and default limits.
type Options struct {
	ClockError time.Duration // of the harness's clock: overlaps not longer than this are not certain
	Keep       int           // violations kept per property; 0 is 100
	Only       []Property    // judge only these, and whether the run tested anything; empty: all
	Require    []Property    // make the run unsafe if violated; empty: all
	Search     time.Duration // longest linearizability search; 0 is 5 s, negative: none

	// SearchCommand is a program, and its arguments, that runs [ServeSearch]:
	// what is hard to search is searched in a process of its own, whose memory is
	// bounded. Empty: in this process, and only what is short.
	SearchCommand []string

	// Slack is how long a lock may take for what it does not have to do at once:
	// wake a waiter, end a lease, tell a loss, find its servers again. 0 is 1 s.
	Slack time.Duration
	// MayBeDown is how many servers may be away at the same time without
	// excusing the lock, as a quorum can bear it. 0: every absence excuses.
	MayBeDown int
	// Fair: the lock promises an order. MaxBypass is by how many later comers a
	// waiter may be overtaken then; 0 is first come, first served. InLine is how
	// long after it asked a waiter's place is certain; 0 is 100 ms.
	Fair       bool
	MaxBypass  int
	QueueDelay time.Duration
	// Permits is how many permits a key has in all, where the history does not
	// tell; "" is every key that is not named.
	Permits map[string]int
	// LockKind is what the lock is meant to be, where its history does not tell:
	// a mutex that its holder may not take again, say. "" is whatever the history shows.
	LockKind LockKind

	// What a run must have shown before its silence counts as safety, see [Bite].
	MinContended int // grants during which another owner asked for the lock; 0 is 2, negative: none
	MinLanded    int // faults that landed while the lock was held, if any was injected; 0 is 1, negative: none

	// Progress is told how far the judgement is; nil: nobody wants to know.
	Progress *Progress

	off disabledRules // a rule that is left out, to show that it is needed
}

// LockKind is what a lock is meant to be; the names are those of the command line.
type LockKind string

// The kinds. Without one, a lock that was granted again to its own holder counts
// as reentrant.
const (
	AnyKind           LockKind = ""               // whatever the history shows
	Mutex             LockKind = "mutex"          // not granted to who holds it
	Reentrant         LockKind = "reentrant"      // granted again to who holds it, and given back as often
	ReadersWriterLock LockKind = "readers-writer" // the same for readers, who share, and for a writer
	SemaphoreLock     LockKind = "semaphore"      // as many permits as there are, see [Options.Permits]
)

// LockKinds are all kinds that can be named, in the order in which they are told.
func LockKinds() []LockKind { return []LockKind{Mutex, Reentrant, ReadersWriterLock, SemaphoreLock} }

// Spec is a row of the catalogue.
type Spec struct {
	Name   Property
	Doc    string // one sentence: violated when …
	Source string // where the rule comes from
	check  func(v *view, o Options) Result
	rules  []string // names of its rules, by the numbers that findings have
}

// Check judges one property of h. It never panics; see [Judge].
func (s Spec) Check(h *history.History, o Options) Result { return s.safely(nil, h, o) }

// Judgement is the verdict with all that led to it; verdict.json.
type Judgement struct {
	Verdict  Verdict           `json:"verdict"`
	Sentence string            `json:"sentence"` // why, in one sentence
	Class    Class             `json:"class,omitempty"`
	LockKind LockKind          `json:"lock_kind,omitempty"` // what the lock was meant to be, if that was told
	Results  []Result          `json:"results"`
	Problems []history.Problem `json:"problems,omitempty"`
	Spans    int               `json:"spans"`
	Events   int               `json:"events"`
	Took     time.Duration     `json:"took_ns"`
}
