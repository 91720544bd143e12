package etcd

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/queues"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// Hold is the possession of a lock, from Acquire until Release. Several goroutines may use it.
type Hold struct {
	core     *sessions.Hold
	queue    *queue
	claim    *claim
	watching context.Context // ends with the hold and with the session
	unwatch  context.CancelFunc
}

func newHold(ctx context.Context, q *queue, c *claim) *Hold {
	h := &Hold{queue: q, claim: c}
	o := &q.client.o
	h.core = sessions.NewHold(
		ctx, c.session.Session, h.event, sessions.Notify(o.OnLost, h), sessions.Notify(o.OnRenewed, h))
	return h
}

// begin makes the hold valid, and watches its keys in a moment, without waiting for that: somebody may delete one while
// the lease lasts.
func (h *Hold) begin() error {
	s := h.claim.session
	h.watching, h.unwatch = context.WithCancel(clientv3.WithRequireLeader(s.Context()))
	if err := h.core.Begin(); err != nil { // from here on, others know the hold
		h.unwatch()
		return err
	}
	for _, e := range h.claim.entries {
		s.Tasks.Go(func() {
			if h.core.AwaitWatch() {
				h.watch(e)
			}
		})
	}
	return nil
}

// watch waits until a key is deleted or the hold ends. A watch that fails is replaced, after a look at the key.
func (h *Hold) watch(e entry) {
	c, etcd := h.claim, h.claim.session.client.etcd
	for from := c.revision + 1; ; {
		for r := range etcd.Watch(h.watching, e.key(), clientv3.WithRev(from), clientv3.WithFilterPut()) {
			if len(r.Events) > 0 {
				h.lose()
				return
			}
		}
		select {
		case <-time.After(retryEvery):
		case <-h.watching.Done():
			return
		}
		reply, err := repeat(h.watching, c.session, func(ctx context.Context, kv clientv3.KV) (*clientv3.GetResponse, error) {
			return kv.Get(ctx, e.key(), clientv3.WithKeysOnly())
		})
		switch {
		case err != nil:
			return
		case len(reply.Kvs) == 0 || reply.Kvs[0].CreateRevision != c.revision:
			h.lose()
			return
		}
		from = reply.Header.Revision + 1
	}
}

// lose ends the hold, one of whose keys was deleted by somebody else, and removes the others. If the lease was revoked,
// it ends the session first, so that the next acquire begins another.
func (h *Hold) lose() {
	if h.watching.Err() != nil { // it has ended
		return
	}
	h.unwatch()
	if s := h.claim.session; s.revoked() {
		s.End(lock.ErrLost)
		return
	}
	if c := h.claim; h.core.Lose() && len(c.entries) > 1 {
		c.session.Remove(func() error { return c.remove(c.session.Context()) })
	}
}

// event is an event of the hold, without its kind.
func (h *Hold) event() lock.Event {
	e := queues.Event(h.Name(), h.Owner(), h.queue.permits)
	e.Token = h.Token()
	return e
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

// Owner is the owner given to Acquire.
func (h *Hold) Owner() string { return h.claim.owner }

// Token is the fencing token: the create revision of the key, and never 0; one for all locks of the hold. It is greater
// than the tokens of all earlier holds that exclude this one. It decreases only if a majority of the members loses its
// disks, or the cluster is restored from a backup.
func (h *Hold) Token() int64 { return h.claim.revision }

// Deadline is until when the hold is valid, on the monotonic clock. Every keepalive that counts makes it later, and
// one is sent in every third of the lease.
func (h *Hold) Deadline() time.Time { return h.core.Deadline() }

// Release releases the hold. It works with a context that has ended, and takes no longer than Options.Timeout. Its
// error is [lock.ErrLost] if the hold had ended before, [lock.ErrReleased] or [lock.ErrClosed] if that was the reason,
// and [lock.ErrUnknown] if no server answered or if the servers refused it: the release is retried in the background
// until one executes it, or until the lease ends.
func (h *Hold) Release(ctx context.Context) error {
	remove := func(ctx context.Context) (bool, error) {
		h.unwatch()
		return h.claim.release(ctx)
	}
	if err := h.core.Release(ctx, remove); err != nil {
		return fmt.Errorf("release lock %q: %w", h.Name(), err)
	}
	return nil
}
