package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Locker is a mutex for code that wants a [sync.Locker]. That interface knows neither
// errors nor loss, so use [Mutex.Acquire] where possible. Several goroutines may use
// it: each Lock is an owner of its own, so it excludes them too.
type Locker struct {
	mutex *Mutex
	ctx   context.Context
	opts  []Option

	mu   sync.Mutex
	hold *Hold // nil: not locked
	err  error
}

var _ sync.Locker = (*Locker)(nil)

// Locker is the lock as a [sync.Locker]. Its Lock waits until ctx ends.
func (m *Mutex) Locker(ctx context.Context, opts ...Option) *Locker {
	return &Locker{mutex: m, ctx: ctx, opts: opts}
}

// options make each Lock an owner of its own.
func (l *Locker) options() Option {
	return func(s *settings) {
		for _, o := range l.opts {
			o(s)
		}
		s.owner = l.mutex.client.newOwner()
	}
}

// Lock waits for the lock. It panics with the error of the acquire: ctx has ended, the
// client was closed, or the arguments are wrong.
func (l *Locker) Lock() {
	h, err := l.mutex.Acquire(l.ctx, l.options())
	if err != nil {
		panic(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = h
}

// TryLock takes the lock if it is free and reports whether it did. It does not panic: an error is returned by Err.
func (l *Locker) TryLock() bool {
	h, err := l.mutex.TryAcquire(l.ctx, l.options())
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if !errors.Is(err, ErrHeld) {
			l.err = err
		}
		return false
	}
	l.hold = h
	return true
}

// Unlock releases the lock. Like a [sync.Mutex] it panics if it is not locked. The error
// of the release, as of a lost hold, is returned by Err.
func (l *Locker) Unlock() {
	l.mu.Lock()
	h := l.hold
	l.hold = nil
	l.mu.Unlock()
	if h == nil {
		panic(fmt.Sprintf("unlock of lock %q, which is not locked", l.mutex.name))
	}
	err := h.Release(l.ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// Hold is the hold of the last Lock or TryLock; nil: it is not locked.
func (l *Locker) Hold() *Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold
}

// Err is the error of the last Unlock, or of a TryLock after it.
func (l *Locker) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
