package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/queues"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// queue is how requests of one kind are served: each has a node in the queue of every lock that it is for.
type queue struct {
	client  *Client
	names   []string // of the locks
	kind    queues.Kind
	permits int // 0: the whole lock
}

// turn is the place of a node among all nodes of its lock. Other children of the node of the lock do not count, such as
// locks of a client whose root it is.
func (q *queue) turn(own string, names []string) queues.Turn {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isEntry(name) })
	return q.kind.Turn(own, inOrder(own, names))
}

func (q *queue) acquire(ctx context.Context, owner string, wait bool) (*Hold, error) {
	events := &q.client.sessions
	began, about := time.Now(), queues.Event(q.names[0], owner, q.permits)
	h, err := q.attempt(ctx, owner, wait)
	if err != nil {
		err = fmt.Errorf("acquire lock %q: %w", q.names[0], err)
		events.Acquired(ctx, about, 0, err, began)
		return nil, err
	}
	events.Acquired(ctx, about, h.Token(), nil, began)
	return h, nil
}

// checkName refuses invalid names of nodes.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || name == marksName || strings.ContainsAny(name, "/\x00") {
		return errors.New("the name must not be empty, `.`, `..` or `" + marksName + "`, or contain a slash")
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
	if seen := h.claim.seen; seen != nil && !wait { // it is refused without another request
		if t := q.turn(h.claim.nodes[0].name, seen.names); t.Found && !t.Now {
			return lock.ErrHeld
		}
	}
	first := h.watchFirst()
	for _, n := range h.claim.nodes {
		if err := queues.Await(ctx, &place{claim: h.claim, node: n, queue: q}, wait); err != nil {
			return err
		}
	}
	return h.begin(ctx, first)
}

// place is one node of a claim in the queue of its lock.
type place struct {
	*claim
	node  *node
	queue *queue
	again <-chan struct{} // ends when the connection that Turn has used is replaced
}

func (p *place) Turn(ctx context.Context) (t queues.Turn, err error) {
	var names []string
	p.again, names, err = p.look(ctx, p.node)
	return p.queue.turn(p.node.name, names), err
}

func (p *place) Changed(ctx context.Context, t queues.Turn) error {
	if !t.Any {
		return p.awaitGone(ctx, p.node.dir+"/"+t.After, p.again)
	}
	w, err := watch(ctx, p.session, p.request("watch-list"), func() (bool, <-chan zk.Event, error) {
		names, _, changed, err := p.session.conn.ChildrenW(p.node.dir)
		t := p.queue.turn(p.node.name, names)
		return t.Found && !t.Now, changed, err
	})
	if err != nil || !w.wait {
		return err
	}
	return p.session.awaitEvent(ctx, w.event, p.again)
}

func (p *place) Announce() { p.announce(p.node) }

// watched is the answer to a request that sets a watch.
type watched struct {
	wait  bool // for the event
	event <-chan zk.Event
}

func watch(ctx context.Context, s *session, request string, do func() (bool, <-chan zk.Event, error)) (watched, error) {
	return read(ctx, s, request, func() (watched, error) {
		wait, event, err := do()
		return watched{wait, event}, err
	})
}

// awaitEvent waits for a watch, which may be lost with the connection, or without one for a connection.
func (s *session) awaitEvent(ctx context.Context, event <-chan zk.Event, again <-chan struct{}) error {
	return sessions.Await(ctx, s.Session, event, again)
}
