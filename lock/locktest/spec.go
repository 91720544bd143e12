package locktest

import (
	"context"
	"testing"
	"time"
)

// Locker is one program's end of the lock under test, with connections of its
// own. Its methods are called from several goroutines.
type Locker interface {
	// Acquire waits for the lock until it is granted or ctx ends.
	Acquire(ctx context.Context, name string, o Ask) (Hold, error)
	// TryAcquire asks for the lock, and does not wait for it.
	TryAcquire(ctx context.Context, name string, o Ask) (Hold, error)
	// Close gives up every connection, goroutine and subscription.
	Close(ctx context.Context) error
}

// Ask is what a lock is asked for. The zero value is a new owner and a lease
// that renews itself.
type Ask struct {
	Owner string        // who is to hold the lock; empty: somebody new
	Lease time.Duration // 0: the lock's own, see [Spec.Lease]
}

// Hold is one stay in the lock.
type Hold interface {
	// Context ends when the hold does. Nil: this lock does not tell.
	Context() context.Context
	// Token is the fencing number of the grant. 0: this lock mints none.
	Token() uint64
	// Release gives the lock back; it is called with contexts that have ended, too.
	Release(ctx context.Context) error
}

// Topology is the kind of servers that a lock lives on.
type Topology int

// The topologies that [Run] can start. Each of their masters is behind a [Proxy].
const (
	Single   Topology = iota // one master; one address
	Sentinel                 // one master and a Sentinel, whose address is given; the master is called m
	Quorum                   // three independent masters; three addresses
	Cluster                  // one master with all slots of a cluster; one address
)

// Spec is a lock under test, and what it says of itself. What it does not claim
// is not asked of it.
type Spec struct {
	Topology Topology
	// Open makes a Locker on the servers at addrs. What it needs beside is
	// ended by t. It is called several times.
	Open func(t testing.TB, addrs []string) Locker
	// Lease is the lease of those who ask for none, as Open has set it; a few
	// seconds: the suite waits for two of them. 0: the lock has none and never ends.
	Lease time.Duration
	// Keeps are the patterns (as for KEYS) of what the lock on name leaves at the
	// servers for good, such as the counter of its tokens, and for a while, such
	// as the tombstone of a release.
	Keeps func(name string) []string

	Held error // what a refusal is, for errors.Is
	Lost error // what the release of a lost hold is, for errors.Is

	Reentrant  bool // the same owner may take it again, and gives it back as often
	Renews     bool // a hold that asks for no lease is renewed until it is released
	Tells      bool // the context of a hold ends when the hold is lost
	Fences     bool // tokens grow from grant to grant
	Idempotent bool // a request that is sent again, as its answer was lost, counts once
	// Beside says that other tests run beside this one in the same process, so
	// that goroutines cannot be counted; connections are, even so.
	Beside bool
	// Requests is a word that is on the wire in every request of an acquire or a
	// release, in lower case. Empty is eval: they are scripts.
	Requests string
	// Wakes is within what time of a release a waiter is served. 0 is 10 s.
	Wakes time.Duration
}

// wakes is Wakes, or its default.
func (s Spec) wakes() time.Duration {
	if s.Wakes == 0 {
		return 10 * time.Second
	}
	return s.Wakes
}

// requests is Requests, or its default.
func (s Spec) requests() string {
	if s.Requests == "" {
		return "eval"
	}
	return s.Requests
}
