package lock

import (
	"context"
	"errors"
	"time"
)

// ErrUpgrade says that who wants to write holds the lock for reading, and would
// wait for itself for ever.
var ErrUpgrade = errors.New("the owner holds the lock for reading; release that before you write")

// RW is a lock that many hold for reading or one owner holds for writing.
// Several goroutines may use it.
//
// An owner may take again what it has, and may read while it writes: when it
// has then given back the write hold, it goes on reading, and others may join
// it. It may not write while it reads ([ErrUpgrade]).
//
// Each hold has a lease of its own. When that of one reader runs out, the other
// readers keep the lock, and a writer waits only for them. A writer has a
// fencing token of its own; a reader's is that of the last writer (or a new one,
// if none is known), so that a resource can refuse a reader that has outlived
// its hold.
//
// A lock named orders is the key orders, a hash:
//
//	mode       read or write
//	writer     who holds it for writing
//	writes     how many holds the writer has
//	reads      how many holds all readers have
//	r:<owner>  how many holds for reading this owner has
//	token      fencing number of the last writer who had it since it was free
//	h:<hold>   r or w, a blank, and the owner; one field for each hold
//
// Beside it:
//
//	{orders}:leases        sorted set of the holds, by the time in ms at which they end
//	{orders}:intents       sorted set of the writers that keep readers away, by the time at which they are presumed dead
//	{orders}:token         the last fencing number, as of a mutex
//	{orders}:tombstone:<hold>  short-lived: this hold was given back, and what the answer was
//	{orders}:read, {orders}:write  the channels on which readers and writers are told
//
// A mutex of the same name is refused with [ErrForeign], and the other way round.
type RW struct {
	client *Client
	name   string
	prefer bool
}

// RW is the readers-writer lock of that name. It costs nothing and needs no
// closing. On a client of several masters its methods return [ErrOneMaster].
func (c *Client) RW(name string) *RW { return &RW{client: c, name: name} }

// PreferWriters is the same lock, but a writer that waits through it keeps new
// readers away, whoever they are; readers that have the lock may take it again.
// Without it, readers that overlap for ever starve a writer. If such a writer
// dies, it keeps readers away for three heartbeats (three times PollMax, at
// most 6 s).
func (l *RW) PreferWriters() *RW { return &RW{client: l.client, name: l.name, prefer: true} }

// Read is the side of the readers.
func (l *RW) Read() *RWSide { return &RWSide{l, false} }

// Write is the side of the writers.
func (l *RW) Write() *RWSide { return &RWSide{l, true} }

// RWSide takes a [RW] for reading or for writing. Several goroutines may use it.
type RWSide struct {
	lock  *RW
	write bool
}

// Acquire waits for the lock until ctx ends. Errors are those of
// [Mutex.Acquire], and [ErrUpgrade].
func (s *RWSide) Acquire(ctx context.Context, o AcquireOptions) (*Hold, error) {
	a, err := s.attempt(ctx, o)
	if err != nil {
		return nil, wrapErr("acquire", s.lock.name, err)
	}
	in := inline{channel: readChannel(s.lock.name), wake: s.lock.client.o.PollMax}
	if s.write {
		in.channel = writeChannel(s.lock.name)
	}
	if s.write && s.lock.prefer {
		a.claim.waiterTTL, in.wake = s.lock.client.waiterTTL(), s.lock.client.heartbeat()
	}
	h, err := a.stand(ctx, in)
	return h, wrapErr("acquire", s.lock.name, err)
}

// TryAcquire takes the lock if it can be had now.
func (s *RWSide) TryAcquire(ctx context.Context, o AcquireOptions) (*Hold, error) {
	a, err := s.attempt(ctx, o)
	if err != nil {
		return nil, wrapErr("try", s.lock.name, err)
	}
	h, err := a.now(ctx)
	return h, wrapErr("try", s.lock.name, err)
}

func (s *RWSide) attempt(ctx context.Context, o AcquireOptions) (*attempt, error) {
	c := s.lock.client
	via := c.readers
	if s.write {
		via = c.writers
	}
	return c.attemptOf(ctx, s.lock.name, via, o)
}

func readChannel(name string) string  { return tagged(name, "read") }
func writeChannel(name string) string { return tagged(name, "write") }

// rwStore keeps one side of readers-writer locks on one master.
type rwStore struct {
	node         *node
	scripts      *rwScripts
	tombstoneTTL int64  // milliseconds
	kind         string // r or w
}

var _ store = (*rwStore)(nil)

func (s *rwStore) acquire(ctx context.Context, c claim) (grant, error) {
	sent := time.Now()
	value, err := s.node.take(ctx, call{
		script: s.scripts.acquire,
		keys:   rwKeys(c),
		args:   []any{c.owner, c.id, c.lease, s.kind, c.waiterTTL, yesNo(c.nonReentrant)},
	})
	if err != nil {
		return grant{}, err
	}
	return granted(value, sent)
}

func (s *rwStore) release(ctx context.Context, c claim) (int, error) {
	value, err := s.node.do(ctx, call{
		script: s.scripts.release,
		keys:   rwKeys(c),
		args:   []any{c.id, c.owner, s.tombstoneTTL},
	})
	if err != nil {
		return 0, err
	}
	return left(value)
}

func (s *rwStore) renewTogether(ctx context.Context, claims []claim) []renewal {
	c := call{script: s.scripts.renew}
	for _, cl := range claims {
		c.keys = append(c.keys, cl.name, leasesKey(cl))
		c.args = append(c.args, cl.id, cl.lease)
	}
	sent := time.Now()
	value, err := s.node.do(ctx, c)
	var kept []int64
	if err == nil {
		kept, err = integers(value, len(claims))
	}
	out := make([]renewal, len(claims))
	for i := range out {
		out[i] = renewal{sent: sent, err: err, kept: err == nil && kept[i] == 1}
	}
	return out
}

func leasesKey(c claim) string { return tagged(c.name, "leases") }

// rwKeys are in the order of rw_state.lua.
func rwKeys(c claim) []string {
	return []string{
		c.name, leasesKey(c), tagged(c.name, "intents"), c.tombstoneKey(), c.tokenKey(),
		readChannel(c.name), writeChannel(c.name),
	}
}
