// Package historic has the locks that the articles about distributed locks tell
// their story with, from SETNX alone to RedLock without its clock, each as it was
// published and each with the flaw that it is known for. They are here to be
// broken: by the tests of this package, and by chaos run --lock NAME. It is not
// for programs that need a lock; they want package lock.
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

// Errors of every lock here, for errors.Is. Any other error is what the server
// or the network said, and then nobody knows whether the operation happened:
// not asking is the flaw that all of these locks share.
var (
	// ErrHeld says that somebody else has the lock.
	ErrHeld = errors.New("somebody else has the lock")
	// ErrNotOwner says that the one who asks does not have the lock (any more).
	ErrNotOwner = errors.New("the lock is not this owner's")
)

// Lock is one of the locks. Several goroutines may use it.
type Lock interface {
	// TryAcquire asks once for the lock on behalf of owner, an id that nobody
	// else has. A lock that knows leases ends after lease; 0 is 30 s. Nil is
	// granted, and [ErrHeld] refused.
	TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error
	// Release gives the lock back, or what it takes for it.
	Release(ctx context.Context, name, owner string) error
	// Close ends what runs in the background. It does not close the connections.
	Close()
}

// waiter is a lock that has a way of its own to wait.
type waiter interface {
	acquire(ctx context.Context, name, owner string, lease time.Duration) (asked time.Time, err error)
}

// Config is what a lock is made from.
type Config struct {
	// Masters are the servers: one, or an odd number of independent ones for a
	// [Row] that says Many. They are not closed. Whether a request is sent again
	// is decided by their MaxRetries, as in the programs that the articles speak of.
	Masters []redis.UniversalClient
	// Now is the clock of this client, for locks that ask it. Nil is time.Now.
	Now func() time.Time
	// Rand draws the pauses of those who wait. Nil draws from the runtime's own source.
	// It is used by one goroutine at a time.
	Rand rand.Source

	dice *dice // made by Open
}

// Row is a row of the catalogue.
type Row struct {
	Name      string
	Flaw      string // one sentence: how it breaks
	Source    string // who published it, or who found the flaw
	Many      bool   // on several independent masters
	Retries   bool   // meant for connections that send a request again
	Reentrant bool   // its owner may take it again
	Endless   bool   // it has no lease
	Late      bool   // its lease is promised from the answer on, not from the question

	open func(Config) Lock
}

// Catalog is every lock, in the order in which the articles tell of them.
func Catalog() []Row {
	return []Row{
		setnxRow, setnxExpireRow, setnxDelRow, setnxGetsetRow, watchMultiRow,
		setNXEXRow, setNXPXRow, redissonRow, redissonRedlockRow,
	}
}

// Lookup finds a row by name.
func Lookup(name string) (Row, error) {
	for _, row := range Catalog() {
		if row.Name == name {
			return row, nil
		}
	}
	return Row{}, fmt.Errorf("find historic lock: none is called %q", name)
}

// Open makes the lock. The caller closes it.
func (r Row) Open(c Config) (Lock, error) {
	switch {
	case len(c.Masters) == 0:
		return nil, fmt.Errorf("open historic lock %s: no server: give one", r.Name)
	case !r.Many && len(c.Masters) > 1:
		return nil, fmt.Errorf("open historic lock %s: %d servers: it lives on one", r.Name, len(c.Masters))
	case r.Many && (len(c.Masters) < 3 || len(c.Masters)%2 == 0):
		return nil, fmt.Errorf("open historic lock %s: %d servers: give an odd number, three or more",
			r.Name, len(c.Masters))
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.dice = &dice{source: c.Rand}
	l := r.open(c)
	if _, ok := l.(waiter); !ok {
		l = polling{l, c.dice}
	}
	return l, nil
}

// polling is a lock whose user asks again and again.
type polling struct {
	Lock
	dice *dice
}

func (l polling) acquire(
	ctx context.Context, name, owner string, lease time.Duration,
) (asked time.Time, err error) {
	for {
		asked = time.Now()
		err = l.TryAcquire(ctx, name, owner, lease)
		if !errors.Is(err, ErrHeld) || !pause(ctx, l.dice.pause()) {
			return asked, err
		}
	}
}

// dice draws pauses, for several goroutines.
type dice struct {
	mu     sync.Mutex
	source rand.Source // nil: the runtime's
}

// pause is from 5 to 50 ms, in whole milliseconds: a simulation keeps those who
// act at instants of their own by it.
func (d *dice) pause() time.Duration {
	const least, most = 5, 50
	if d.source == nil {
		return time.Duration(least+rand.IntN(most-least+1)) * time.Millisecond
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(least+rand.New(d.source).IntN(most-least+1)) * time.Millisecond
}

// Acquire asks for the lock until it is granted or ctx ends, after pauses of
// up to 50 ms drawn by chance; Redisson's locks wait as they did. It says when
// the last question was asked; its error is that of the answer.
func Acquire(
	ctx context.Context, l Lock, name, owner string, lease time.Duration,
) (asked time.Time, err error) {
	if w, ok := l.(waiter); ok {
		return w.acquire(ctx, name, owner, lease)
	}
	return polling{l, &dice{}}.acquire(ctx, name, owner, lease)
}

// pause waits for d and reports whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// DefaultLease is the lease of those who ask for none.
const DefaultLease = 30 * time.Second

func orDefault(lease time.Duration) time.Duration {
	if lease == 0 {
		return DefaultLease
	}
	return lease
}

// idle is for locks that have nothing in the background.
type idle struct{}

// Close does nothing.
func (idle) Close() {}

// granted is the answer of a command that says whether it took the lock.
func granted(ok bool, err error) error {
	if err == nil && !ok {
		return ErrHeld
	}
	return err
}
