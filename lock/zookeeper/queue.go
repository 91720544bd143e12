package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/queues"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// queue is how requests of one kind are served: each has a node in the queue of every lock that it is for.
type queue struct {
	client *Client
	names  []string // of the locks
	kind   queues.Kind
}

// turn is the place of a node among all nodes of its lock.
func (q *queue) turn(own string, names []string) queues.Turn {
	return q.kind.Turn(own, inOrder(own, names))
}

func (q *queue) acquire(ctx context.Context, owner string, wait bool) (*Hold, error) {
	h, err := q.attempt(ctx, owner, wait)
	if err != nil {
		return nil, fmt.Errorf("acquire lock %q: %w", q.names[0], err)
	}
	return h, nil
}

// checkName refuses what cannot be the name of a node.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || name == marksName || strings.ContainsAny(name, "/\x00") {
		return errors.New("the name must not be empty, a dot or two, or " + marksName + ", or have a slash")
	}
	return nil
}

func (q *queue) attempt(ctx context.Context, owner string, wait bool) (*Hold, error) {
	for _, name := range q.names {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	s, err := q.client.sessions.Session(ctx)
	if err != nil {
		return nil, err
	}
	c := newClaim(s, q, owner)
	h, err := q.obtain(ctx, c, owner, wait)
	if err != nil && c.asked {
		err = s.Undo(err, c.removeAll)
	}
	return h, err
}

// obtain creates the nodes and waits until it is the turn of each. The nodes of one request have consecutive places in
// the order of all writes, so requests for several locks cannot deadlock.
func (q *queue) obtain(ctx context.Context, c *claim, owner string, wait bool) (*Hold, error) {
	if err := c.create(ctx); err != nil {
		return nil, err
	}
	h := newHold(ctx, q, c, owner)
	if err := q.enter(ctx, h, wait); err != nil {
		h.abandon()
		return nil, err
	}
	return h, nil
}

// enter waits until it is the turn of each node. The first one is read and watched while the hold waits for that; if
// its creation has shown that it is alone in the queue, it is watched after the grant.
func (q *queue) enter(ctx context.Context, h *Hold, wait bool) error {
	if token := h.claim.alone(); token != 0 {
		h.claim.session.hold(h, h.claim.nodes)
		return h.grant(token, h.claim.nodes)
	}
	if seen := h.claim.seen; seen != nil && !wait { // a watch that is set after the node was deleted stays
		if t := q.turn(h.claim.nodes[0].name, seen.names); t.Found && !t.Now {
			return lock.ErrHeld
		}
	}
	first := h.watchFirst()
	for _, n := range h.claim.nodes {
		if err := q.await(ctx, h.claim, n, wait); err != nil {
			return err
		}
	}
	return h.begin(ctx, first)
}

// await waits until it is the turn of one node.
func (q *queue) await(ctx context.Context, c *claim, n *node, wait bool) error {
	for {
		again, names, err := c.look(ctx, n)
		if err != nil {
			return err
		}
		switch t := q.turn(n.name, names); {
		case !t.Found:
			return fmt.Errorf("%w: its node was removed while it waited", lock.ErrLost)
		case t.Now:
			if t.Announce {
				c.announce(n)
			}
			return nil
		case !wait:
			return lock.ErrHeld
		case t.Any:
			err = q.awaitAny(ctx, c, n, again)
		default:
			err = c.awaitGone(ctx, n.dir+"/"+t.After, again)
		}
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("%w: %w", lock.ErrHeld, ctx.Err())
		}
		if err != nil {
			return err
		}
	}
}

// awaitAny waits until a node comes or goes, unless it is the turn of n already.
func (q *queue) awaitAny(ctx context.Context, c *claim, n *node, again <-chan struct{}) error {
	w, err := watch(ctx, c.session, func() (bool, <-chan zk.Event, error) {
		names, _, changed, err := c.session.conn.ChildrenW(n.dir)
		t := q.turn(n.name, names)
		return t.Found && !t.Now, changed, err
	})
	if err != nil || !w.wait {
		return err
	}
	return c.session.awaitEvent(ctx, w.event, again)
}

// watched is the answer to a request that sets a watch.
type watched struct {
	wait  bool // for the event
	event <-chan zk.Event
}

func watch(ctx context.Context, s *session, do func() (bool, <-chan zk.Event, error)) (watched, error) {
	return read(ctx, s, func() (watched, error) {
		wait, event, err := do()
		return watched{wait, event}, err
	})
}

// awaitEvent waits for a watch, which may be lost with the connection, or without one for a connection.
func (s *session) awaitEvent(ctx context.Context, event <-chan zk.Event, again <-chan struct{}) error {
	return sessions.Await(ctx, s.Session, event, again)
}
