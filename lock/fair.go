package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// ErrOneMaster says that this kind of lock cannot be kept on several masters:
// its queue, or its set of readers, would have to agree on all of them.
var ErrOneMaster = errors.New("this kind of lock needs a single master: make its client with New")

// FairMutex is a [Mutex] that is granted to its waiters in the order of their arrival, by the clock of the server.
// Several goroutines may use it.
//
// A release hands the lock over to the first waiter, inside the server, so that no client gets in between, and wakes
// it. A waiter sends a heartbeat every PollMax, and at least every 2 s. After three times as long without one, it is
// skipped, even if it has already been granted the lock. TryAcquire does not queue and overtakes no waiter. Only the
// first waiter knows when the lease ends: it learns that with a heartbeat, or from a message if the lease ends earlier.
//
// The hash is the same as of a mutex (see the package), so that a mutex and a fair mutex of one name exclude each
// other, but the order is kept only if all use the fair one. Beside it, for a lock named orders:
//
//	granted           in the hash: the hold which was granted the lock and has not fetched it yet
//	{orders}:queue    list of the waiters, each a hold, a blank and the owner, first come first
//	{orders}:waiters  sorted set of the same, by the time in ms at which they expire without a heartbeat
//	{orders}:grant    the channel that wakes a hold that was granted the lock
//
// The keys of the queue last three heartbeats longer than the last waiter.
type FairMutex struct{ named }

// FairMutex is the fair lock of that name. It sends no request and needs no closing. On
// a client of several masters its methods return [ErrOneMaster].
func (c *Client) FairMutex(name string, opts ...Option) *FairMutex {
	return &FairMutex{c.named(name, opts)}
}

// Acquire waits for its turn until ctx ends; then it leaves the queue, or releases the lock if it was just granted.
// Each heartbeat counts as a try ([WithTries]). Errors are as of [Mutex.Acquire]; after [ErrUnknown], a waiter may
// stay in the queue until it is skipped after three heartbeats.
func (m *FairMutex) Acquire(ctx context.Context, opts ...Option) (*FencedHold, error) {
	a, err := m.attempt(ctx, opts)
	if err == nil {
		a.mode, a.channel, a.byHold = ordered, grantChannel(m.key), true
		a.queueAtServer()
	}
	return acquireHold(ctx, m.name, true, a, err)
}

// TryAcquire takes the lock if it is free and has no waiters.
func (m *FairMutex) TryAcquire(ctx context.Context, opts ...Option) (*FencedHold, error) {
	a, err := m.attempt(ctx, opts)
	return acquireHold(ctx, m.name, false, a, err)
}

// Do is like [FencedMutex.Do].
func (m *FairMutex) Do(ctx context.Context, work func(ctx context.Context, token int64) error, opts ...Option) error {
	return doFenced(ctx, m, work, opts)
}

func (m *FairMutex) attempt(ctx context.Context, opts []Option) (*attempt, error) {
	if err := m.client.ownKinds(); err != nil {
		return nil, err
	}
	return m.client.attempt(ctx, m.named, m.client.fair, m.options.with(opts), "a fair mutex", fairOptions)
}

// maxHeartbeat bounds the interval between heartbeats, whatever PollMax is: a dead
// waiter is skipped after three of them.
const maxHeartbeat = 2 * time.Second

// queueAtServer has the server keep the waiter, with heartbeats.
func (a *attempt) queueAtServer() {
	a.maxSleep = min(a.client.o.PollMax, a.client.maxHeartbeat)
	a.claim.waiterTTL = milliseconds(3 * a.maxSleep)
}

// fairStore keeps fair mutexes on one master. A hold is renewed as a mutex's is.
type fairStore struct{ *single }

var _ store = (*fairStore)(nil)

func (s *fairStore) acquire(ctx context.Context, c claim) (grant, error) {
	c.fenced = true // every grant has a token
	g, err := s.node.grant(ctx, wire.Call{
		Script: s.node.kinds.fair.acquire,
		Keys:   fairKeys(c),
		Args:   []any{c.id, c.lease, c.owner, flags(c.nonReentrant, c.notify), c.waiterTTL, c.metadata},
	})
	if isMigrating(err) {
		return s.acquireMigrating(ctx, c)
	}
	return s.node.fence(ctx, c, g, err)
}

func (s *fairStore) release(ctx context.Context, c claim) (int, error) {
	value, err := s.node.Do(ctx, wire.Call{
		Script: s.node.kinds.fair.release, Keys: fairKeys(c), Args: []any{c.id, s.tombstoneTTL, c.owner},
	})
	if isMigrating(err) {
		return s.releaseMigrating(ctx, c)
	}
	return decodeRelease(value, err)
}

// fairKeys are in the order of fair_queue.lua.
func fairKeys(c claim) []string {
	queue := queueKeys(c.key)
	return []string{c.key, c.tombstoneKey(), queue[0], queue[1], c.tokenKey(), grantChannel(c.key)}
}

// queueKeys are the keys that queue.lua uses.
func queueKeys(key string) []string { return []string{tagged(key, "queue"), tagged(key, "waiters")} }

func grantChannel(name string) string { return tagged(name, "grant") }

// Queue returns the owners that wait for the lock, the next one first, as the server saw it; expired ones are left out.
// Errors are [ErrForeign], [ErrOneMaster], and errors of the server or the network.
func (m *FairMutex) Queue(ctx context.Context) ([]string, error) {
	r, err := m.run(ctx, m.client.kinds().fair.waiters)
	if err != nil {
		return nil, failed("list the waiters of", "lock", m.name, err)
	}
	owners := make([]string, len(r.List))
	for i, v := range r.List {
		owners[i] = fmt.Sprint(v)
	}
	return owners, nil
}

// ForceRelease takes the lock from its owner and hands it over to the first waiter. It reports whether it was held. The
// holder is not notified: it learns of it at its next renewal, and may be at work until then. After [ErrUnknown] it may
// or may not have been done.
func (m *FairMutex) ForceRelease(ctx context.Context) (bool, error) {
	r, err := m.run(ctx, m.client.kinds().fair.force)
	return r.Code == wire.CodeOK, failed("force the release of", "lock", m.name, err)
}

func (m *FairMutex) run(ctx context.Context, s wire.Script) (wire.Reply, error) {
	return m.client.runOn(ctx, wire.Call{Script: s, Keys: fairKeys(claim{key: m.key})}, 0)
}
