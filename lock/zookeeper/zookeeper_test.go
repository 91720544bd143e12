package zookeeper

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/queues"
)

const testTimeout = time.Minute

// acquire acquires the lock within testTimeout.
func acquire(t *testing.T, m *Mutex, owner string) *Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel) // not before: it would end the context of the hold
	h, err := m.Acquire(ctx, owner)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func release(t *testing.T, h *Hold) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestMutex: one owner at a time, in the order of arrival, with tokens that grow; a try does not wait.
func TestMutex(t *testing.T) {
	s := startServer(t)
	a, b := s.client(t, Options{}), s.client(t, Options{})
	first := acquire(t, a.Mutex("orders"), "a")
	if _, err := b.Mutex("orders").TryAcquire(t.Context(), "b"); !errors.Is(err, lock.ErrHeld) || !lock.Definite(err) {
		t.Errorf("try: %v, want a definite ErrHeld", err)
	}
	served := make(chan *Hold)
	go func() { served <- acquire(t, b.Mutex("orders"), "b") }()
	s.waitForNodes(t, "orders", 2)
	release(t, first)
	second := <-served
	if second.Token() <= first.Token() || first.Token() <= 0 {
		t.Errorf("tokens %d and then %d", first.Token(), second.Token())
	}
	if err := first.Release(t.Context()); !errors.Is(err, lock.ErrReleased) {
		t.Errorf("second release: %v, want ErrReleased", err)
	}
	if second.Err() != nil || second.Context().Err() != nil || time.Until(second.Deadline()) <= 0 {
		t.Errorf("the second hold: %v, deadline %v", second.Err(), second.Deadline())
	}
	release(t, second)
	if context.Cause(second.Context()) != lock.ErrReleased { //nolint:errorlint // exactly this one
		t.Errorf("cause %v, want ErrReleased", context.Cause(second.Context()))
	}
	s.waitForNodes(t, "orders", 0)
}

// TestWaiterGivesUp: an acquire whose context ends leaves no node, and does not disturb those behind it.
func TestWaiterGivesUp(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	first := acquire(t, c.Mutex("orders"), "a")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := c.Mutex("orders").Acquire(ctx, "b")
		gone <- err
	}()
	s.waitForNodes(t, "orders", 2)
	served := make(chan *Hold)
	go func() { served <- acquire(t, c.Mutex("orders"), "c") }()
	s.waitForNodes(t, "orders", 3)
	s.waitForWatches(t, 2)
	cancel()
	if err := <-gone; !errors.Is(err, lock.ErrHeld) || !lock.Definite(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want a definite ErrHeld because of the context", err)
	}
	s.waitForNodes(t, "orders", 2)
	release(t, first)
	release(t, <-served)
}

// TestCreateAnsweredTooLate: a node whose creation is answered when the acquire has given up is removed. go-zookeeper's
// own Lock leaves it for as long as the session lives.
func TestCreateAnsweredTooLate(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	release(t, acquire(t, c.Mutex("orders"), "a")) // the session begins, and the parents exist
	s.relay.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := c.Mutex("orders").Acquire(ctx, "b")
		failed <- err
	}()
	s.waitForNodes(t, "orders", 1) // created, and not answered
	cancel()
	s.relay.Pass()
	if err := <-failed; !errors.Is(err, context.Canceled) || !Undone(err) {
		t.Errorf("%v, want the context's, undone", err)
	}
	s.waitForNodes(t, "orders", 0)
	release(t, acquire(t, c.Mutex("orders"), "c"))
}

// TestConnectionLost: a creation and a release whose answers are lost with the connection are found out about and
// completed with the next one.
func TestConnectionLost(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	release(t, acquire(t, c.Mutex("orders"), "a"))
	s.relay.Hold()
	served := make(chan *Hold)
	go func() { served <- acquire(t, c.Mutex("orders"), "b") }()
	s.waitForNodes(t, "orders", 1)
	s.relay.Reset()
	h := <-served
	s.waitForNodes(t, "orders", 1) // its own, and not another of a second creation
	s.relay.Hold()
	released := make(chan error)
	go func() { released <- h.Release(context.Background()) }()
	s.waitForNodes(t, "orders", 0)
	s.relay.Reset()
	if err := <-released; err != nil {
		t.Errorf("release: %v; the node is gone by its own request", err)
	}
}

// TestNodeRemoved: a release of a hold whose node is not there is no success.
func TestNodeRemoved(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	h := acquire(t, c.Mutex("orders"), "a")
	if err := s.admin.Delete(h.claim.nodes[0].path(), -1); err != nil {
		t.Fatal(err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
}

// shortSession ends within a test. On a busy machine it must not end before the test wants it to.
const shortSession = 6 * time.Second

// TestLostAtTheDeadline: a client that is cut off reports the loss of its hold when the session may have ended, before
// it is connected again and before another is granted the lock.
func TestLostAtTheDeadline(t *testing.T) {
	s := startServer(t)
	lost := make(chan time.Time, 1)
	c := s.client(t, Options{Session: shortSession, OnLost: func(*Hold) { lost <- time.Now() }})
	h := acquire(t, c.Mutex("orders"), "a")
	s.relay.Hold()
	other := s.direct(t)
	next := acquire(t, other.Mutex("orders"), "b")
	granted := time.Now()
	select {
	case at := <-lost:
		if at.After(granted) {
			t.Errorf("the loss was reported %v after the next grant", at.Sub(granted))
		}
	default:
		t.Error("the next owner was granted the lock before the loss was reported")
	}
	if !errors.Is(h.Err(), lock.ErrLost) || context.Cause(h.Context()) != lock.ErrLost { //nolint:errorlint // exactly this
		t.Errorf("err %v, cause %v, want ErrLost", h.Err(), context.Cause(h.Context()))
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
	s.relay.Pass()
	release(t, next)
	release(t, acquire(t, c.Mutex("orders"), "c")) // with another session
}

// TestOnePredecessor: a release wakes one waiter.
func TestOnePredecessor(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	holds := make(chan *Hold)
	first := acquire(t, c.Mutex("orders"), "a")
	const waiters = 8
	for range waiters {
		go func() { holds <- acquire(t, c.Mutex("orders"), "w") }()
	}
	s.waitForNodes(t, "orders", 1+waiters)
	last := first
	for range waiters {
		release(t, last)
		next := <-holds
		if next.Token() <= last.Token() {
			t.Errorf("token %d after %d", next.Token(), last.Token())
		}
		last = next
	}
	release(t, last)
}

// TestPredecessor: of several nodes before one it is the last, also where the numbers wrap.
func TestPredecessor(t *testing.T) {
	mutex := queue{kind: queues.Exclusive()}
	for own, want := range map[string]string{
		"a-lock-2147483646": "", "b-lock-2147483647": "a-lock-2147483646", "c-lock--2147483648": "b-lock-2147483647",
		"d-lock--2147483647": "c-lock--2147483648",
	} {
		names := []string{"d-lock--2147483647", "b-lock-2147483647", "a-lock-2147483646", "c-lock--2147483648"}
		if got := mutex.turn(own, names); got.After != want || !got.Found {
			t.Errorf("before %s: %q, %v, want %q", own, got.After, got.Found, want)
		}
	}
	if mutex.turn("x-lock-0000000001", []string{"y-lock-0000000001"}).Found {
		t.Error("a node that is not there was found")
	}
}

// TestClose: a closed client ends its holds at the servers at once, and acquires nothing.
func TestClose(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	h := acquire(t, c.Mutex("orders"), "a")
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.waitForNodes(t, "orders", 0)
	if _, err := c.Mutex("orders").Acquire(t.Context(), "b"); !errors.Is(err, lock.ErrClosed) {
		t.Errorf("acquire: %v, want ErrClosed", err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrClosed) {
		t.Errorf("release: %v, want ErrClosed", err)
	}
}

// TestBadInput is refused before a request is sent.
func TestBadInput(t *testing.T) {
	for name, o := range map[string]Options{
		"negative session": {Session: -1}, "margin of a whole session": {Session: time.Second, Margin: time.Second},
		"negative timeout": {Timeout: -1}, "relative root": {Root: "locks"},
	} {
		if _, err := Open([]string{"127.0.0.1:1"}, o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := Open(nil, Options{}); err == nil {
		t.Error("no server is accepted")
	}
	c, err := Open([]string{"127.0.0.1:1"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "a/b"} {
		if _, err := c.Mutex(name).Acquire(t.Context(), ""); err == nil || !lock.Definite(err) {
			t.Errorf("name %q: %v, want a definite error", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.Mutex("x").Acquire(ctx, ""); !errors.Is(err, context.DeadlineExceeded) || !lock.Definite(err) {
		t.Errorf("no server: %v, want the context's", err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
