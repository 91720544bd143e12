package zookeeper

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/lock"
)

// Hold is the possession of a lock, from Acquire until Release. Several goroutines may use it.
type Hold struct {
	queue  *queue
	claim  *claim
	owner  string
	token  int64
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}

	mu  sync.Mutex
	why error // it has ended; nil: it lasts
}

func newHold(ctx context.Context, q *queue, c *claim, owner string, token int64) *Hold {
	h := &Hold{queue: q, claim: c, owner: owner, token: token, done: make(chan struct{})}
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
		h.claim.session.end(lock.ErrLost)
		return lock.ErrLost
	}
	return why
}

// Name is the name of the lock; of several locks, of the first.
func (h *Hold) Name() string { return h.queue.names[0] }

// Names are the names of all locks of the hold.
func (h *Hold) Names() []string { return slices.Clone(h.queue.names) }

// Owner is what was given to Acquire.
func (h *Hold) Owner() string { return h.owner }

// Token is the fencing token: the czxid of the node, and never 0; one for all locks of the hold. It is greater than
// that of every earlier hold that excludes this one. It goes back only if a majority of the servers loses its disks.
func (h *Hold) Token() int64 { return h.token }

// Deadline is until when the hold is valid, on the monotonic clock. Every request that a server answers makes it later,
// and one is sent in every third of the session timeout.
func (h *Hold) Deadline() time.Time { return h.claim.session.deadline() }

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
	if lost := h.queue.client.o.OnLost; lost != nil && why == lock.ErrLost { //nolint:errorlint // it is not wrapped
		lost(h)
	}
	return true
}

// Release releases the hold. It works with a context that has ended, and takes no longer than Options.Timeout. Its
// error is [lock.ErrLost] if the hold had ended before, [lock.ErrReleased] or [lock.ErrClosed] if that was the reason,
// and [lock.ErrUnknown] if no server answered: it asks on in the background until one does, or the session ends.
func (h *Hold) Release(ctx context.Context) error {
	if err := h.release(ctx); err != nil {
		return fmt.Errorf("release lock %q: %w", h.Name(), err)
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
	c := h.queue.client
	h.claim.session.remove(h)
	type outcome = result[bool]
	answer := make(chan outcome, 1)
	c.tasks.Go(func() {
		was, err := h.claim.remove(context.WithoutCancel(ctx))
		answer <- outcome{was, err}
	})
	timer := time.NewTimer(c.o.Timeout)
	defer timer.Stop()
	select {
	case r := <-answer:
		switch {
		case r.err == nil && r.value:
			return nil
		case r.err == nil: // the node was not there
			return lock.ErrLost
		}
		return fmt.Errorf("%w: %w", lock.ErrUnknown, r.err)
	case <-timer.C:
		return fmt.Errorf("%w: no server has answered for %v", lock.ErrUnknown, c.o.Timeout)
	}
}
