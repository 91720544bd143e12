// Package locktest tests the duties of a distributed lock on real servers: one table of behaviors for every kind of
// lock and topology. It covers the faults that fit into a unit test (lost replies, broken connections, expired leases);
// cmd/chaos covers the others.
//
// Read [Spec] first, then [Run].
package locktest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Locker is one client of the lock under test, with connections of its own. Its methods
// are called concurrently.
type Locker interface {
	// Acquire waits until the lock is granted or ctx ends.
	Acquire(ctx context.Context, name string, o AcquireOptions) (Hold, error)
	// TryAcquire acquires the lock if it is free.
	TryAcquire(ctx context.Context, name string, o AcquireOptions) (Hold, error)
	// Close ends every connection, goroutine and subscription.
	Close(ctx context.Context) error
}

// AcquireOptions are the options of one acquire. The zero value is a new owner and a lease that is renewed.
type AcquireOptions struct {
	Owner string        // empty: a new one
	Lease time.Duration // 0: the lock's default, see [Spec.Lease]
}

// Hold is a granted lock.
type Hold interface {
	// Context ends with the hold. Nil: this lock does not support it.
	Context() context.Context
	// Token is the fencing token. 0: none.
	Token() int64
	// Release releases the lock, also if ctx has ended.
	Release(ctx context.Context) error
}

// Topology is the kind of servers that a lock runs on.
type Topology int

// The topologies that [Run] starts. Each master is behind a [Proxy].
const (
	Single   Topology = iota // one master; one address
	Sentinel                 // one master and a Sentinel, whose address is given; the master's name is m
	Quorum                   // three independent masters; three addresses
	Cluster                  // three masters that share the slots of a cluster; three addresses
)

// Servers are the servers of a lock that does not use Redis. They pass the clients' bytes in both directions until
// Close of a test.
type Servers interface {
	Addrs() []string            // for Spec.Open
	Requests() int64            // grows with the clients' requests
	Left(t testing.TB) []string // entries that locks have left at the servers
	Conns() int                 // of clients
}

// Spec is a lock under test and its claims. Claims that are not set are not tested.
type Spec struct {
	Topology Topology
	// Servers starts other servers than Topology's. The behaviors that need Redis are not tested then. nil: Redis.
	Servers func(t testing.TB) Servers
	// Open returns a Locker on the servers at addrs. It is called several times; t must close the other things that it
	// opens.
	Open func(t testing.TB, addrs []string) Locker
	// On returns a Locker on clients of the user, one, or several independent masters, or the error that refuses them.
	// nil: the lock makes its own connections.
	On func(rdbs ...redis.UniversalClient) (Locker, error)
	// OnObserved is On for one client; it calls unreachable when an acquire is retried without a reply. nil: not tested.
	OnObserved func(rdb redis.UniversalClient, unreachable func()) (Locker, error)
	// Guard runs a script of a guarded resource, with its key, unless a greater token was seen. nil: the lock has no
	// guard for resources in Redis.
	Guard func(ctx context.Context, rdb redis.UniversalClient, token int64, script, key string) error
	// Lease is the default lease, as Open configures it: a few seconds, because Run waits for two of
	// them. 0: the lock has no lease.
	Lease time.Duration
	// LeftKeys returns patterns (as for KEYS) of the keys that the lock on name leaves at the servers, for good,
	// such as the counter of its tokens, or for a while, such as the tombstone of a release.
	LeftKeys func(name string) []string

	ErrHeld error // of an acquire while the lock is held, for errors.Is
	ErrLost error // of a release after the hold was lost, for errors.Is

	Reentrant    bool // an owner may acquire it again, and must release it as often
	AlwaysRenews bool // also one with a lease of its own
	Renews       bool // a hold with the default lease is renewed until it is released
	ReportsLoss  bool // the context of a hold ends when the hold is lost
	Fenced       bool // tokens grow with every grant
	Idempotent   bool // a request that is sent again because its reply was lost counts once
	// ToleratesRefusals means that releases and renewals succeed, and waiters poll, at a server that refuses PUBLISH
	// and SUBSCRIBE, or is out of memory.
	ToleratesRefusals bool
	// HeldByOthers means that a string or Redisson's hash at the key is the lock of another library, held until it
	// expires.
	HeldByOthers bool
	// OutlastsMigration means that the lock is available while its slot migrates to another master of a cluster.
	OutlastsMigration bool
	// IsolatesMasters means that one master of a cluster that hangs delays no lock of another master.
	IsolatesMasters bool
	// RenewsTogether means that a client renews many holds in few requests and goroutines.
	RenewsTogether bool
	// Parts is of how many locks a hold consists, which are released together. 0 and 1: of one.
	Parts int
	// LocalMessages means that in a cluster with SPUBLISH (Redis 7.0) messages to waiters stay with the nodes of the slot.
	LocalMessages bool
	// KeepsPrefix means that all keys and channels of a lock whose name has a prefix and a hash tag begin with the prefix.
	KeepsPrefix bool
	// RequestWord is contained in every request of an acquire or a release, in lower case. Empty: eval, for scripts.
	RequestWord string
	// WakeWithin is how soon after a release a waiter must be granted the lock. 0: 10 s.
	WakeWithin time.Duration
}

func (s Spec) wakeWithin() time.Duration { return cmp.Or(s.WakeWithin, 10*time.Second) }

func (s Spec) requestWord() string { return cmp.Or(s.RequestWord, "eval") }
