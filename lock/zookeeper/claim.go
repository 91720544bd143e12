package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// node is a node of one request. Its name is the name of the request, its purpose, and the number that the server has
// appended: 100b0a1fd3c0001.7-lock-0000000012. A request is named by its session and its number in the session.
type node struct {
	dir    string
	prefix string // of its name, which no other has
	name   string // "" until it is known
}

func (n *node) path() string { return n.dir + "/" + n.name }

// claim is one request: its nodes, which are created and removed together.
type claim struct {
	session *session
	id      string
	nodes   []*node
	owner   []byte
	pending <-chan result[[]string] // a creation that was not answered; nil: none
	asked   bool                    // the creation was sent
	seen    *snapshot               // the queue of the only node when it was created; nil: not known
}

// snapshot has the children of a lock at one time.
type snapshot struct {
	names      []string
	last       int64           // the zxid of the last change (pzxid)
	creation   int64           // the zxid of the reply to the creation; 0: it is not known
	connection <-chan struct{} // closed at a connection after the one of the snapshot
}

func newClaim(s *session, q *queue, owner string) *claim {
	s.order(func() string { return owner + " " + strings.Join(q.names, " ") })
	s.mu.Lock()
	s.claims++
	id := fmt.Sprintf("%x.%x", uint64(s.id), s.claims)
	s.mu.Unlock()
	c := &claim{session: s, id: id, owner: []byte(owner)}
	for _, name := range q.names {
		c.nodes = append(c.nodes, &node{
			dir: q.client.o.Root + "/" + name, prefix: id + "-" + q.kind.Word + "-",
		})
	}
	return c
}

func (c *claim) acl() []zk.ACL { return c.session.client.o.ACL }

// request names a request of c, for [session.admit].
func (c *claim) request(kind string) string { return c.id + " " + kind }

// send creates the nodes, all or none, and returns their paths.
func (c *claim) send() ([]string, error) {
	const flags = zk.FlagEphemeral | zk.FlagSequence
	conn := c.session.conn
	if len(c.nodes) == 1 {
		path, err := conn.Create(c.nodes[0].dir+"/"+c.nodes[0].prefix, c.owner, flags, c.acl())
		return []string{path}, err
	}
	ops := make([]any, len(c.nodes))
	for i, n := range c.nodes {
		ops[i] = &zk.CreateRequest{Path: n.dir + "/" + n.prefix, Data: c.owner, Acl: c.acl(), Flags: flags}
	}
	replies, err := conn.Multi(ops...)
	paths := make([]string, len(replies))
	for i, r := range replies {
		paths[i] = r.String
	}
	return paths, err
}

// created takes the paths in the answer to the creation.
func (c *claim) created(paths []string) {
	c.pending = nil
	for i, n := range c.nodes {
		n.name = paths[i][len(n.dir)+1:]
	}
}

// create creates the nodes. An interrupted creation may have happened: then they are looked for.
func (c *claim) create(ctx context.Context) error {
	for {
		c.asked = true
		again := c.session.reconnection()
		paths, err := c.ask(ctx, again)
		switch {
		case err == nil:
			c.created(paths)
			return nil
		case errors.Is(err, zk.ErrNoNode):
			c.pending, c.asked = nil, false
			if err := c.makeParents(ctx); err != nil {
				return err
			}
		case interrupted(err):
			c.pending = nil
			if err := c.session.awaitEvent(ctx, nil, again); err != nil {
				return err
			}
			if found, err := c.find(ctx); err != nil || found {
				return err
			}
		default:
			if !errors.Is(err, sessions.ErrEnded) && !ended(ctx, err) { // an answer: nothing was created
				c.pending, c.asked = nil, false
			}
			return err
		}
	}
}

// ended reports whether err says that ctx has ended.
func ended(ctx context.Context, err error) bool { return ctx.Err() != nil && errors.Is(err, ctx.Err()) }

// ask sends the creation. The request for the queue of a single node follows at once, in the same round trip: a server
// executes the requests of a session in order.
func (c *claim) ask(ctx context.Context, again <-chan struct{}) ([]string, error) {
	if len(c.nodes) > 1 {
		c.pending = start(c.session, c.request("create"), c.send)
		return await(ctx, c.session, c.pending)
	}
	looking, stop := context.WithCancel(ctx)
	defer stop()
	s, n := c.session, c.nodes[0]
	creation := s.expectCreation(n.dir + "/" + n.prefix)
	c.pending = start(s, c.request("create"), c.send)
	look := start(s, c.request("await creation"), func() (snapshot, error) {
		if err := sessions.Await(looking, s.Session, creation.sent, nil); err != nil {
			return snapshot{}, err
		}
		if err := s.admit(c.request("look")); err != nil {
			return snapshot{}, err
		}
		names, stat, err := s.conn.Children(n.dir)
		if err != nil {
			return snapshot{}, err
		}
		return snapshot{names: names, last: stat.Pzxid, connection: again}, nil
	})
	paths, err := await(ctx, s, c.pending)
	zxid := s.forgetCreation(n.dir + "/" + n.prefix)
	if err != nil {
		return nil, err
	}
	if seen, err := await(ctx, s, look); err == nil {
		seen.creation = zxid
		c.seen = &seen
	}
	return paths, nil
}

// alone returns the czxid of the only node if the queue had no other when it was created, and no change since; 0: that
// is not known.
func (c *claim) alone() int64 {
	if s := c.seen; s != nil && len(s.names) == 1 && s.names[0] == c.nodes[0].name && s.last == s.creation {
		return s.last
	}
	return 0
}

func (c *claim) makeParents(ctx context.Context) error {
	for _, n := range c.nodes {
		if err := c.makeParent(ctx, n.dir); err != nil {
			return err
		}
	}
	return nil
}

// look returns the names of all nodes in the queue of n, the first time as seen at its creation, and a channel that is
// closed when another connection replaces the one that has read them.
func (c *claim) look(ctx context.Context, n *node) (again <-chan struct{}, names []string, err error) {
	if seen := c.seen; seen != nil && slices.Contains(seen.names, n.name) {
		c.seen = nil
		return seen.connection, seen.names, nil
	}
	again = c.session.reconnection()
	names, err = c.children(ctx, n.dir)
	return again, names, err
}

// children are the names of all nodes of a lock.
func (c *claim) children(ctx context.Context, dir string) ([]string, error) {
	return read(ctx, c.session, c.request("list"), func() ([]string, error) {
		names, _, err := c.session.conn.Children(dir)
		return names, err
	})
}

// find looks for the nodes by their prefix, at a server that has every earlier write: a creation that reached the
// servers through the last connection is before the sync, or was refused when the session moved to this one.
func (c *claim) find(ctx context.Context) (found bool, err error) {
	dir := c.nodes[0].dir
	_, err = read(ctx, c.session, c.request("sync"), func() (string, error) { return c.session.conn.Sync(dir) })
	if err != nil {
		return false, err
	}
	for _, n := range c.nodes {
		names, err := c.children(ctx, n.dir)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return false, err
		}
		for _, name := range names {
			if strings.HasPrefix(name, n.prefix) {
				n.name, found = name, true
			}
		}
	}
	return found, nil
}

// awaitGone waits until a node is gone, or was written by announce, or may be, because the connection was lost
// meanwhile.
func (c *claim) awaitGone(ctx context.Context, path string, again <-chan struct{}) error {
	w, err := watch(ctx, c.session, c.request("watch"), func() (bool, <-chan zk.Event, error) {
		_, stat, event, err := c.session.conn.GetW(path)
		if errors.Is(err, zk.ErrNoNode) {
			return false, nil, nil
		}
		return err == nil && stat.Version == 0, event, err
	})
	if err != nil || !w.wait {
		return err
	}
	return c.session.awaitEvent(ctx, w.event, again)
}

// stat is the status of the first node, which it watches.
func (c *claim) stat(ctx context.Context) (*zk.Stat, error) {
	return read(ctx, c.session, c.request("status"), func() (*zk.Stat, error) {
		_, stat, _, err := c.session.conn.GetW(c.nodes[0].path()) // which leaves no watch on a node that is not there
		if errors.Is(err, zk.ErrNoNode) {
			err = fmt.Errorf("%w: its node was removed", lock.ErrLost)
		}
		return stat, err
	})
}

// removeAll removes the nodes, even if their creation is still to be answered, until that is certain or the session has
// ended.
func (c *claim) removeAll() error {
	ctx := context.Background()
	if c.pending != nil {
		paths, err := await(ctx, c.session, c.pending)
		if errors.Is(err, sessions.ErrEnded) {
			return err
		}
		c.pending = nil
		switch {
		case err == nil:
			c.created(paths)
		case !interrupted(err):
			return nil // an answer: nothing was created
		}
	}
	if c.nodes[0].name == "" {
		if found, err := c.find(ctx); err != nil || !found {
			return err
		}
	}
	return c.remove(ctx)
}

// release removes the nodes of a hold until that is answered. False: one of them was not there. The deletion writes
// the claim's id to a mark, which proves an earlier request whose answer was lost: without it, somebody else has
// deleted the node.
func (c *claim) release(ctx context.Context) (was bool, err error) {
	m := mark{path: c.session.marks.Take()}
	if m.there = m.path != ""; !m.there {
		m.path = c.marks() + "/" + c.id
	}
	for interruptions := 0; ; {
		again := c.session.reconnection()
		failed, err := c.sendRelease(ctx, m)
		switch {
		case err == nil:
			c.session.marks.Keep(m.path)
			return true, nil
		case interrupted(err):
			interruptions++
			err = c.session.awaitEvent(ctx, nil, again)
		case errors.Is(err, zk.ErrNoNode) && failed == len(c.nodes) && m.there: // somebody has deleted the mark
			m.there, err = false, nil
		case errors.Is(err, zk.ErrNoNode) && failed == len(c.nodes):
			err = c.makeParent(ctx, c.marks())
		case errors.Is(err, zk.ErrNodeExists): // somebody has created the mark again
			m.there, err = true, nil
		case errors.Is(err, zk.ErrNoNode):
			return c.releasedBy(ctx, m, interruptions)
		}
		if err != nil {
			return false, err
		}
	}
}

// marksName is the node below the root whose children are marks. No lock has this name.
const marksName = ".released"

// marks is the parent of the marks.
func (c *claim) marks() string { return c.session.client.o.Root + "/" + marksName }

// mark is a node that a release writes. It ends with the session.
type mark struct {
	path  string
	there bool // it was created
}

// sendRelease deletes the nodes and writes the mark, all or nothing. An error comes with the index of the operation
// that failed, or -1.
func (c *claim) sendRelease(ctx context.Context, m mark) (failed int, err error) {
	var ops []any
	for _, n := range c.nodes {
		ops = append(ops, &zk.DeleteRequest{Path: n.path(), Version: -1})
	}
	if m.there {
		ops = append(ops, &zk.SetDataRequest{Path: m.path, Data: []byte(c.id), Version: -1})
	} else {
		ops = append(ops, &zk.CreateRequest{Path: m.path, Data: []byte(c.id), Acl: c.acl(), Flags: zk.FlagEphemeral})
	}
	replies, err := await(ctx, c.session, start(c.session, c.request("release"), func() ([]zk.MultiResponse, error) {
		return c.session.conn.Multi(ops...)
	}))
	return slices.IndexFunc(replies, func(r zk.MultiResponse) bool { return r.Error != nil }), err
}

// releasedBy reports whether nodes that are not there were deleted by an earlier request of this release, and deletes
// the remaining ones.
func (c *claim) releasedBy(ctx context.Context, m mark, interruptions int) (own bool, err error) {
	id := ""
	if interruptions > 0 {
		id, err = read(ctx, c.session, c.request("released"), func() (string, error) {
			data, _, err := c.session.conn.Get(m.path)
			if errors.Is(err, zk.ErrNoNode) {
				return "", nil
			}
			return string(data), err
		})
		if err != nil {
			return false, err
		}
	}
	if m.there || id != "" {
		c.session.marks.Keep(m.path)
	}
	if id == c.id {
		return true, nil
	}
	return false, c.remove(ctx)
}

// remove deletes the nodes, if they are there, until that is answered.
func (c *claim) remove(ctx context.Context) error {
	for _, n := range c.nodes {
		_, err := read(ctx, c.session, c.request("remove"), func() (struct{}, error) {
			return struct{}{}, c.session.conn.Delete(n.path(), -1)
		})
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}
