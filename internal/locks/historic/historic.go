// Package historic has the locks of the articles about distributed locks, from SETNX alone to RedLock without a
// check of the clock, each as it was published and with its known flaw. They exist to be broken: by the tests of
// this package, and by chaos run --lock NAME. Programs that need a lock use package lock. Its Go API is not a promise.
//
// Read [Catalog] first: it names every lock, its flaw and its source.
package historic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Errors of every lock here, for errors.Is. After any other error, which comes from the server or the network,
// the outcome of the operation is unknown: none of these locks resolves it, a flaw that all of them share.
var (
	// ErrHeld means that another owner holds the lock.
	ErrHeld = errors.New("lock is held by another owner")
	// ErrNotOwner means that the owner does not hold the lock, or no longer holds it.
	ErrNotOwner = errors.New("lock is not held by this owner")
)

// Lock is one of the locks. Its methods may be called concurrently.
type Lock interface {
	// TryAcquire acquires the lock for owner, a unique id, if it is free. A lock with leases expires after
	// lease; 0 is 30 s. The error is [ErrHeld] if it is held.
	TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error
	// Release releases the lock, or one that it believes to be its own.
	Release(ctx context.Context, name, owner string) error
	// Close stops its background work. It does not close the connections.
	Close()
}

// acquirer is a lock with a wait loop of its own.
type acquirer interface {
	acquire(ctx context.Context, name, owner string, lease time.Duration) (requested time.Time, err error)
}

// Config configures a lock.
type Config struct {
	// Masters are the servers: one, or an odd number of independent ones for a [Row] with Quorum. They are not closed.
	// Their MaxRetries decide whether a command is sent again, as in the programs that the articles describe.
	Masters []redis.UniversalClient
	// Now is the clock of this client, for locks that use it. Nil is time.Now.
	Now func() time.Time
	// Rand is the source of the pauses between attempts. Nil is the runtime's. It is not used concurrently.
	Rand rand.Source
	// First is the index of the master that this client asks first, for a [Row] with Ordered.
	First int

	jitter *jitter // set by Open
}

// Row is a row of the catalog.
type Row struct {
	Name      string
	Flaw      string // one sentence: how it breaks
	Source    string // who published it, or who found the flaw
	Quorum    bool   // runs on several independent masters
	Retries   bool   // meant for connections that send a command again
	Reentrant bool   // its owner may acquire it again
	NoLease   bool   // never expires
	Ordered   bool   // each client may begin with another master
	// LeaseFromReply means that the lock counts its lease from the last reply of an acquire, not from the request.
	LeaseFromReply bool

	open func(Config) Lock
}

// Catalog returns every lock, in the historical order.
func Catalog() []Row {
	return []Row{
		setnxRow, setnxExpireRow, setnxDelUncheckedRow, setnxDelRow, setnxGetsetUncheckedRow, setnxGetsetRow,
		watchMultiUnwatchedRow, watchMultiRow, setNxExRow, setNxPxRow, redissonOldUnlockRow, redissonRow,
		redissonRedlockRow, redlockFixedRetryRow,
	}
}

// Lookup returns the row of that name.
func Lookup(name string) (Row, error) {
	for _, row := range Catalog() {
		if row.Name == name {
			return row, nil
		}
	}
	return Row{}, fmt.Errorf("unknown historic lock %q", name)
}

// Open makes the lock. The caller must close it.
func (r Row) Open(c Config) (Lock, error) {
	switch n := len(c.Masters); {
	case !r.Quorum && n != 1:
		return nil, fmt.Errorf("historic lock %s: expected 1 master, got %d", r.Name, n)
	case r.Quorum && (n < 3 || n%2 == 0):
		return nil, fmt.Errorf("historic lock %s: expected an odd number of masters from 3, got %d", r.Name, n)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.jitter = &jitter{source: c.Rand}
	l := r.open(c)
	if _, ok := l.(acquirer); !ok {
		l = polling{l, c.jitter}
	}
	return l, nil
}

// polling is a lock that waits by retrying.
type polling struct {
	Lock
	jitter *jitter
}

func (l polling) acquire(
	ctx context.Context, name, owner string, lease time.Duration,
) (requested time.Time, err error) {
	return retry(ctx, isHeld, l.jitter.next, func() error { return l.TryAcquire(ctx, name, owner, lease) })
}

// retry calls try until it does not fail in a way that may pass, or ctx ends. It returns the time of the last call.
func retry(
	ctx context.Context, passes func(error) bool, pause func() time.Duration, try func() error,
) (last time.Time, err error) {
	for {
		last = time.Now()
		if err = try(); !passes(err) || !sleep(ctx, pause()) {
			return last, err
		}
	}
}

func isHeld(err error) bool { return errors.Is(err, ErrHeld) }

// jitter draws the pauses between attempts. It may be used concurrently.
type jitter struct {
	mu     sync.Mutex
	source rand.Source // nil: the runtime's
}

// next is from 5 to 50 ms, in whole milliseconds: the simulation separates clients by
// the instants within a millisecond.
func (j *jitter) next() time.Duration {
	const shortest, longest = 5, 50
	if j.source == nil {
		return time.Duration(shortest+rand.IntN(longest-shortest+1)) * time.Millisecond
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Duration(shortest+rand.New(j.source).IntN(longest-shortest+1)) * time.Millisecond
}

// Acquire retries until the lock is granted or ctx ends, after random pauses of up to 50 ms; Redisson's
// locks wait as they did. It returns the time of the last attempt and its error.
func Acquire(
	ctx context.Context, l Lock, name, owner string, lease time.Duration,
) (requested time.Time, err error) {
	if a, ok := l.(acquirer); ok {
		return a.acquire(ctx, name, owner, lease)
	}
	return polling{l, &jitter{}}.acquire(ctx, name, owner, lease)
}

// sleep waits for d and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// DefaultLease is the lease of an acquire without one.
const DefaultLease = 30 * time.Second

func orDefault(lease time.Duration) time.Duration {
	if lease == 0 {
		return DefaultLease
	}
	return lease
}

// plain is a lock without background work that is released by DEL, without a check of its owner.
type plain struct{ rdb redis.UniversalClient }

// Release deletes the key.
func (p plain) Release(ctx context.Context, name, _ string) error { return p.rdb.Del(ctx, name).Err() }

// Close does nothing.
func (plain) Close() {}

// granted turns the reply of a command that may set the key into an error.
func granted(ok bool, err error) error {
	if err == nil && !ok {
		return ErrHeld
	}
	return err
}
