package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/lock"
)

// Hold is the possession of a lock, from Acquire until Release. Several goroutines may use it.
type Hold struct {
	mutex  *Mutex
	entry  *entry
	owner  string
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}

	mu  sync.Mutex
	why error // it has ended; nil: it lasts
}

func newHold(ctx context.Context, m *Mutex, e *entry, owner string) *Hold {
	h := &Hold{mutex: m, entry: e, owner: owner, done: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	return h
}

// Context is a child of the context that was given to Acquire, which also ends when the hold does; context.Cause is
// then [lock.ErrLost], [lock.ErrReleased] or [lock.ErrClosed].
func (h *Hold) Context() context.Context { return h.ctx }

// Done is closed when the hold ends; Err says why.
func (h *Hold) Done() <-chan struct{} { return h.done }

// Err is why the hold has ended: [lock.ErrLost], [lock.ErrReleased] or [lock.ErrClosed]; nil while it lasts.
func (h *Hold) Err() error {
	h.mu.Lock()
	why := h.why
	h.mu.Unlock()
	if why == nil && time.Until(h.Deadline()) <= 0 { // before the timer has noticed, as after a pause of the process
		h.entry.session.end(lock.ErrLost)
		return lock.ErrLost
	}
	return why
}

// Name is the name of the lock.
func (h *Hold) Name() string { return h.mutex.name }

// Owner is what was given to Acquire.
func (h *Hold) Owner() string { return h.owner }

// Token is the fencing token: the create revision of the key, greater than that of every grant before, and never 0. It
// decreases only if a majority of the members loses its disks, or the cluster is restored from a backup.
func (h *Hold) Token() int64 { return h.entry.revision }

// Deadline is until when the hold is valid, on the monotonic clock. Every keepalive that counts makes it later, and
// one is sent in every third of the lease.
func (h *Hold) Deadline() time.Time { return h.entry.session.deadline() }

// endBy ends the hold; false: it had ended.
func (h *Hold) endBy(why error) bool {
	h.mu.Lock()
	if h.why != nil {
		h.mu.Unlock()
		return false
	}
	h.why = why
	h.mu.Unlock()
	h.cancel(why)
	close(h.done)
	if lost := h.mutex.client.o.OnLost; lost != nil && why == lock.ErrLost { //nolint:errorlint // it is not wrapped
		lost(h)
	}
	return true
}

// Release releases the hold. It works with a context that has ended, and takes no longer than Options.Timeout. Its
// error is [lock.ErrLost] if the hold had ended before, [lock.ErrReleased] or [lock.ErrClosed] if that was the reason,
// and [lock.ErrUnknown] if no server answered: it asks on in the background until one does, or the lease ends.
func (h *Hold) Release(ctx context.Context) error {
	if err := h.release(ctx); err != nil {
		return fmt.Errorf("release lock %q: %w", h.mutex.name, err)
	}
	return nil
}

func (h *Hold) release(ctx context.Context) error {
	if err := h.Err(); err != nil {
		return err
	}
	if !h.endBy(lock.ErrReleased) {
		return h.Err()
	}
	c := h.mutex.client
	h.entry.session.remove(h)
	type outcome struct {
		was bool
		err error
	}
	answer := make(chan outcome, 1)
	c.tasks.Go(func() {
		was, err := h.entry.remove(context.WithoutCancel(ctx))
		answer <- outcome{was, err}
	})
	timer := time.NewTimer(c.o.Timeout)
	defer timer.Stop()
	select {
	case r := <-answer:
		switch {
		case r.err == nil && r.was:
			return nil
		case r.err == nil: // the key was not there
			return lock.ErrLost
		}
		return fmt.Errorf("%w: %w", lock.ErrUnknown, r.err)
	case <-timer.C:
		return fmt.Errorf("%w: no member has answered for %v", lock.ErrUnknown, c.o.Timeout)
	}
}
