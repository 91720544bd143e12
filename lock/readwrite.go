package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// ErrUpgrade says that an owner that requests the lock for writing holds it for reading: it would wait for itself
// forever.
var ErrUpgrade = errors.New("the owner holds the lock for reading; release that before you write")

// RW is a lock that many owners can hold for reading, or one for writing. Several goroutines may use it.
//
// With [WithReentry], an owner may acquire the lock again in the mode that it holds, and may read while it writes.
// After it has released the write hold, it still has the read hold, and others may read as well. Acquire such a read
// hold with the owner of the write hold ([WithOwner]): the context of the write hold would end with that hold. An owner
// may not write while it reads ([ErrUpgrade]).
//
// Each hold has a separate lease. When the lease of one reader expires, the other readers keep the lock, and a writer
// waits only for them. A writer has its own fencing token; a reader has the token of the last writer (or a new one, if
// none is known), so a resource can refuse a reader that has outlived its hold.
//
// A lock named orders is the key orders, a hash:
//
//	mode       read or write
//	writer     the owner that holds it for writing
//	writes     how many holds the writer has
//	reads      how many holds all readers have
//	r:<owner>  how many holds for reading this owner has
//	token      fencing token of the last writer that had it since it was free
//	h:<hold>   r or w, a blank, and the owner; one field for each hold
//	           and, while the slot of a cluster migrates, deadlines of holds and replies to releases (m:, moved, adopted,
//	           left:)
//
// Beside it:
//
//	{orders}:leases            sorted set of the holds, by the time in ms at which they expire
//	{orders}:intents           sorted set of the writers that keep readers out, by the time in ms at which they expire
//	{orders}:token             the last fencing token, as of a mutex
//	{orders}:tombstone:<hold>  short-lived: the reply to the release of this hold
//	{orders}:read, {orders}:write  the channels that wake readers and writers
//
// A mutex of the same name is refused with [ErrForeign], and the other way round.
type RW struct {
	named
	prefer bool
}

// RW is the readers-writer lock of that name. It sends no request and needs no closing. On a client of several masters
// its methods return [ErrOneMaster].
func (c *Client) RW(name string, opts ...Option) *RW {
	return &RW{named: c.named(name, opts)}
}

// PreferWriters returns the same lock, except that a writer that waits through it keeps all new readers out; readers
// that hold the lock may re-enter it. Otherwise, overlapping readers can starve a writer. If such a writer dies while
// it waits, it keeps readers out for three heartbeats (three times PollMax, at most 6 s).
func (l *RW) PreferWriters() *RW { return &RW{l.named, true} }

// Read is the side of the readers.
func (l *RW) Read() *RWSide { return &RWSide{l, false} }

// Write is the side of the writers.
func (l *RW) Write() *RWSide { return &RWSide{l, true} }

// RWSide takes a [RW] for reading or for writing. Several goroutines may use it.
type RWSide struct {
	lock  *RW
	write bool
}

// Name is the name that the lock was made with.
func (s *RWSide) Name() string { return s.lock.name }

// Acquire waits for the lock until ctx ends. Errors are as of [Mutex.Acquire], and [ErrUpgrade].
func (s *RWSide) Acquire(ctx context.Context, opts ...Option) (*FencedHold, error) {
	a, err := s.attempt(ctx, opts)
	if err == nil {
		a.mode, a.channel, a.maxSleep, a.shared = ordered, readChannel(s.lock.key), s.lock.client.o.PollMax, !s.write
		if s.write {
			a.channel = writeChannel(s.lock.key)
		}
		if s.write && s.lock.prefer {
			a.queueAtServer()
		}
	}
	return acquireHold(ctx, s.lock.name, true, a, err)
}

// TryAcquire takes the lock if that is possible now.
func (s *RWSide) TryAcquire(ctx context.Context, opts ...Option) (*FencedHold, error) {
	a, err := s.attempt(ctx, opts)
	return acquireHold(ctx, s.lock.name, false, a, err)
}

// Do is like [FencedMutex.Do]; a reader has the token of the last writer.
func (s *RWSide) Do(ctx context.Context, work func(ctx context.Context, token int64) error, opts ...Option) error {
	return doFenced(ctx, s, work, opts)
}

func (s *RWSide) attempt(ctx context.Context, opts []Option) (*attempt, error) {
	l, c := s.lock, s.lock.client
	if err := c.ownKinds(); err != nil {
		return nil, err
	}
	side := c.readers
	if s.write {
		side = c.writers
	}
	return c.attempt(ctx, l.named, side, l.options.with(opts), "a readers-writer lock", rwOptions)
}

func readChannel(name string) string  { return tagged(name, "read") }
func writeChannel(name string) string { return tagged(name, "write") }

// rwStore keeps one side of readers-writer locks on one master.
type rwStore struct {
	node         *node
	tombstoneTTL int64  // milliseconds
	mode         string // r or w
}

var _ store = (*rwStore)(nil)

func (s *rwStore) acquire(ctx context.Context, c claim) (grant, error) {
	g, err := s.node.grant(ctx, wire.Call{
		Script: s.node.kinds.rw.acquire,
		Keys:   rwKeys(c),
		Args:   []any{c.id, c.lease, c.owner, flags(c.nonReentrant, c.notify), s.mode, c.waiterTTL},
	})
	if isMigrating(err) {
		return s.acquireMigrating(ctx, c)
	}
	if err == nil && g.ok && g.token == 0 { // see node.fence
		return s.described(ctx, c, g)
	}
	return g, err
}

func (s *rwStore) release(ctx context.Context, c claim) (int, error) {
	value, err := s.node.Do(ctx, wire.Call{
		Script: s.node.kinds.rw.release, Keys: rwKeys(c), Args: []any{c.id, s.tombstoneTTL, c.owner},
	})
	if isMigrating(err) {
		return s.releaseMigrating(ctx, c)
	}
	return decodeRelease(value, err)
}

func (s *rwStore) kind() string { return "lock" }

func (s *rwStore) renew(ctx context.Context, claims []claim) []renewal {
	return renewAll(ctx, s.node, claims, func(some []claim) wire.Call {
		c := wire.Call{Script: s.node.kinds.rw.renew}
		for _, cl := range some {
			c.Keys = append(c.Keys, cl.key, leasesKey(cl))
			c.Args = append(c.Args, cl.id, cl.lease)
		}
		return c
	}, func(c claim) wire.Call {
		return wire.Call{Script: s.node.kinds.rw.movingRenew, Keys: []string{c.key}, Args: []any{c.id, c.lease}}
	})
}

func leasesKey(c claim) string  { return tagged(c.key, "leases") }
func intentsKey(c claim) string { return tagged(c.key, "intents") }

// rwKeys are in the order of rw_state.lua.
func rwKeys(c claim) []string {
	return []string{
		c.key, c.tombstoneKey(), leasesKey(c), intentsKey(c), c.tokenKey(),
		readChannel(c.key), writeChannel(c.key),
	}
}

// RWState says who holds a [RW], as the server saw it.
type RWState struct {
	Writer  string         // the owner that writes; empty: none
	Writes  int            // its holds
	Readers map[string]int // holds for reading of each owner
	// Intents is how many writers wait and keep readers out.
	Intents int
	// Token is the last fencing token; 0: none is known.
	Token int64
	// Remaining is how long the lock stays held unless it is renewed; 0: it is free.
	Remaining time.Duration
}

// Inspect reports who holds the lock. Errors are [ErrForeign], [ErrOneMaster], and errors of the server or the network.
func (l *RW) Inspect(ctx context.Context) (RWState, error) {
	r, err := l.run(ctx, l.client.kinds().rw.inspect, 3)
	if err != nil {
		return RWState{}, failed("inspect", "lock", l.name, err)
	}
	state := RWState{
		Remaining: time.Duration(r.Int(0)) * time.Millisecond,
		Token:     r.Int(1),
		Intents:   int(r.Int(2)),
		Readers:   make(map[string]int),
	}
	for _, v := range r.List[3:] {
		state.add(fmt.Sprint(v))
	}
	return state, nil
}

// add counts a hold: r or w, a blank, and the owner.
func (s *RWState) add(hold string) {
	if len(hold) < 2 {
		return
	}
	if hold[0] == 'w' {
		s.Writer = hold[2:]
		s.Writes++
		return
	}
	s.Readers[hold[2:]]++
}

// ForceRelease takes the lock from all owners and reports whether it was held. Holders are not notified: they learn of
// it at their next renewal, and may be at work until then. After [ErrUnknown] it may or may not have been done.
func (l *RW) ForceRelease(ctx context.Context) (bool, error) {
	r, err := l.run(ctx, l.client.kinds().rw.force, 0)
	return r.Code == wire.CodeOK, failed("force the release of", "lock", l.name, err)
}

func (l *RW) run(ctx context.Context, s wire.Script, n int) (wire.Reply, error) {
	return l.client.runOn(ctx, wire.Call{Script: s, Keys: rwKeys(claim{key: l.key})}, n)
}
