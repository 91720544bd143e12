package zookeeper

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/lock"
)

// Mutex is a lock that one owner holds at a time, first come, first served. Several goroutines may use it: each Acquire
// is an owner of its own. It is not reentrant.
type Mutex struct {
	client *Client
	name   string
}

// Mutex is the lock of that name: the children of the node Options.Root/name. The name must have no slash.
func (c *Client) Mutex(name string) *Mutex { return &Mutex{client: c, name: name} }

// Acquire waits for the lock until ctx ends. Its error is [lock.ErrHeld] if others had it all the time,
// [lock.ErrClosed], that of the servers, and [lock.ErrUnknown] if it was not certain in time that the node of the
// acquire is gone: then it is removed in the background, or ends with the session. The context of the hold is a child
// of ctx. The data of the node is owner, for people and tools; it may be empty.
func (m *Mutex) Acquire(ctx context.Context, owner string) (*Hold, error) {
	return m.acquire(ctx, owner, true)
}

// TryAcquire takes the lock if it is free now. Errors are those of Acquire.
func (m *Mutex) TryAcquire(ctx context.Context, owner string) (*Hold, error) {
	return m.acquire(ctx, owner, false)
}

func (m *Mutex) acquire(ctx context.Context, owner string, wait bool) (*Hold, error) {
	h, err := m.attempt(ctx, owner, wait)
	if err != nil {
		return nil, fmt.Errorf("acquire lock %q: %w", m.name, err)
	}
	return h, nil
}

func (m *Mutex) attempt(ctx context.Context, owner string, wait bool) (*Hold, error) {
	if m.name == "" || m.name == "." || m.name == ".." || strings.ContainsAny(m.name, "/\x00") {
		return nil, errors.New("the name must not be empty, a dot or two, or have a slash")
	}
	s, err := m.client.session(ctx)
	if err != nil {
		return nil, err
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // it never fails
	n := &node{session: s, dir: m.client.o.Root + "/" + m.name, prefix: hex.EncodeToString(id[:]) + separator}
	h, err := m.obtain(ctx, n, owner, wait)
	if err == nil {
		return h, nil
	}
	return nil, n.undo(err)
}

// obtain creates the node and waits until it is the first.
func (m *Mutex) obtain(ctx context.Context, n *node, owner string, wait bool) (*Hold, error) {
	if err := n.create(ctx, owner); err != nil {
		return nil, err
	}
	for {
		again := n.session.reconnection()
		previous, err := n.predecessor(ctx)
		switch {
		case err != nil:
			return nil, err
		case previous == "":
			return m.hold(ctx, n, owner)
		case !wait:
			return nil, lock.ErrHeld
		}
		if err := n.awaitGone(ctx, previous, again); err != nil {
			return nil, err
		}
	}
}

// hold is the hold of a node that is the first.
func (m *Mutex) hold(ctx context.Context, n *node, owner string) (*Hold, error) {
	stat, err := n.stat(ctx)
	if err != nil {
		return nil, err
	}
	if stat.EphemeralOwner != n.session.id { // CURATOR-604: of another session, with which it will go
		return nil, fmt.Errorf("%w: the node belongs to another session", lock.ErrLost)
	}
	h := newHold(ctx, m, n, owner, stat.Czxid)
	if !n.session.add(h) || time.Until(n.session.deadline()) <= 0 {
		n.session.remove(h)
		return nil, errEnded
	}
	return h, nil
}

// separator is between the id of an acquire and the number that the server appends.
const separator = "-lock-"

// node is the node of one acquire.
type node struct {
	session *session
	dir     string
	prefix  string                // of its name, which no other has
	name    string                // "" until it is known
	pending <-chan result[string] // a creation that was not answered; nil: none
	asked   bool                  // its creation was sent
}

func (n *node) path() string { return n.dir + "/" + n.name }

// create creates the node. An interrupted creation may have happened: then it is looked for.
func (n *node) create(ctx context.Context, owner string) error {
	for {
		n.asked = true
		again := n.session.reconnection()
		n.pending = start(func() (string, error) {
			return n.session.conn.Create(n.dir+"/"+n.prefix, []byte(owner), zk.FlagEphemeral|zk.FlagSequence, acl())
		})
		path, err := await(ctx, n.session, n.pending)
		switch {
		case err == nil:
			n.pending, n.name = nil, path[len(n.dir)+1:]
			return nil
		case errors.Is(err, zk.ErrNoNode):
			n.pending, n.asked = nil, false
			if err := n.makeParents(ctx); err != nil {
				return err
			}
		case interrupted(err):
			n.pending = nil
			if err := n.session.wait(ctx, again); err != nil {
				return err
			}
			if found, err := n.find(ctx); err != nil || found {
				return err
			}
		default:
			if !errors.Is(err, errEnded) && ctx.Err() == nil { // an answer: nothing was created
				n.pending, n.asked = nil, false
			}
			return err
		}
	}
}

func acl() []zk.ACL { return zk.WorldACL(zk.PermAll) }

// makeParents creates the node of the lock and those above it. The node of the lock is a container (ZooKeeper 3.5.3 or
// newer): servers remove it when it has been empty for a while.
func (n *node) makeParents(ctx context.Context) error {
	for at := 1; at > 0; {
		path := n.dir
		if next := strings.IndexByte(n.dir[at:], '/'); next >= 0 {
			path, at = n.dir[:at+next], at+next+1
		} else {
			at = 0
		}
		_, err := read(ctx, n.session, func() (string, error) {
			if path == n.dir {
				return n.session.conn.CreateContainer(path, nil, zk.FlagContainer, acl())
			}
			return n.session.conn.Create(path, nil, 0, acl())
		})
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("create %s: %w", path, err)
		}
	}
	return nil
}

// children are the names of all nodes of the lock.
func (n *node) children(ctx context.Context) ([]string, error) {
	return read(ctx, n.session, func() ([]string, error) {
		names, _, err := n.session.conn.Children(n.dir)
		return names, err
	})
}

// find looks for the node by its prefix, at a server that has every earlier write: a creation that reached the servers
// through the last connection is before the sync, or was refused when the session moved to this one.
func (n *node) find(ctx context.Context) (found bool, err error) {
	if _, err := read(ctx, n.session, func() (string, error) { return n.session.conn.Sync(n.dir) }); err != nil {
		return false, err
	}
	names, err := n.children(ctx)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	for _, name := range names {
		if strings.HasPrefix(name, n.prefix) {
			n.name = name
		}
	}
	return n.name != "", nil
}

// predecessor is the name of the node before this one; "" if it is the first.
func (n *node) predecessor(ctx context.Context) (string, error) {
	names, err := n.children(ctx)
	if err != nil {
		return "", err
	}
	name, found := before(n.name, names)
	if !found {
		return "", fmt.Errorf("%w: its node was removed while it waited", lock.ErrLost)
	}
	return name, nil
}

// before is the last of the names that come before own; "" if there is none. False: own is not among them. Numbers wrap
// at 2³¹: the difference says which is earlier (kazoo#606).
func before(own string, names []string) (last string, found bool) {
	at := sequence(own)
	for _, name := range names {
		found = found || name == own
		if d := sequence(name) - at; d < 0 && (last == "" || d > sequence(last)-at) {
			last = name
		}
	}
	return last, found
}

// sequence is the number that the server has appended to a name.
func sequence(name string) int32 {
	_, digits, _ := strings.Cut(name, separator)
	v, _ := strconv.ParseInt(digits, 10, 32) // nodes of others, if there are any, count as the first
	return int32(v)
}

// awaitGone waits until a node is gone, or may be, because the connection was lost meanwhile.
func (n *node) awaitGone(ctx context.Context, name string, again <-chan struct{}) error {
	type watched struct {
		there bool
		gone  <-chan zk.Event
	}
	w, err := read(ctx, n.session, func() (watched, error) {
		there, _, gone, err := n.session.conn.ExistsW(n.dir + "/" + name)
		return watched{there, gone}, err
	})
	if err == nil && w.there {
		select {
		case <-w.gone:
		case <-again:
		case <-n.session.done:
			err = errEnded
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", lock.ErrHeld, ctx.Err())
	}
	return err
}

func (n *node) stat(ctx context.Context) (*zk.Stat, error) {
	return read(ctx, n.session, func() (*zk.Stat, error) {
		there, stat, err := n.session.conn.Exists(n.path())
		if err == nil && !there {
			err = fmt.Errorf("%w: its node was removed", lock.ErrLost)
		}
		return stat, err
	})
}

// undo removes what the failed acquire may have created, and returns its error.
func (n *node) undo(why error) error {
	if !n.asked {
		return why
	}
	removed := make(chan error, 1)
	n.session.client.tasks.Go(func() { removed <- n.removeAll() })
	timer := time.NewTimer(n.session.client.o.Timeout)
	defer timer.Stop()
	select {
	case err := <-removed:
		if err == nil {
			return undoneError{why}
		}
	case <-timer.C:
	}
	return fmt.Errorf("%w: %w", lock.ErrUnknown, why)
}

// removeAll removes the node, also one whose creation is still to be answered, until that is certain or the session has
// ended.
func (n *node) removeAll() error {
	ctx := context.Background()
	if n.pending != nil {
		path, err := await(ctx, n.session, n.pending)
		switch {
		case err == nil:
			n.name = path[len(n.dir)+1:]
		case errors.Is(err, errEnded):
			return err
		case !interrupted(err):
			return nil // an answer: nothing was created
		}
	}
	if n.name == "" {
		if found, err := n.find(ctx); err != nil || !found {
			return err
		}
	}
	_, err := n.remove(ctx)
	return err
}

// remove deletes the node until that is answered. False: it was not there at the first request.
func (n *node) remove(ctx context.Context) (was bool, err error) {
	for {
		again := n.session.reconnection()
		_, err := await(ctx, n.session, start(func() (struct{}, error) {
			return struct{}{}, n.session.conn.Delete(n.path(), -1)
		}))
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, zk.ErrNoNode):
			return was, nil
		case !interrupted(err):
			return was, err
		}
		was = true // by the request that was not answered: the session has not ended, and nobody else deletes it
		if err := n.session.wait(ctx, again); err != nil {
			return was, err
		}
	}
}
