package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
)

// Action is the effect of a statement on the row of a hold.
type Action string

// The actions on a row.
const (
	Acquire Action = "acquire"
	Renew   Action = "renew"
	Release Action = "release"
)

// Row is a row of the table of locks, as a statement needs it.
type Row struct {
	Name, Owner string
	Lease       time.Duration // from now; 0: none
	Now         time.Time     // by the client's clock
}

// RowSession is a session that executes statements about rows, one at a time.
type RowSession interface {
	// Ping returns an error if the session has ended.
	Ping(ctx context.Context) error
	// Execute returns the token of the row, 0: it has none. The error wraps [ErrNoEffect] if no row was changed.
	Execute(ctx context.Context, do Action, row Row) (token uint64, err error)
	// End ends the session, and no hold.
	End() error
}

// ErrNoEffect is the error of a statement that changed nothing.
var ErrNoEffect = errors.New("no effect")

// Table is a [client.Locker] whose holds are rows. It has one session, which it begins again after an error.
type Table struct {
	Begin  func(ctx context.Context) (RowSession, error) // the error wraps [native.ErrNoSession]
	Unsent func(err error) bool                          // reports whether a statement that failed was not sent
	Leased bool                                          // holds have leases
	Now    func() time.Time                              // the client's clock

	mu      sync.Mutex // held for one statement at a time, and while a session begins
	session RowSession // nil before the first request
	random  *rand.Rand
	leases  map[native.HoldID]time.Duration // of the holds that were granted and not released
}

// Prepare sets the clock and the random pauses of a client. It is called before all other methods.
func (l *Table) Prepare(s client.Setup) (err error) {
	l.random = rand.New(rand.NewPCG(s.Seed, 3))
	l.leases = map[native.HoldID]time.Duration{}
	l.Now, err = native.ClockOf(s.Options, s.Seed)
	return err
}

// defaultLease is the lease of a request without one.
const defaultLease = 30 * time.Second

// run executes a statement about the row of a hold. It sends it again, in a new session, if the old one had ended
// before anything was sent.
func (l *Table) run(ctx context.Context, do Action, h client.Hold, lease time.Duration) (client.Grant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, native.RequestTimeout)
	defer cancel()
	g, err := l.send(ctx, do, h, lease)
	if err != nil && l.Unsent(err) {
		g, err = l.send(ctx, do, h, lease)
	}
	return g, err
}

// send executes a statement once. l.mu is held.
func (l *Table) send(ctx context.Context, do Action, h client.Hold, lease time.Duration) (client.Grant, error) {
	if err := l.connect(ctx); err != nil {
		return client.Grant{}, err
	}
	sent := time.Now()
	token, err := l.session.Execute(ctx, do, Row{h.Key, h.Owner, lease, l.Now()})
	if err != nil {
		return client.Grant{}, err
	}
	g := client.Grant{Token: token}
	if l.Leased {
		g.Deadline = sent.Add(lease)
	}
	return g, nil
}

// connect begins a session if there is none, or if it does not answer, and tries again until ctx ends: the server
// may be starting. l.mu is held.
func (l *Table) connect(ctx context.Context) error {
	if err := ctx.Err(); err != nil { // it says nothing about the session
		return fmt.Errorf("%w: %w", native.ErrNoSession, err)
	}
	if l.session != nil {
		if l.session.Ping(ctx) == nil {
			return nil
		}
		_ = l.session.End()
		l.session = nil
	}
	for {
		s, err := l.Begin(ctx)
		if err == nil {
			l.session = s
			return nil
		}
		select {
		case <-time.After(longest):
		case <-ctx.Done():
			return err
		}
	}
}

// Pauses before another attempt.
const (
	shortest = 5 * time.Millisecond
	longest  = 50 * time.Millisecond
)

// Acquire tries until the lock is free, with random pauses.
func (l *Table) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	lease := cmp.Or(a.Lease, defaultLease)
	for {
		g, err := l.run(context.WithoutCancel(ctx), Acquire, a.Hold(), lease)
		if !errors.Is(err, ErrNoEffect) {
			if err == nil {
				l.remember(a.Hold(), lease)
			}
			return g, err
		}
		if a.Wait == 0 || !l.pause(ctx) {
			return g, lock.ErrHeld
		}
	}
}

// pause waits from 5 to 50 ms and reports whether ctx has not ended.
func (l *Table) pause(ctx context.Context) bool {
	l.mu.Lock()
	t := time.NewTimer(shortest + time.Duration(l.random.Int64N(int64(longest-shortest))))
	l.mu.Unlock()
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// remember keeps the lease of a hold.
func (l *Table) remember(h client.Hold, lease time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases[native.IDOf(h)] = lease
}

// forget forgets the lease of a hold that has ended.
func (l *Table) forget(h client.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leases, native.IDOf(h))
}

// leaseOf is the lease of a hold; 0: it is not known.
func (l *Table) leaseOf(h client.Hold) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases[native.IDOf(h)]
}

// Renew extends the lease.
func (l *Table) Renew(ctx context.Context, h client.Hold, lease time.Duration) (client.Grant, error) {
	lease = cmp.Or(lease, l.leaseOf(h))
	if lease == 0 || !l.Leased {
		return client.Grant{}, client.ErrNotHeld
	}
	g, err := l.run(ctx, Renew, h, lease)
	if errors.Is(err, ErrNoEffect) {
		return g, client.ErrNotHeld
	}
	return g, err
}

// Release releases the lock.
func (l *Table) Release(ctx context.Context, h client.Hold) (int, error) {
	_, err := l.run(ctx, Release, h, 0)
	if errors.Is(err, ErrNoEffect) {
		err = client.ErrNotHeld
	}
	if err == nil || errors.Is(err, client.ErrNotHeld) {
		l.forget(h)
	}
	return 0, err
}

// Close ends the session, and no hold.
func (l *Table) Close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == nil {
		return nil
	}
	return l.session.End()
}
