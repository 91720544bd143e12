// Package client is promised API: the interface of a lock under test, and both ends of the client protocol
// (docs/reference/protocol.md).
//
// A [Client] executes one request at a time and replies. The same requests reach a native client in the harness's
// process (simulation), a native client in a process of its own, and a client in any language over standard input and
// output. The workload chooses the operations and the checkers judge the replies; a client only executes.
//
// Read [Client] first. A lock written in Go implements [Locker].
package client

import (
	"context"
	"net"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/topology"
)

// Values of [Request.Op], in addition to history.Acquire, Try, Work, Renew and Release, and to the operations that a
// lock may state that it supports: history.Arm, CountDown, Await, Delete, Resize, AddPermits, DropPermits,
// ForceRelease, Guard, Inspect, InspectOwner, CountWaiters and Reopen.
const (
	Init  = "init"  // first request: lock name, endpoints, options
	Close = "close" // last request: close every connection and exit
)

// Acquire is a request for a lock. Requests that concern the hold afterwards repeat its key and owner, and a release
// its permits.
type Acquire struct {
	Key     string        `json:"key,omitempty"`
	Keys    []string      `json:"keys,omitempty"`    // all keys of an operation, Key the first; nil: Key alone
	Owner   string        `json:"owner,omitempty"`   // unique for each hold; a re-entry repeats it
	Lease   time.Duration `json:"-"`                 // 0: the lock renews by itself
	Wait    time.Duration `json:"-"`                 // how long to wait; 0: acquire it only if it is free
	Mode    string        `json:"mode,omitempty"`    // "read" or "write"; empty: exclusive
	Permits int           `json:"permits,omitempty"` // 0 means 1
	// Scoped asks for the form of the lock that holds it for a block of code, if it states [promise.HasDo].
	Scoped bool `json:"scoped,omitempty"`
	Limit  int  `json:"limit,omitempty"` // size of the semaphore, the same in all requests; 0: not a semaphore
}

// Request is one line to a client. On the wire its durations are in milliseconds: lease_ms, wait_ms, ms and close_ms.
type Request struct {
	ID     int64  `json:"id"`
	Op     string `json:"op"`               // init, acquire, try, work, renew, release, close, …
	Client string `json:"client,omitempty"` // name of the client in its process; empty: the only one
	Acquire
	Work  time.Duration `json:"-"`               // work: how long to sleep
	Close time.Duration `json:"-"`               // acquire: closes the lock object after this time; 0: never
	Count int           `json:"count,omitempty"` // arm: the count of the latch
	Token uint64        `json:"token,omitempty"` // count-down, await: generation of the latch; 0: the current one
	Setup *Setup        `json:"setup,omitempty"` // init only

	Drain    bool `json:"drain,omitempty"`    // try: all permits that are free, at least one; Permits is how many there are
	Failed   bool `json:"failed,omitempty"`   // release: the block of code of a scoped hold ends with an error
	Canceled bool `json:"canceled,omitempty"` // release: its caller has given up, as its context has ended
}

// Hold identifies the hold of a renewal or a release: the innermost hold of its owner.
type Hold struct {
	Key     string
	Keys    []string // of a hold of several; nil: Key alone
	Owner   string
	Mode    string // as in its acquire; empty: exclusive, or unknown
	Permits int    // as in its acquire, at least 1; 0: all, of an inspection
	Failed  bool   // of a release of a scoped hold: its block of code ends with an error
}

// Hold is the hold that a grants.
func (a Acquire) Hold() Hold {
	return Hold{Key: a.Key, Keys: a.Keys, Owner: a.Owner, Mode: a.Mode, Permits: a.Permits}
}

// Setup is the argument of the first request, [Init].
type Setup struct {
	Lock      string             `json:"lock"` // name in the catalog, or any name that a client of your own understands
	Endpoints topology.Endpoints `json:"endpoints"`
	Options   map[string]string  `json:"options,omitempty"` // options of the lock, as written in the scenario
	Seed      uint64             `json:"seed,omitempty"`    // of every random choice; differs between the clients of a run
	// Instance is the same for clients of one process that are to share one lock object and its connections, as the
	// goroutines of a program do; empty: the client has its own.
	Instance string `json:"instance,omitempty"`

	// Dial replaces net.Dialer for clients in the harness's process, where the endpoints are simulated.
	// With Sentinels it connects to the current master, under the one address in Endpoints.Addrs. nil: use the network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error) `json:"-"`
	// Order waits until no other goroutine of this client can run at this instant of virtual time, then lets its
	// callers through one by one, sorted by server and then by command, which may be nil. In a simulation, a lock calls
	// it before several of its goroutines may compete for a connection, as native locks do. nil: no simulation.
	Order func(server string, command func() string) `json:"-"`
}

// Reply is one line from a client: the reply to a request (ID set), or a notice
// that the client sends without a request (Event set).
type Reply struct {
	ID      int64   `json:"id,omitempty"`
	Type    string  `json:"type,omitempty"`  // "ok", "fail" (certainly did not happen) or "info" (unknown)
	Event   string  `json:"event,omitempty"` // notices: "lost", "renewed" or EventLate
	Op      string  `json:"-"`               // late replies: Op of the request
	Client  string  `json:"client,omitempty"`
	Key     string  `json:"key,omitempty"`      // notices: of the hold
	Owner   string  `json:"owner,omitempty"`    // notices: of the hold; inspect: who holds the lock
	Token   uint64  `json:"token,omitempty"`    // acquire: fencing token; of a latch: its generation; 0: none
	ValidMS float64 `json:"valid_ms,omitempty"` // validity of the hold, inspect: rest of the lease; 0: none promised
	MonoNS  int64   `json:"mono_ns,omitempty"`  // CLOCK_MONOTONIC at the validity or the notice; 0: unknown
	Mode    string  `json:"mode,omitempty"`     // notice lost: of the hold
	Count   int     `json:"count,omitempty"`    // hold count, or count of a latch, after the operation or the loss
	Permits int     `json:"permits,omitempty"`  // try with drain: how many were granted
	Undone  bool    `json:"undone,omitempty"`   // acquire: granted, and the grant undone before the reply
	Code    string  `json:"code,omitempty"`     // of the error, short and stable
	Error   string  `json:"error,omitempty"`    // for people

	Can promise.Set `json:"can,omitempty"` // init: the promises of the lock

	// Deadline is the end of the validity in a notice of a native lock, as in [Grant]: it becomes ValidMS and MonoNS when
	// the notice is sent. Zero: ValidMS counts.
	Deadline time.Time `json:"-"`
}

// Client is one lock user under test. Do must not be called concurrently; the other methods may.
type Client interface {
	// Do sends r and returns the client's reply. An error is ErrExited, ErrProtocol or ErrTimeout: the outcome
	// of the request is unknown.
	Do(ctx context.Context, r Request) (Reply, error)
	// Notices returns the messages that the client sends without a request. The channel is closed when the client has
	// exited.
	Notices() <-chan Reply
	// Close ends the client and waits for that until ctx is done.
	Close(ctx context.Context) error
}

// Stopper is a client whose process can be stopped the way a long garbage collection
// stops it: with every goroutine, timer and watchdog.
type Stopper interface {
	Stop() error     // returns when the process is stopped
	Continue() error // resumes the process
	PID() int        // 0 once the process has exited
}

// Crasher is a client whose process can be killed without warning.
type Crasher interface {
	Kill() error // returns when the process has exited; nil if it had exited before
}

// TypeOf maps the type of a reply to a type of the history; an unknown one to Info.
func TypeOf(r Reply) history.Type {
	switch r.Type {
	case "ok":
		return history.OK
	case "fail":
		return history.Fail
	}
	return history.Info
}
