package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
	"github.com/lockchaos/lockchaos/lock"
)

// unsent is a connection that breaks instead of sending a deletion.
type unsent struct {
	net.Conn
	instead *atomic.Pointer[func()] // called then, once; nil: it sends everything
}

func (c unsent) Write(b []byte) (int, error) {
	const operation, deletion, multi = 8, 2, 14 // the operation comes after the length and the number of the request
	if len(b) > operation+4 {
		if op := binary.BigEndian.Uint32(b[operation:]); op == deletion || op == multi {
			if do := c.instead.Swap(nil); do != nil {
				(*do)()
				_ = c.Close()
				return len(b), nil
			}
		}
	}
	return c.Conn.Write(b)
}

// TestReleaseOfRemovedNode: the request of a release is lost, and somebody deletes the node before it is sent again:
// the release fails. TestLocks has the release whose answer is lost, which succeeds.
func TestReleaseOfRemovedNode(t *testing.T) {
	b := startBackend(t)
	for name, acquire := range map[string]func(*Client) (*Hold, error){
		"a lock":        func(c *Client) (*Hold, error) { return c.Mutex("orders").Acquire(t.Context(), "a") },
		"several locks": func(c *Client) (*Hold, error) { return c.Multi("bills", "orders").Acquire(t.Context(), "a") },
	} {
		t.Run(name, func(t *testing.T) {
			var instead atomic.Pointer[func()]
			c := open(t, b.addr, Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return unsent{conn, &instead}, err
			}})
			// The mark of an earlier release is used again, and proves nothing about this one.
			sessiontest.Release(t, sessiontest.Acquire(t, c.Mutex("earlier").Acquire, "a"))
			h, err := acquire(c)
			if err != nil {
				t.Fatal(err)
			}
			remove := func() {
				if err := b.Remove(context.Background(), "orders"); err != nil {
					t.Error(err)
				}
			}
			instead.Store(&remove)
			if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
				t.Errorf("release: %v, want ErrLost", err)
			}
			if instead.Load() != nil {
				t.Error("no request of the release was lost")
			}
			left, err := b.Entries(t.Context(), "")
			if err != nil || len(left) > 0 {
				t.Errorf("nodes are left: %v (%v)", left, err)
			}
		})
	}
}

// marksLeft are the names of the marks at the servers.
func marksLeft(t *testing.T, b *backend) []string {
	t.Helper()
	names, _, err := b.admin.Children(defaultRoot + "/" + marksName)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestMarksOfReleases: a session that releases one hold after another leaves one mark, also if somebody deletes it,
// until it ends.
func TestMarksOfReleases(t *testing.T) {
	b := startBackend(t)
	c := open(t, b.addr, Options{})
	for i := range 5 {
		sessiontest.Release(t, sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a"))
		left := marksLeft(t, b)
		if len(left) != 1 {
			t.Fatalf("marks %v are left, want one", left)
		}
		if i == 2 {
			if err := b.admin.Delete(defaultRoot+"/"+marksName+"/"+left[0], -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := marksLeft(t, b); len(left) > 0 {
		t.Errorf("marks %v are left after Close", left)
	}
}

// TestMarksAreReused: releases at the same time use a mark each, and later releases make no more, also if somebody has
// deleted one, and after a release that has failed.
func TestMarksAreReused(t *testing.T) {
	b := startBackend(t)
	c := open(t, b.addr, Options{})
	s, err := c.sessions.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const many = 8
	release := func() {
		t.Helper()
		sessiontest.Release(t, sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a"))
		if left := marksLeft(t, b); len(left) > many {
			t.Errorf("marks %v are left, want %d", left, many)
		}
	}
	var taken []string // as by releases that are not answered yet
	for range many {
		release()
		taken = append(taken, s.marks.Take())
	}
	for _, m := range taken {
		s.marks.Keep(m)
	}
	if left := marksLeft(t, b); len(left) != many {
		t.Fatalf("marks %v are left, want %d", left, many)
	}
	for _, m := range taken[:2] {
		if err := b.admin.Delete(m, -1); err != nil {
			t.Fatal(err)
		}
	}
	for range many {
		release()
	}
	h := sessiontest.Acquire(t, c.Mutex("bills").Acquire, "a")
	if err := b.Remove(t.Context(), "bills"); err != nil {
		t.Fatal(err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
	for range many {
		release()
	}
}

// TestRefusedRemovals: the servers refuse the requests of a release, and of the undoing of a try, because of wrong
// rights. The node is removed as soon as they are right, while the session that has created it lives.
func TestRefusedRemovals(t *testing.T) {
	b := startBackend(t)
	const locked, free = zk.PermRead | zk.PermCreate | zk.PermAdmin, zk.PermAll
	c := open(t, b.addr, Options{})
	m := c.Mutex("orders")
	allow := func(permissions int32) {
		t.Helper()
		if _, err := b.admin.SetACL(defaultRoot+"/orders", zk.WorldACL(permissions), -1); err != nil {
			t.Fatal(err)
		}
	}
	for name, fail := range map[string]func(held *Hold) error{
		"release": func(held *Hold) error { return held.Release(t.Context()) },
		"undo": func(*Hold) error {
			_, err := m.TryAcquire(t.Context(), "b")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := sessiontest.Acquire(t, m.Acquire, "a")
			allow(locked)
			if err := fail(h); !errors.Is(err, lock.ErrUnknown) {
				t.Errorf("got %v, want ErrUnknown", err)
			}
			allow(free)
			if name == "undo" {
				sessiontest.Release(t, h)
			}
			ctx, cancel := context.WithTimeout(t.Context(), sessiontest.Timeout)
			defer cancel()
			other, err := open(t, b.addr, Options{}).Mutex("orders").Acquire(ctx, "other")
			if err != nil {
				t.Fatalf("nobody holds the lock, and it is not granted: %v", err)
			}
			sessiontest.Release(t, other)
		})
	}
}
