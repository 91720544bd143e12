package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/queues"
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

func newHold(ctx context.Context, q *queue, c *claim, owner string) *Hold {
	h := &Hold{queue: q, claim: c, owner: owner}
	o := &q.client.o
	h.core = sessions.NewHold(
		ctx, c.session.Session, h.event, sessions.Notify(o.OnLost, h), sessions.Notify(o.OnRenewed, h))
	return h
}

// watchFirst reads and watches the first node of the hold, from before it begins: somebody may delete a node while the
// session lasts. The watch costs no request, because the czxid is read anyway.
func (h *Hold) watchFirst() <-chan result[*zk.Stat] {
	c := h.claim
	c.session.hold(h, c.nodes)
	return start(c.session, c.request("stat"), func() (*zk.Stat, error) { return c.stat(h.core.Context()) })
}

// begin makes the hold valid, once the first node was read, and watches its other nodes, without waiting for that.
func (h *Hold) begin(ctx context.Context, first <-chan result[*zk.Stat]) error {
	c := h.claim
	stat, err := await(ctx, c.session, first)
	if err != nil {
		return err
	}
	if stat.EphemeralOwner != c.session.id { // CURATOR-604: of another session, with which it will go
		return fmt.Errorf("%w: the node belongs to another session", lock.ErrLost)
	}
	return h.grant(stat.Czxid, c.nodes[1:])
}

// grant makes the hold valid, and watches nodes that are not watched yet in a moment, without waiting for that.
func (h *Hold) grant(token int64, unwatched []*node) error {
	h.token = token
	if err := h.core.Begin(); err != nil {
		return err
	}
	if len(unwatched) > 0 {
		h.claim.session.Tasks.Go(func() {
			if h.core.AwaitWatch() {
				for _, n := range unwatched {
					h.watch(n.path())
				}
			}
		})
	}
	return nil
}

// abandon ends a hold that has not begun.
func (h *Hold) abandon() {
	h.claim.session.forget(h.claim.nodes)
	h.core.Lose()
}

// watch watches a node in the background. If the node is gone by then, as after a release, no watch is left.
func (h *Hold) watch(path string) {
	s := h.claim.session
	s.Tasks.Go(func() {
		_, err := read(s.Context(), s, h.claim.request("watch "+path), func() (*zk.Stat, error) {
			_, stat, _, err := s.conn.GetW(path)
			return stat, err
		})
		if errors.Is(err, zk.ErrNoNode) && h.core.Err() == nil {
			h.lose()
		}
	})
}

// lose ends the hold, one of whose nodes was deleted by somebody else, and removes the others.
func (h *Hold) lose() {
	s := h.claim.session
	s.forget(h.claim.nodes)
	h.core.Lose()
	if len(h.claim.nodes) > 1 {
		s.Remove(func() error { return h.claim.remove(s.Context()) })
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
func (h *Hold) Owner() string { return h.owner }

// Token is the fencing token: the czxid of the node, and never 0; one for all locks of the hold. It is greater than the
// tokens of all earlier holds that exclude this one. It goes back only if a majority of the servers loses its disks.
func (h *Hold) Token() int64 { return h.token }

// Deadline is until when the hold is valid, on the monotonic clock. Every request that a server answers makes it later,
// and one is sent in every third of the session timeout.
func (h *Hold) Deadline() time.Time { return h.core.Deadline() }

// Release releases the hold. It works with a context that has ended, and takes no longer than Options.Timeout. Its
// error is [lock.ErrLost] if the hold had ended before, [lock.ErrReleased] or [lock.ErrClosed] if that was the reason,
// and [lock.ErrUnknown] if no server answered or if the servers refused it: the release is retried in the background
// until one executes it, or until the session ends.
func (h *Hold) Release(ctx context.Context) error {
	remove := func(ctx context.Context) (bool, error) {
		h.claim.session.forget(h.claim.nodes)
		return h.claim.release(ctx)
	}
	if err := h.core.Release(ctx, remove); err != nil {
		return fmt.Errorf("release lock %q: %w", h.Name(), err)
	}
	return nil
}
