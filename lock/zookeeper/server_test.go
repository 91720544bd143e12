package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
	"github.com/lockchaos/lockchaos/internal/testkit/zookeepertest"
)

// backend is a ZooKeeper server.
type backend struct {
	addr, root string // root: parent of the locks
	admin      *zk.Conn
}

func startServer(t testing.TB) *sessiontest.Proxied { return sessiontest.Behind(t, startBackend(t)) }

// startBackend starts a server of its own for a test.
func startBackend(t testing.TB) *backend {
	t.Helper()
	return newBackend(t, startZooKeeper(t), defaultRoot)
}

func startZooKeeper(t testing.TB) (addr string) {
	t.Helper()
	return zookeepertest.Start(t, zookeepertest.Options{
		Tick: 100 * time.Millisecond, MaxSession: sessiontest.LongLease,
	})
}

// newBackend is the server at addr, with locks below root.
func newBackend(t testing.TB, addr, root string) *backend {
	t.Helper()
	b := &backend{addr: addr, root: root}
	ctx, cancel := context.WithTimeout(t.Context(), sessiontest.Timeout)
	defer cancel()
	session, err := open(t, b.addr, Options{}).sessions.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.admin = session.conn
	return b
}

func open(t testing.TB, addr string, o Options) *Client {
	t.Helper()
	o.Session, o.Timeout = cmp.Or(o.Session, sessiontest.LongLease), cmp.Or(o.Timeout, sessiontest.Timeout)
	c, err := Open([]string{addr}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

func (b *backend) Addr() string { return b.addr }

// Open makes a client. Its waiters look again only when an event wakes them.
func (b *backend) Open(t testing.TB, addr string, o sessiontest.Options) sessiontest.Client {
	t.Helper()
	c := open(t, addr, Options{Root: b.root, Session: o.Lease, Observe: o.Observe, OnLost: func(*Hold) {
		if o.OnLost != nil {
			o.OnLost()
		}
	}})
	return sessiontest.ClientOf(c, c.Close)
}

func (*backend) Undone(err error) bool  { return Undone(err) }
func (*backend) UndoesUnanswered() bool { return false }

// Entries are the nodes below the node of a lock, or of all: the latter are containers and stay for a while.
func (b *backend) Entries(_ context.Context, lock string) (all []string, err error) {
	locks := []string{lock}
	if lock == "" {
		if locks, _, err = b.admin.Children(b.root); err != nil {
			return nil, err
		}
	}
	for _, name := range locks {
		if name == marksName {
			continue
		}
		nodes, _, err := b.admin.Children(b.root + "/" + name)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		for _, node := range nodes {
			all = append(all, b.root+"/"+name+"/"+node)
		}
	}
	return all, nil
}

// Watched counts the watches of single nodes: the server does not count the others. Every request watches its own node.
func (b *backend) Watched(ctx context.Context, w sessiontest.Watches) (bool, error) {
	answer, err := zookeepertest.Command(ctx, b.addr, "wchs")
	own := w.Held + w.One + w.All
	return strings.Contains(answer, fmt.Sprintf("Total watches:%d\n", own+w.One)), err
}

func (b *backend) Remove(ctx context.Context, lock string) error {
	nodes, err := b.Entries(ctx, lock)
	if err != nil {
		return err
	}
	var ops []any
	for _, path := range nodes {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
	}
	_, err = b.admin.Multi(ops...)
	return err
}
