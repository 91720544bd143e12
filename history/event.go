// Package history is promised API: it records the requests to the clients of a run, their replies and all times,
// and reads them back. It imports nothing of this project.
//
// Read [Event] first: one line of history.jsonl. A [Recorder] writes events as they happen, [Scan] reads them back, and
// [Build] pairs invocations with completions into a [History] of [Span]s, which checkers judge; [ReadFile] does the
// last two. Package history/foreign reads histories of other test suites. Samples of server state ([Sample]) are in a
// file of their own, witness.jsonl.
package history

import (
	"time"

	"github.com/lockchaos/lockchaos/history/internal/input"
)

// Type is the type of an event, in Jepsen's words.
type Type uint8

// The types. The zero value is invalid.
const (
	Invoke Type = iota + 1 // the operation was sent
	OK                     // it happened
	Fail                   // it certainly did not happen and never will
	Info                   // its outcome is unknown; or an event without an invocation
)

// Process identifies a client in the history. A process whose operation has an unknown outcome is retired, as in
// Jepsen, and the client continues as process + number of clients: client = process mod clients.
type Process int32

// Nemesis is the process of the fault injector.
const Nemesis Process = -1

// Values of [Event.F]. A fault has its own name and the process [Nemesis].
const (
	Acquire = "acquire" // acquire the lock, wait for it if it is held
	Try     = "try"     // acquire the lock if it is free
	Release = "release" // release one hold
	Renew   = "renew"   // extend the lease
	Work    = "work"    // the critical section, executed in the client
	Touch   = "touch"   // a write arrived at the guarded resource
	Lost    = "lost"    // the client noticed the end of its hold (always info)
	Renewed = "renewed" // the client's own watchdog extended the lease (always info)
	Crash   = "crash"   // the client's process exited unexpectedly (always info)

	Arm          = "arm"           // set the count of a latch that is open or does not exist
	CountDown    = "count-down"    // count a latch down by one
	Await        = "await"         // wait until a latch is open
	Delete       = "delete"        // remove a latch, if it exists: its waiters are refused
	Resize       = "resize"        // set the number of permits of a semaphore
	ForceRelease = "force-release" // release the lock for every owner that holds it, or some permits of one owner
	AddPermits   = "add-permits"   // raise the number of permits of a semaphore
	DropPermits  = "drop-permits"  // lower it
	Guard        = "guard"         // present the token of a hold to a resource that the lock guards: fail with stale
	Inspect      = "inspect"       // ask who holds the lock, or for the state of a latch: fail with not-held, or absent
	InspectOwner = "inspect-owner" // ask whether an owner holds the lock: ok with how often, or how many permits
	CountWaiters = "count-waiters" // ask how many waiters a server has in the queue of the lock
	Reopen       = "reopen"        // close the lock object and open another one
)

// LatePrefix begins the [Event.F] of a reply that came after its timeout: late-acquire, late-work, …
const LatePrefix = "late-"

// Values of [Event.F] for notes of the nemesis about a node.
const (
	NodePromoted = "promoted" // it became master
	NodeDemoted  = "demoted"  // it became replica
	NodeSilent   = "silent"   // it does not reply
	NodeReplies  = "replies"  // it replies again
)

// Values of [Event.F] for notes of the nemesis about a client.
const (
	SourceIgnored = "source-ignored" // it connects from another address than the one by which faults identify it
	ProcessLeft   = "process-left"   // a process that it has started outlived it, and was killed
	NoPassword    = "no-password"    // a server refused it because it had not authenticated
)

// HarnessStalled is the [Event.F] of a note of the nemesis: the harness itself did not run for FaultValue.Lasted before
// the event, and neither did the network between clients and servers, which passes through it.
const HarnessStalled = "harness-stalled"

// ClientStalled is the [Event.F] of a note of the nemesis: the process of its target, a client, did not run for
// FaultValue.Lasted before the event, and no fault was the reason. It was stopped from outside the run, or its machine
// had no processor to spare.
const ClientStalled = "client-stalled"

// Event is one line of history.jsonl.
type Event struct {
	Index   int64         `json:"index"`           // position in the file, from 0
	Time    time.Duration `json:"time"`            // since the start of the run, on the harness's clock
	Type    Type          `json:"type"`            // invoke, ok, fail, info
	Process Process       `json:"process"`         // a number, or "nemesis"
	F       string        `json:"f"`               // the operation or the fault
	Key     string        `json:"key,omitempty"`   // the name of the lock
	Value   *Value        `json:"value,omitempty"` // arguments of an invocation, results of a completion; nil: none
	Error   *Error        `json:"error,omitempty"` // of a fail or info; nil: none
	Held    bool          `json:"held,omitempty"`  // failed release or renewal: the hold is unchanged; false: it has ended
}

// Value holds the arguments of an operation (on invoke) or its results (on completion).
// A field that does not apply is zero and is not written.
type Value struct {
	Owner   string         `json:"owner,omitempty"`    // id of the hold's owner
	Token   uint64         `json:"token,omitempty"`    // fencing token, or generation of a latch; 0: none, unless Zero
	Zero    bool           `json:"zero,omitempty"`     // the token is 0, as in histories of other suites
	Valid   time.Duration  `json:"valid_ns,omitempty"` // validity, counted from this event
	Count   int            `json:"count,omitempty"`    // holds that the owner has, or count of a latch, after the event
	Undone  bool           `json:"undone,omitempty"`   // acquire: granted, and the grant undone before the reply
	Lease   time.Duration  `json:"lease_ns,omitempty"` // invoke: requested lease; 0: the lock renews by itself
	Age     time.Duration  `json:"age_ns,omitempty"`   // notice: how long before this event it was sent; 0: unknown
	Wait    time.Duration  `json:"wait_ns,omitempty"`  // invoke: how long to wait at most
	Close   time.Duration  `json:"close_ns,omitempty"` // invoke: closes the lock object after this time; 0: never
	Work    time.Duration  `json:"work_ns,omitempty"`  // invoke: how long the critical section takes
	Mode    string         `json:"mode,omitempty"`     // "read" or "write"; empty: exclusive
	Permits int            `json:"permits,omitempty"`  // requested or granted; 0 means 1
	Limit   int            `json:"limit,omitempty"`    // invoke: size of the semaphore; 0: unknown
	Lapsed  bool           `json:"lapsed,omitempty"`   // failed release or renewal: proves that the lease had ended before
	Part    bool           `json:"part,omitempty"`     // invoke: a further key of an operation on several keys
	Touch   *TouchValue    `json:"touch,omitempty"`    // f touch
	Fault   *FaultValue    `json:"fault,omitempty"`    // process nemesis
	Left    *LeftoverValue `json:"left,omitempty"`     // f leftover
}

// TouchValue is a write as the guarded resource saw it. The resource is a counter: a client reads it when it enters its
// critical section, and writes that value plus one when it leaves.
type TouchValue struct {
	Read    int64  `json:"read"`               // value of the counter when the client read it
	Found   int64  `json:"found"`              // its value when the write arrived; a lost update if not Read
	MaxSeen uint64 `json:"max_seen,omitempty"` // greatest token seen before
	Fenced  bool   `json:"fenced,omitempty"`   // the resource rejects tokens less than MaxSeen
}

// Phase is a step in the life of a fault.
type Phase string

// The phases. A fault that never reports TookEffect tested nothing.
const (
	Injected   Phase = "inject"
	TookEffect Phase = "effect" // its effect was observed
	Healed     Phase = "heal"
	Missed     Phase = "missed" // planned but never injected; has an id of its own
	Noted      Phase = "note"   // an observation that explains the run, such as a promotion
)

// NothingToUndo is the detail of the healing of a fault that is over once it has taken effect: a deleted key, a killed
// client.
const NothingToUndo = "nothing to undo"

// ForeignDataLost begins the detail of the healing of a fault that wrote data of another program, if a lock has changed
// or deleted them meanwhile: the keys follow, separated by commas.
const ForeignDataLost = "foreign data lost"

// FaultValue is an action or an observation of the fault injector.
type FaultValue struct {
	ID     int    `json:"id"`               // of the injection, from 1; 0: a note that belongs to none
	Phase  Phase  `json:"phase"`            // inject, effect, heal, missed, note
	Target string `json:"target,omitempty"` // node ("n1") or client ("client:3")
	Detail string `json:"detail,omitempty"` // for people

	Lasted time.Duration `json:"lasted_ns,omitempty"` // notes of stalls, and silent: for how long already
	// Affects are the possible effects of the fault, in words separated by spaces: data (keys and clocks of servers),
	// traffic (requests and replies are late or lost), delays (they are late, by up to 50 ms), messages (published ones
	// are lost), subscriptions (clients have to subscribe again), commands (some are refused), clients; "traffic replies":
	// requests arrive, only replies are late or lost; "rights" beside others: for want of a permission, so that a lock
	// need not resend refused commands; "commands memory": commands are refused that may need memory; "clock-back" beside
	// others: the clock of a server is set back until healed, so that keys last longer and none is lost; "data commands
	// slots": keys move to another server; "requests": they are executed twice, and none is lost or late. Empty: unknown,
	// so everything.
	Affects string `json:"affects,omitempty"`
	// Class is the kind of the fault, and Object the thing it acts on: "drops" "replies". Verb is its effect on the
	// target, as a predicate: "lost replies". Empty: unknown. Optional: the run may be conclusive without its effect. They
	// are written when it is injected; Build copies them to the later phases.
	Class    string `json:"class,omitempty"`
	Object   string `json:"object,omitempty"`
	Verb     string `json:"verb,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// The words of [FaultValue.Class], with the objects that they have.
const (
	FaultKills      = "kills"      // process: ends; a server is started again when the fault is healed
	FaultRestarts   = "restarts"   // process: ends and starts again with the data on its disk
	FaultForgets    = "forgets"    // data, unsynced writes: ends and starts again without them
	FaultPauses     = "pauses"     // process, commands: execution stops, and continues when the fault is healed
	FaultDelays     = "delays"     // traffic, packets, replies, replication, acknowledgements, fsyncs: they come late
	FaultDrops      = "drops"      // packets, replies, messages, connections: some are lost
	FaultCuts       = "cuts"       // traffic, host, subscriptions: none passes or exists
	FaultRefuses    = "refuses"    // connections, subscriptions, scripts, writes: a server replies with an error
	FaultDuplicates = "duplicates" // requests: executed twice
	FaultRemoves    = "removes"    // keys, queues, scripts: a server no longer has them
	FaultPlants     = "plants"     // keys, queues: another program writes to them
	FaultSkews      = "skews"      // clock, rate: set to another time; too fast or too slow
	FaultMoves      = "moves"      // address, slots: another server has them
	FaultPromotes   = "promotes"   // role: the target becomes master
	FaultDemotes    = "demotes"    // role: the target is no longer master
)

// The words of [FaultValue.Object] by which causes and rules distinguish faults of one class.
const (
	ObjectAcknowledgements = "acknowledgements"
	ObjectAddress          = "address"
	ObjectConnections      = "connections"
	ObjectData             = "data"
	ObjectFsyncs           = "fsyncs"
	ObjectKeys             = "keys"
	ObjectMessages         = "messages"
	ObjectPackets          = "packets"
	ObjectProcess          = "process"
	ObjectRate             = "rate"
	ObjectReplies          = "replies"
	ObjectReplication      = "replication"
	ObjectSubscriptions    = "subscriptions"
	ObjectTraffic          = "traffic"
)

// The words of [FaultValue.Affects].
const (
	AffectsData          = "data"
	AffectsTraffic       = "traffic"
	AffectsDelays        = "delays"
	AffectsMessages      = "messages"
	AffectsSubscriptions = "subscriptions"
	AffectsCommands      = "commands"
	AffectsClients       = "clients"
	AffectsReplies       = "replies"
	AffectsRights        = "rights"
	AffectsClockBack     = "clock-back"
	AffectsSlots         = "slots"
	AffectsMemory        = "memory"
	AffectsRequests      = "requests"
)

// Error is why an operation failed or has an unknown outcome.
type Error struct {
	Code string // short and stable, such as "timeout"; see docs/reference/history.md
	Text string // for people
}

// Client returns the client of a process in a run of n clients. Without n (0), and for a process that has
// a name instead of a number, each process is a client of its own.
func (p Process) Client(n int) int {
	if p < 0 || n <= 0 || p >= input.FirstNamed {
		return int(p)
	}
	return int(p) % n
}
