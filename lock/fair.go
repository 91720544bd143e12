package lock

import (
	"context"
	_ "embed" // the scripts are part of the program
	"time"
)

// FairMutex is a [Mutex] that goes to those who wait in the order in which they
// came, by the clock of the server. Several goroutines may use it.
//
// A release hands the lock over to the first who waits, inside the server, so
// that nobody gets in between; he is told, and fetches it. Who waits says every
// PollMax, and at least every 2 s, that he lives. After three times as long
// without a word he is skipped, whether he was waiting or was granted the lock
// already. TryAcquire takes no place in the queue and overtakes nobody.
//
// The hash is that of a mutex (see the package), so that a mutex and a fair
// mutex of one name exclude each other, but only all who use the fair one keep
// the order. Beside it, for a lock named orders:
//
//	granted           in the hash: the hold which was granted the lock and has not fetched it yet
//	{orders}:queue    list of who waits, each a hold, a blank and the owner; the first in the line is the head
//	{orders}:waiters  sorted set of the same, by the time in ms at which they are presumed dead
//	{orders}:grant    the channel on which a hold is told that it was granted the lock
//
// The queue's keys last three heartbeats longer than the last who waits.
type FairMutex struct {
	client *Client
	name   string
}

// FairMutex is the fair lock of that name. It costs nothing and needs no
// closing. On a client of several masters its methods return [ErrOneMaster].
func (c *Client) FairMutex(name string) *FairMutex { return &FairMutex{client: c, name: name} }

// Acquire waits for its turn until ctx ends; then it gives its place up, or the
// lock, had it just been granted. Errors are those of [Mutex.Acquire]. Of
// [ErrUnknown] remains a place that is skipped after three heartbeats.
func (m *FairMutex) Acquire(ctx context.Context, o AcquireOptions) (*Hold, error) {
	a, err := m.attempt(ctx, o)
	if err != nil {
		return nil, wrapErr("acquire", m.name, err)
	}
	a.claim.waiterTTL = m.client.waiterTTL()
	h, err := a.stand(ctx, inline{grantChannel(m.name), true, m.client.heartbeat()})
	return h, wrapErr("acquire", m.name, err)
}

// TryAcquire takes the lock if it is free and nobody waits for it.
func (m *FairMutex) TryAcquire(ctx context.Context, o AcquireOptions) (*Hold, error) {
	a, err := m.attempt(ctx, o)
	if err != nil {
		return nil, wrapErr("try", m.name, err)
	}
	h, err := a.now(ctx)
	return h, wrapErr("try", m.name, err)
}

func (m *FairMutex) attempt(ctx context.Context, o AcquireOptions) (*attempt, error) {
	return m.client.attemptOf(ctx, m.name, m.client.fair, o)
}

//go:embed script/fair_queue.lua
var fairQueueSource string

//go:embed script/fair_acquire.lua
var fairAcquireSource string

//go:embed script/fair_release.lua
var fairReleaseSource string

// fairStore keeps fair mutexes on one master. A hold is renewed as that of a mutex is.
type fairStore struct {
	*single
	take, give script
}

var _ store = (*fairStore)(nil)

func newFairStore(s *single) *fairStore {
	shared := mintSource + fairQueueSource
	return &fairStore{s, newScript(shared + fairAcquireSource), newScript(shared + fairReleaseSource)}
}

func (s *fairStore) acquire(ctx context.Context, c claim) (grant, error) {
	sent := time.Now()
	value, err := s.node.take(ctx, call{
		script: s.take,
		keys:   fairKeys(c),
		args:   []any{c.owner, c.id, c.lease, c.waiterTTL, yesNo(c.nonReentrant)},
	})
	if err != nil {
		return grant{}, err
	}
	return granted(value, sent)
}

func (s *fairStore) release(ctx context.Context, c claim) (int, error) {
	value, err := s.node.do(ctx, call{
		script: s.give,
		keys:   fairKeys(c),
		args:   []any{c.id, c.owner, s.tombstoneTTL},
	})
	if err != nil {
		return 0, err
	}
	return left(value)
}

// fairKeys are in the order of fair_queue.lua.
func fairKeys(c claim) []string {
	return []string{
		c.name, c.tombstoneKey(), tagged(c.name, "queue"), tagged(c.name, "waiters"), c.tokenKey(), grantChannel(c.name),
	}
}

func grantChannel(name string) string { return tagged(name, "grant") }
