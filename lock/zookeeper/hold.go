package zookeeper

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// Hold is the possession of a lock, from Acquire until Release. Several goroutines may use it.
type Hold struct {
	core  *sessions.Hold
	queue *queue
	claim *claim
	owner string
	token int64
}

func newHold(ctx context.Context, q *queue, c *claim, owner string, token int64) *Hold {
	h := &Hold{queue: q, claim: c, owner: owner, token: token}
	o := &q.client.o
	h.core = sessions.NewHold(ctx, c.session.Session, sessions.Notify(o.OnLost, h), sessions.Notify(o.OnRenewed, h))
	return h
}

// Context is a child of the context that was given to Acquire, which also ends when the hold does; context.Cause is
// then [lock.ErrLost], [lock.ErrReleased] or [lock.ErrClosed].
func (h *Hold) Context() context.Context { return h.core.Context() }

// Done is closed when the hold ends; Err says why.
func (h *Hold) Done() <-chan struct{} { return h.core.Done() }

// Err is why the hold has ended: [lock.ErrLost], [lock.ErrReleased] or [lock.ErrClosed]; nil while it lasts.
func (h *Hold) Err() error { return h.core.Err() }

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
func (h *Hold) Deadline() time.Time { return h.core.Deadline() }

// Release releases the hold. It works with a context that has ended, and takes no longer than Options.Timeout. Its
// error is [lock.ErrLost] if the hold had ended before, [lock.ErrReleased] or [lock.ErrClosed] if that was the reason,
// and [lock.ErrUnknown] if no server answered: it asks on in the background until one does, or the session ends.
func (h *Hold) Release(ctx context.Context) error {
	if err := h.core.Release(ctx, h.claim.release); err != nil {
		return fmt.Errorf("release lock %q: %w", h.Name(), err)
	}
	return nil
}
