// Package client is a lock under test as the harness sees it: something that
// obeys one request at a time and answers. The same requests reach a native
// client inside this process (simulation), a native client in a process of its
// own, and a client in any language over standard input and output.
//
// Read [Client] first. A client decides nothing: which operation comes next is
// the workload's, what the answers mean is the checkers'.
package client

import (
	"context"
	"net"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// Ops of a [Request]. BeforeStep and the lock operations are those of package history.
const (
	Init  = "init"  // set up: lock name, endpoints, options; answered before anything else is asked
	Close = "close" // give up every connection and end; nothing is asked after it
)

// Request is one line to a client. Durations are milliseconds, as the wire has them.
type Request struct {
	ID      int64   `json:"id"`
	Op      string  `json:"op"`               // init, acquire, try, work, renew, release, close
	Client  string  `json:"client,omitempty"` // which client of this process; empty: the only one
	Key     string  `json:"key,omitempty"`
	Owner   string  `json:"owner,omitempty"`    // id of the holder, unique per hold; re-entry repeats it
	WaitMS  float64 `json:"wait_ms,omitempty"`  // acquire: give up after; 0: do not wait
	LeaseMS float64 `json:"lease_ms,omitempty"` // 0: the library renews by itself
	MS      float64 `json:"ms,omitempty"`       // work: how long to sleep
	Mode    string  `json:"mode,omitempty"`     // "read" or "write"; empty: exclusive
	Permits int     `json:"permits,omitempty"`  // acquire, release: how many; 0 is 1
	Limit   int     `json:"limit,omitempty"`    // acquire: permits that the key has in all; 0: it is no semaphore
	Setup   *Setup  `json:"setup,omitempty"`    // init only
}

// Setup is what a client needs to know once.
type Setup struct {
	Lock      string            `json:"lock"` // name in the catalogue, or whatever a foreign client understands
	Endpoints Endpoints         `json:"endpoints"`
	Options   map[string]string `json:"options,omitempty"` // options of the lock, as the scenario has them
	Seed      uint64            `json:"seed,omitempty"`    // for whatever the client draws by chance

	// Dial reaches the endpoints where they are no addresses of this machine: native clients in this process only.
	// With Sentinels it finds the master itself, under the one address in Endpoints.Addrs.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error) `json:"-"`
}

// Reply is one line from a client: the answer to a request (ID set), or an
// event of its own accord (Event set).
type Reply struct {
	ID      int64   `json:"id,omitempty"`
	Type    string  `json:"type,omitempty"`  // "ok", "fail" (certainly did not happen) or "info" (unknown)
	Event   string  `json:"event,omitempty"` // "lost" or "renewed"
	Op      string  `json:"-"`               // late answers: what had been asked
	Client  string  `json:"client,omitempty"`
	Key     string  `json:"key,omitempty"`      // events: which hold
	Owner   string  `json:"owner,omitempty"`    // events: which hold
	Token   uint64  `json:"token,omitempty"`    // acquire: fencing number; 0: none
	ValidMS float64 `json:"valid_ms,omitempty"` // acquire, renew, renewed: for how long the hold is promised
	MonoNS  int64   `json:"mono_ns,omitempty"`  // CLOCK_MONOTONIC when valid_ms was computed; 0: not told
	Count   int     `json:"count,omitempty"`    // hold count after the operation
	Code    string  `json:"code,omitempty"`     // of the error, short and stable
	Error   string  `json:"error,omitempty"`    // for people

	until time.Time // native events: end of the promise, put into valid_ms on the way out
}

// Client is one lock user under test. Do is called by one goroutine at a time;
// the other methods by any. Do answers what the client answered; its error is
// about the client itself (dead, babbling, too late), after which the outcome
// of the request is unknown. Notices is closed when the client is gone.
type Client interface {
	Do(ctx context.Context, r Request) (Reply, error)
	Notices() <-chan Reply
	Close(ctx context.Context) error
}

// Stopper is a client whose process can be stopped as a garbage collector
// would: every goroutine, timer and watchdog in it stands still.
type Stopper interface {
	Stop() error     // returns when the process stands still
	Continue() error //
	PID() int        // 0 once it has ended
}

// Crasher is a client whose process can be ended as a crash ends it.
type Crasher interface {
	Kill() error // returns when it is gone; nil if it was gone already
}

// TypeOf turns the type of a reply into the history's.
func TypeOf(r Reply) history.Type {
	switch r.Type {
	case "ok":
		return history.OK
	case "fail":
		return history.Fail
	}
	return history.Info
}
