// Package database has the common parts of the locks in SQL databases: locks of sessions, each of which has one hold,
// and locks that are rows of a table. It knows no database. Read [Sessions] and [Table] first.
package database

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
)

// Session is a session for one hold.
type Session interface {
	// Acquire acquires the lock; the wait began at that time, and the server ends it. The error wraps [lock.ErrHeld] if
	// the lock is held, and [native.ErrNoSession] if it was not requested.
	Acquire(ctx context.Context, a client.Acquire, began time.Time) error
	// Release releases it. The error wraps [client.ErrNotHeld] if the server says that this session does not have it.
	Release(ctx context.Context, h client.Hold) error
	// End ends the session, and with it the hold.
	End() error
}

// Sessions is a [client.Locker] with a session for each hold.
type Sessions struct {
	// Begin begins a session with the name of an owner. Its error wraps [native.ErrNoSession].
	Begin func(ctx context.Context, owner string) (Session, error)

	mu     sync.Mutex
	holds  map[native.HoldID]Session
	closed bool
}

// Acquire begins a session and acquires the lock in it.
func (l *Sessions) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	began := time.Now()
	s, err := l.Begin(context.WithoutCancel(ctx), a.Owner) // the end of the wait does not end this
	if err != nil {
		return client.Grant{}, err
	}
	// the server ends the wait; this context ends it only if the server does not
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.Wait+native.RequestTimeout)
	defer cancel()
	if err := s.Acquire(ctx, a, began); err != nil {
		_ = s.End()
		return client.Grant{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = s.End()
		return client.Grant{}, native.ErrNoSession
	}
	id := native.IDOf(a.Hold())
	if former := l.holds[id]; former != nil { // the server ended its session
		_ = former.End()
	}
	if l.holds == nil {
		l.holds = map[native.HoldID]Session{}
	}
	l.holds[id] = s
	return client.Grant{}, nil
}

// Renew fails: there are no leases.
func (*Sessions) Renew(context.Context, client.Hold, time.Duration) (client.Grant, error) {
	return client.Grant{}, client.ErrNotHeld
}

// Release releases the lock and ends its session.
func (l *Sessions) Release(ctx context.Context, h client.Hold) (int, error) {
	l.mu.Lock()
	s := l.holds[native.IDOf(h)]
	delete(l.holds, native.IDOf(h))
	l.mu.Unlock()
	if s == nil {
		return 0, client.ErrNotHeld
	}
	defer func() { _ = s.End() }()
	ctx, cancel := context.WithTimeout(ctx, native.RequestTimeout)
	defer cancel()
	return 0, s.Release(ctx, h)
}

// Close ends all sessions, and so their holds.
func (l *Sessions) Close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var errs []error
	for id, s := range l.holds { // in any order: they are independent
		errs = append(errs, s.End())
		delete(l.holds, id)
	}
	return errors.Join(errs...)
}
