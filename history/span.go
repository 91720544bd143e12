package history

import (
	"math"
	"time"
)

// Never is the return time of an operation of unknown outcome, and the end of
// anything that has not ended.
const Infinity = time.Duration(math.MaxInt64)

// Op is the operation of a [Span], in one byte.
type Op uint8

// The operations that checkers know. OpOther is kept for messages only.
const (
	OpOther Op = iota
	OpAcquire
	OpTry
	OpRelease
	OpRenew
	OpWork
	OpTouch
)

// Span is an invocation together with its completion: what checkers judge.
// It is small and has no pointers, so that millions fit in memory.
type Span struct {
	Call    time.Duration // time of the invocation
	Return  time.Duration // time of the completion; Never if the outcome is unknown
	Valid   time.Duration // end of the promised validity, harness clock; 0: nothing was promised
	Lease   time.Duration // asked lease; 0: renewed by the lock itself
	Token   uint64        // granted or presented fencing number; 0: none
	Invoked int32         // index of the invocation in the file
	Ended   int32         // index of the completion; -1 if there was none
	Process Process       //
	Key     int32         // index into History.Keys
	Owner   int32         // index into History.Owners
	Count   int32         // hold count in the answer; 0: not told
	Permits int32         // asked permits; at least 1
	Op      Op            //
	Outcome Type          // OK, Fail or Info
	Write   bool          // mode is not "read"
	Busy    bool          // a try that failed because the lock was held
	Held    bool          // a release or renewal that failed and left the hold as it was
	Zero    bool          // the token is the number 0
}

// Unknown is when it was told that the outcome of an operation is unknown: its
// span returns never, but what it may have done was done by then, or is on its way.
type Unknown struct {
	Time time.Duration
	Span int32 // index into History.Spans
}

// Notice is an event that nobody asked for: lost, renewed or crash.
type Notice struct {
	Time    time.Duration
	Valid   time.Duration // renewed: new end of the promised validity
	Index   int32
	Process Process
	Key     int32 // named "" if it concerns every key, as a crash does
	Owner   int32
	F       string
}

// Touched is a write that arrived at the guarded resource, in the order of arrival.
type Touched struct {
	TouchValue
	Time     time.Duration
	Token    uint64
	Index    int32
	Process  Process
	Key      int32
	Owner    int32
	Accepted bool // the resource took the write
}

// Fault is what the fault injector did or saw, in the order in which it happened.
type Fault struct {
	FaultValue
	Name  string // of the fault
	Time  time.Duration
	Index int32
}

// Problem is something in a recorded history that should not be there.
type Problem struct {
	Index int64  // of the event; -1 if it has none
	Line  int    // in the file, from 1; 0 if it did not come from a file
	Text  string // what is wrong
}

// History is a recorded run as checkers read it. It is not changed after [Build],
// except that whoever knows the number of clients sets Clients before judging.
type History struct {
	Spans        []Span // in the order of their invocations
	Notices      []Notice
	Touches      []Touched
	Faults       []Fault
	Unknown      []Unknown     // when it was told that an outcome is unknown, in that order
	TimedOut     []int32       // indices of the acquires that waited in vain, see [Event.GaveUp]
	Limits       []int32       // by key, as far as told: see [History.Limit]
	Probes       []Probe       // of keys at the end of the run
	Leftovers    []Leftover    // what was left at the servers at the end of the run
	Problems     []Problem     // what had to be repaired or ignored in reading
	Keys         []string      // names of the keys
	Owners       []string      // names of the owners
	ProcessNames []string      // names of the processes that have no number, see [History.WithNames]
	Clients      int           // number of clients of the run; 0 if unknown
	End          time.Duration // time of the last event
	Events       int           // number of events read
}
