package history

import (
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// Infinity is the Return of an operation of unknown outcome, and the end of anything that has not ended.
const Infinity = format.Forever

// Op is the operation of a [Span], in one byte.
type Op uint8

// The operations that checkers know. OpOther is every other one.
const (
	OpOther Op = iota
	OpAcquire
	OpTry
	OpRelease
	OpRenew
	OpWork
	OpTouch
	OpArm
	OpCountDown
	OpAwait
	OpResize
	OpForceRelease
	OpInspect
	OpAddPermits
	OpDropPermits
	OpGuard
	OpDelete
	OpInspectOwner
	OpCountWaiters
	OpReopen
)

// String is the operation as [Event.F] names it; "" for OpOther.
func (o Op) String() string {
	return [...]string{OpOther: "", OpAcquire: Acquire, OpTry: Try, OpRelease: Release, OpRenew: Renew, OpWork: Work,
		OpTouch: Touch, OpArm: Arm, OpCountDown: CountDown, OpAwait: Await, OpResize: Resize,
		OpForceRelease: ForceRelease, OpInspect: Inspect,
		OpAddPermits: AddPermits, OpDropPermits: DropPermits, OpGuard: Guard, OpDelete: Delete,
		OpInspectOwner: InspectOwner, OpCountWaiters: CountWaiters, OpReopen: Reopen}[o]
}

// Span is an invocation with its completion. It is small and has no pointers, so that millions fit in memory.
// Times are since the start of the run.
type Span struct {
	Call    time.Duration // time of the invocation
	Return  time.Duration // time of the completion; Infinity if the outcome is unknown
	Valid   time.Duration // end of the validity; 0: none was promised
	Lease   time.Duration // requested lease; 0: renewed by the lock itself
	Token   uint64        // fencing token, granted or presented; 0: none, unless Zero
	Invoked int32         // Index of the invocation
	Ended   int32         // Index of the completion; -1: none
	Process Process       //
	Key     int32         // index into History.Keys
	Owner   int32         // index into History.Owners; of an inspect: who holds the lock
	Count   int32         // count in the completion; 0: unknown, an open latch that is inspected, or no waiters
	Asked   int32         // arm: the count; acquire, try, resize: size of a semaphore; a change: by how many
	Permits int32         // requested permits or, if fewer, the granted ones; at least 1
	Op      Op            //
	Outcome Type          // OK, Fail or Info
	Write   bool          // mode is not "read"
	Moded   bool          // the mode was stated
	Busy    bool          // a try that failed because the lock was held
	Behind  bool          // a try that was refused, perhaps because others wait (code refused)
	Held    bool          // a failed release or renewal that left the hold unchanged
	Undone  bool          // an acquire or try that may have held the lock between Call and Return, and given it back
	Denied  bool          // a failed release or renewal, because the lock does not (or no longer) know the hold
	Lapsed  bool          // a failed release or renewal that proves that the lease of the hold had ended before
	Lost    bool          // Denied, with code lost: nothing says that another owner has the lock
	Expired bool          // a grant or renewal whose validity had ended when the client replied, by its own clock
	Zero    bool          // the token is 0
	Armed   bool          // an arm or await that failed because the latch was still counting
	Stale   bool          // a guard that failed because a newer token had been presented
	Absent  bool          // an inspect or forced release without a holder; a latch operation without a latch or generation
	Some    bool          // a forced release of as many as Permits that Owner holds, not of all holds of the key
	Part    bool          // a further key of the operation of an earlier span, which has the same process
}

// Unknown is the info completion of an operation. The Return of its span is Infinity, but its request was
// sent before Time.
type Unknown struct {
	Time      time.Duration
	Wait      time.Duration // acquire: how long it could wait; 0 or less: without limit
	Span      int32         // index into History.Spans
	Timeout   bool          // the harness stopped waiting for the reply
	Abandoned bool          // the run ended before the reply, or the request could not be sent
}

// Failure is the completion of an operation with an error that is not an answer of the lock: a server replied with an
// error, or not at all, or the lock panicked. Its outcome may be known nevertheless.
type Failure struct {
	Time time.Duration // of the completion
	Wait time.Duration // acquire: how long it could wait; 0 or less: without limit
	Span int32         // index into History.Spans
	Why  string        // code and text of its error
}

// Contradiction is the completion of an operation with code [CodeContradiction].
type Contradiction struct {
	Time time.Duration // of the completion
	Text string        // of the error
	Span int32         // index into History.Spans
}

// Notice is an event without an invocation, such as [Lost], [Renewed] and [Crash].
type Notice struct {
	Time    time.Duration // when the client sent it, as far as it is known; else the event's
	Valid   time.Duration // renewed: new end of the validity
	Index   int32         // of the event
	Process Process
	Key     int32 // index into History.Keys; of the name "" if it concerns every key, as a crash does
	Owner   int32 // index into History.Owners
	Left    int32 // lost: how many holds its owner still has
	F       string
	Write   bool // lost: the mode of the hold is not "read"
	Moded   bool // lost: the mode was stated
}

// Exit is why a client's process ended: the error of a [Crash].
type Exit struct {
	Error
	Time    time.Duration
	Index   int32 // of the event
	Process Process
}

// Touched is a write that arrived at the guarded resource.
type Touched struct {
	TouchValue
	Time     time.Duration
	Token    uint64
	Index    int32 // of the event
	Process  Process
	Key      int32 // index into History.Keys
	Owner    int32 // index into History.Owners
	Accepted bool  // false: the resource rejected its token
}

// Fault is an action or an observation of the fault injector.
type Fault struct {
	FaultValue
	Name  string // of the fault
	Time  time.Duration
	Index int32 // of the event
}

// Stalled reports whether f is a note that its target, the harness or a client, did not run for f.Lasted before it, and
// that no fault was the reason.
func (f *Fault) Stalled() bool {
	return f.Phase == Noted && (f.Name == HarnessStalled || f.Name == ClientStalled)
}

// Problem is something in a recorded history that should not be there. The history was repaired or the
// event ignored.
type Problem struct {
	Index int64  // of the event; -1: none
	Line  int    // in the file, from 1; 0: unknown
	Text  string // for people
}

// History is a run as checkers read it. After [Build] it does not change, but Clients may be set before it is checked.
// Lists without a comment are in the order of their events.
type History struct {
	Spans        []Span // in the order of their invocations
	Notices      []Notice
	Touches      []Touched
	Faults       []Fault
	Unknown      []Unknown
	Failures     []Failure
	Mistimed     []Mistimed      // acquires that did not end when their stated wait did
	Closings     []Closing       // acquires during which a client closed its lock object
	Contradicted []Contradiction // operations about which a lock contradicts itself
	Exits        []Exit          // unexpected exits of clients whose reason is known
	TimedOut     []int32         // acquires whose wait ran out while the lock was held: indices into Spans
	Unanswered   []int32         // acquires whose wait ran out before a server replied, and which certainly got nothing
	OneHeld      []int32         // acquires of several keys whose wait ran out while one of them was held
	Reentered    []int32         // acquires and tries that were refused because the owner held the lock
	Upgrades     []int32         // acquires and tries to write that were refused because the owner read
	OutOfRange   []int32         // changes of the number of permits that were refused because fewer exist
	Foreign      []int32         // operations about holds that were refused: the key holds something that is not a lock
	NotSetUp     []int32         // acquires and tries that state the size of a semaphore, which does not exist
	Limits       []int32         // by key, may be shorter than Keys: see [History.Limit]
	Others       []string        // names of operations that checkers do not know: the first eight
	Probes       []Probe         // of keys at the end of the run
	Leftovers    []Leftover      // of keys at the end of the run
	Samples      []Sample        // the servers' state, of witness.jsonl; nil: unknown. It may be set before a check.
	Problems     []Problem
	Keys         []string      // names of the keys
	Owners       []string      // names of the owners
	ProcessNames []string      // names of processes without a number, see [History.NameProcesses]
	Clients      int           // number of clients of the run; 0: unknown
	End          time.Duration // time of the last event
	Events       int           // number of events read
}

// opOf is the operation that an event names.
func opOf(f string) Op {
	for o := OpAcquire; o <= OpReopen; o++ {
		if o.String() == f {
			return o
		}
	}
	return OpOther
}
