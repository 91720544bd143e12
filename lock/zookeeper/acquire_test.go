package zookeeper

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
	"github.com/lockchaos/lockchaos/internal/testkit/zookeepertest"
)

// sent records the operations of the requests that are sent, without pings.
type sent struct {
	net.Conn
	mu         *sync.Mutex
	operations *[]uint32
}

func (c sent) Write(b []byte) (int, error) {
	const operation, ping = 8, 11 // the operation comes after the length and the number of the request
	if len(b) >= operation+4 {
		if op := binary.BigEndian.Uint32(b[operation:]); op != ping {
			c.mu.Lock()
			*c.operations = append(*c.operations, op)
			c.mu.Unlock()
		}
	}
	return c.Conn.Write(b)
}

// TestFreeLock: to acquire a free lock, a client sends the creation of its node and the look at the queue, and nothing
// else; the token is the czxid of the node.
func TestFreeLock(t *testing.T) {
	b := startBackend(t)
	var mu sync.Mutex
	var operations []uint32
	c := open(t, b.addr, Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return sent{conn, &mu, &operations}, err
	}})
	sessiontest.Release(t, sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")) // which makes the parents
	mu.Lock()
	operations = nil
	mu.Unlock()
	h := sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")
	mu.Lock()
	got := slices.Clone(operations)
	mu.Unlock()
	const create, children, read = 1, 12, 4
	if len(got) > 2 && got[2] == read { // the watch, if the acquire took as long as that
		got = got[:2]
	}
	if !slices.Equal(got, []uint32{create, children}) {
		t.Errorf("operations %v, want the creation and the look at the queue", got)
	}
	nodes, err := b.Entries(t.Context(), "orders")
	if err != nil || len(nodes) != 1 {
		t.Fatalf("nodes %v, %v", nodes, err)
	}
	if _, stat, err := b.admin.Get(nodes[0]); err != nil || stat.Czxid != h.Token() {
		t.Errorf("token %d of a node with %+v (%v)", h.Token(), stat, err)
	}
	sessiontest.Release(t, h)
}

// TestShortHoldsLeaveNoWatches: a hold that is released just when it should be watched leaves no watch at the server.
func TestShortHoldsLeaveNoWatches(t *testing.T) {
	b := startBackend(t)
	c := open(t, b.addr, Options{})
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		all.Go(func() {
			for range 50 {
				h, err := c.Mutex(name).Acquire(t.Context(), "x")
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(10 * time.Millisecond) //nolint:forbidigo // no event: as long as a hold is not watched
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	sessiontest.Release(t, sessiontest.Acquire(t, c.Mutex("a").Acquire, "x")) // behind every watch
	if answer, err := zookeepertest.Command(t.Context(), b.addr, "wchs"); err != nil ||
		!strings.Contains(answer, "Total watches:0\n") {
		t.Errorf("watches are left: %s (%v)", answer, err)
	}
	session, err := c.sessions.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	session.mu.Lock()
	defer session.mu.Unlock()
	if len(session.watches) > 0 { // replies of the next connection would wait for them
		t.Errorf("the client counts on watches that are not there: %v", session.watches)
	}
}

// TestManyWatches: all holds of a client are watched again after a connection was lost, also if that takes a large
// request.
func TestManyWatches(t *testing.T) {
	b := startBackend(t)
	s := sessiontest.Behind(t, b)
	c := open(t, s.Proxy.Addr, Options{})
	const holds, length = 250, 400 // of names; 64 KiB of paths and more
	var all sync.WaitGroup
	for n := range holds {
		all.Go(func() { sessiontest.Acquire(t, c.Mutex(fmt.Sprintf("%0*d", length, n)).Acquire, "x") })
	}
	all.Wait()
	s.WaitForWatches(t, sessiontest.Watches{Held: holds})
	s.Proxy.CutConnections()
	last := sessiontest.Acquire(t, c.Mutex("last").Acquire, "x")
	s.WaitForWatches(t, sessiontest.Watches{Held: holds + 1})
	sessiontest.Release(t, last)
}
