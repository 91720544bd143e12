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

// node is a node of one request. Its name is that of the request, what it is for, and the number that the server has
// appended: 100b0a1fd3c0001.7-lock-0000000012. A request is named by its session and its number in that.
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
}

func newClaim(s *session, q *queue, owner string) *claim {
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

func acl() []zk.ACL { return zk.WorldACL(zk.PermAll) }

// send creates the nodes, all or none, and returns their paths.
func (c *claim) send() ([]string, error) {
	const flags = zk.FlagEphemeral | zk.FlagSequence
	conn := c.session.conn
	if len(c.nodes) == 1 {
		path, err := conn.Create(c.nodes[0].dir+"/"+c.nodes[0].prefix, c.owner, flags, acl())
		return []string{path}, err
	}
	ops := make([]any, len(c.nodes))
	for i, n := range c.nodes {
		ops[i] = &zk.CreateRequest{Path: n.dir + "/" + n.prefix, Data: c.owner, Acl: acl(), Flags: flags}
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
		c.pending = start(c.send)
		paths, err := await(ctx, c.session, c.pending)
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
			if !errors.Is(err, sessions.ErrEnded) && ctx.Err() == nil { // an answer: nothing was created
				c.pending, c.asked = nil, false
			}
			return err
		}
	}
}

func (c *claim) makeParents(ctx context.Context) error {
	for _, n := range c.nodes {
		if err := c.makeParent(ctx, n.dir); err != nil {
			return err
		}
	}
	return nil
}

// makeParent creates the node of a lock and those above it. The node of the lock is a container (ZooKeeper 3.5.3 or
// newer): servers remove it when it has been empty for a while.
func (c *claim) makeParent(ctx context.Context, dir string) error {
	for at := 1; at > 0; {
		path := dir
		if next := strings.IndexByte(dir[at:], '/'); next >= 0 {
			path, at = dir[:at+next], at+next+1
		} else {
			at = 0
		}
		_, err := read(ctx, c.session, func() (string, error) {
			if path == dir {
				return c.session.conn.CreateContainer(path, nil, zk.FlagContainer, acl())
			}
			return c.session.conn.Create(path, nil, 0, acl())
		})
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("create %s: %w", path, err)
		}
	}
	return nil
}

// children are the names of all nodes of a lock.
func (c *claim) children(ctx context.Context, dir string) ([]string, error) {
	return read(ctx, c.session, func() ([]string, error) {
		names, _, err := c.session.conn.Children(dir)
		return names, err
	})
}

// find looks for the nodes by their prefix, at a server that has every earlier write: a creation that reached the
// servers through the last connection is before the sync, or was refused when the session moved to this one.
func (c *claim) find(ctx context.Context) (found bool, err error) {
	dir := c.nodes[0].dir
	if _, err := read(ctx, c.session, func() (string, error) { return c.session.conn.Sync(dir) }); err != nil {
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
	w, err := watch(ctx, c.session, func() (bool, <-chan zk.Event, error) {
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

// stat is that of the first node, which it watches.
func (c *claim) stat(ctx context.Context) (*zk.Stat, error) {
	return read(ctx, c.session, func() (*zk.Stat, error) {
		there, stat, _, err := c.session.conn.ExistsW(c.nodes[0].path())
		if err == nil && !there {
			err = fmt.Errorf("%w: its node was removed", lock.ErrLost)
		}
		return stat, err
	})
}

// removeAll removes the nodes, also those whose creation is still to be answered, until that is certain or the session
// has ended.
func (c *claim) removeAll() error {
	ctx := context.Background()
	if c.pending != nil {
		paths, err := await(ctx, c.session, c.pending)
		switch {
		case err == nil:
			c.created(paths)
		case errors.Is(err, sessions.ErrEnded):
			return err
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

// release removes the nodes of a hold until that is answered. False: one of them was not there. The deletion creates a
// mark, which proves an earlier request whose answer was lost: without it, somebody else has deleted the node. It also
// deletes up to maxMarks older marks of the session, those of releases that were answered.
func (c *claim) release(ctx context.Context) (was bool, err error) {
	marks := c.session.client.o.Root + "/" + marksName
	mark := marks + "/" + c.id
	old := c.session.takeMarks()
	for interruptions := 0; ; {
		again := c.session.reconnection()
		failed, err := c.sendRelease(ctx, mark, old)
		switch {
		case err == nil:
			c.session.keepMark(mark)
			return true, nil
		case interrupted(err):
			interruptions++
			err = c.session.awaitEvent(ctx, nil, again)
		case errors.Is(err, zk.ErrNoNode) && failed > len(c.nodes): // somebody has deleted an old mark
			i := failed - len(c.nodes) - 1
			old, err = slices.Delete(old, i, i+1), nil
		case errors.Is(err, zk.ErrNoNode) && failed == len(c.nodes):
			err = c.makeParent(ctx, marks)
		case errors.Is(err, zk.ErrNoNode):
			was, err := c.releasedBy(ctx, mark, interruptions)
			if !was { // nothing was deleted
				c.session.keepMark(old...)
			}
			return was, err
		}
		if err != nil {
			return false, err
		}
	}
}

// marksName is the node below the root whose children are marks. No lock has this name.
const marksName = ".released"

// sendRelease deletes the nodes and creates the mark, all or nothing, and deletes old marks with them. An error comes
// with the index of the operation that failed, or -1.
func (c *claim) sendRelease(ctx context.Context, mark string, old []string) (failed int, err error) {
	var ops []any
	for _, n := range c.nodes {
		ops = append(ops, &zk.DeleteRequest{Path: n.path(), Version: -1})
	}
	ops = append(ops, &zk.CreateRequest{Path: mark, Acl: acl(), Flags: zk.FlagEphemeral})
	for _, path := range old {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
	}
	replies, err := await(ctx, c.session, start(func() ([]zk.MultiResponse, error) {
		return c.session.conn.Multi(ops...)
	}))
	return slices.IndexFunc(replies, func(r zk.MultiResponse) bool { return r.Error != nil }), err
}

// releasedBy says whether nodes that are not there were deleted by an earlier request of this release, and deletes
// those that are left.
func (c *claim) releasedBy(ctx context.Context, mark string, interruptions int) (own bool, err error) {
	if interruptions > 0 {
		own, err = read(ctx, c.session, func() (bool, error) {
			there, _, err := c.session.conn.Exists(mark)
			return there, err
		})
		if own {
			c.session.keepMark(mark)
		}
		if own || err != nil {
			return own, err
		}
	}
	return false, c.remove(ctx)
}

// remove deletes the nodes, if they are there, until that is answered.
func (c *claim) remove(ctx context.Context) error {
	for _, n := range c.nodes {
		_, err := read(ctx, c.session, func() (struct{}, error) {
			return struct{}{}, c.session.conn.Delete(n.path(), -1)
		})
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}
