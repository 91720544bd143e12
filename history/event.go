// Package history is the record of a run: what was asked of every client, what
// was answered, and when. It is a leaf: it knows no lock, no server and no
// checker, and everything else in this project speaks in its words.
//
// Read [Event] first: one line of history.jsonl. A [Recorder] writes events as
// they happen; [Read] turns a file back into events; [Build] pairs them into
// the [Span]s that checkers judge. It is not a log: an event that did not
// happen between a client, the guarded resource and the fault injector does
// not belong here (what was seen at the servers is a [Sample], in a file of its own).
package history

import "time"

// Type says what an event tells about its operation (the words are Jepsen's).
type Type uint8

// The types. The zero value is not a type, so that a forgotten field shows.
const (
	Invoke Type = iota + 1 // the operation was sent
	OK                     // it happened
	Fail                   // it definitely did not happen, and never will
	Info                   // unknown, for ever; or an event that nobody asked for
)

// Process is the number under which a client appears in the history. After an
// operation of unknown outcome its process is retired, and the client goes on
// as process + number of clients: so client = process mod clients.
type Process int32

// Nemesis is the process of the fault injector.
const Nemesis Process = -1

// Operations, the f of an event. Faults appear under their own name with
// process [Nemesis].
const (
	Acquire = "acquire" // take the lock, waiting for it if need be
	Try     = "try"     // take the lock if it is free now
	Release = "release" // give one hold back
	Renew   = "renew"   // prolong the lease
	Work    = "work"    // the critical section, spent inside the client
	Touch   = "touch"   // arrival at the guarded resource
	Lost    = "lost"    // the client was told that its hold has ended (always info)
	Renewed = "renewed" // the client's own watchdog prolonged the lease (always info)
	Crash   = "crash"   // the client's process ended without being asked (always info)
)

// Event is one line of history.jsonl.
type Event struct {
	Index   int64         `json:"index"`           // position in the file, from 0
	Time    time.Duration `json:"time"`            // nanoseconds since the run began, harness clock
	Type    Type          `json:"type"`            // invoke, ok, fail, info
	Process Process       `json:"process"`         // or "nemesis"
	F       string        `json:"f"`               // the operation, or the fault
	Key     string        `json:"key,omitempty"`   // what is locked
	Value   *Value        `json:"value,omitempty"` // what was asked or answered; nil is nothing
	Error   *Error        `json:"error,omitempty"` // why it failed or is unknown; nil if it did not
	Held    bool          `json:"held,omitempty"`  // a release or renewal that failed and left the hold as it was; false: it is gone
}

// Value is what an operation asked for (on invoke) or got (on completion).
// A field that does not apply is zero and is not written.
type Value struct {
	Owner   string         `json:"owner,omitempty"`    // random id of the holder
	Token   uint64         `json:"token,omitempty"`    // fencing number; 0: the lock mints none
	Zero    bool           `json:"zero,omitempty"`     // the token is the number 0, which some other suite's lock minted
	Valid   time.Duration  `json:"valid_ns,omitempty"` // promised from this event's time on
	Count   int            `json:"count,omitempty"`    // hold count after the operation
	Lease   time.Duration  `json:"lease_ns,omitempty"` // asked time to live; 0: the lock renews by itself
	Wait    time.Duration  `json:"wait_ns,omitempty"`  // asked longest wait
	Work    time.Duration  `json:"work_ns,omitempty"`  // asked length of the work
	Mode    string         `json:"mode,omitempty"`     // "read" or "write"; empty: exclusive
	Permits int            `json:"permits,omitempty"`  // asked or given; 0 is 1
	Limit   int            `json:"limit,omitempty"`    // on invoke: permits of the key in all; 0: not told
	Touch   *TouchValue    `json:"touch,omitempty"`    // at the guarded resource
	Fault   *FaultValue    `json:"fault,omitempty"`    // under process nemesis
	Left    *LeftoverValue `json:"left,omitempty"`     // with f leftover
}

// TouchValue is what the guarded resource saw: a counter that a client read
// when it entered its critical section and writes, plus one, when it leaves.
type TouchValue struct {
	Read    int64  `json:"read"`               // the counter as the client read it
	Found   int64  `json:"found"`              // the counter when the write arrived; a lost update if not Read
	MaxSeen uint64 `json:"max_seen,omitempty"` // greatest token seen before this one
	Fenced  bool   `json:"fenced,omitempty"`   // the resource refuses old tokens
}

// Phase is a moment in the life of a fault.
type Phase string

// The phases. A fault that never reports Bit tested nothing.
const (
	Injected   Phase = "inject"
	TookEffect Phase = "bite" // its effect was observed
	Healed     Phase = "heal"
	Missed     Phase = "missed" // planned, and it never came; its id is of its own
	Noted      Phase = "note"   // something observed that explains the run, such as a promotion
)

// FaultValue tells what the fault injector did or saw.
type FaultValue struct {
	ID     int    `json:"id"`               // of the injection, from 1; 0 on a note that belongs to none
	Phase  Phase  `json:"phase"`            // inject, bite, heal, note
	Target string `json:"target,omitempty"` // node ("n1") or client ("client:3")
	Detail string `json:"detail,omitempty"` // for people
}

// Error is why an operation failed or is of unknown outcome.
type Error struct {
	Code string // short and stable, such as "timeout"; see docs/history.md
	Text string // for people
}

// Client is the client behind a process, in a run of n clients (n > 0). A process
// that has a name is a client of its own.
func (p Process) Client(n int) int {
	if p < 0 || n <= 0 || p >= firstNamed {
		return int(p)
	}
	return int(p) % n
}
