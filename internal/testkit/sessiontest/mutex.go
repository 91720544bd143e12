package sessiontest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/lock"
)

// Run tests the common parts of packages lock/etcd and lock/zookeeper, each case with a server of its own.
func Run(t *testing.T, start func(testing.TB) *Proxied) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *Proxied)
	}{
		{"Mutex", testMutex},
		{"WaiterGivesUp", testWaiterGivesUp},
		{"CreateAnsweredTooLate", testCreateAnsweredTooLate},
		{"OneSession", testOneSession},
		{"ConnectionLost", testConnectionLost},
		{"EntryRemoved", testEntryRemoved},
		{"HeldEntryRemoved", testHeldEntryRemoved},
		{"LostAtTheDeadline", testLostAtTheDeadline},
		{"OnePredecessor", testOnePredecessor},
		{"Close", testClose},
		{"ReadersWriter", testReadersWriter},
		{"Semaphore", testSemaphore},
		{"Multi", testMulti},
		{"MultiConnectionLost", testMultiConnectionLost},
		{"KindsEndWithTheLease", testKindsEndWithTheLease},
		{"Events", testEvents},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, start(t)) })
	}
}

// testMutex: one owner at a time, in the order of arrival, with tokens that grow; a try does not wait.
func testMutex(t *testing.T, s *Proxied) {
	a, b := s.Client(t, Options{}), s.Client(t, Options{})
	first := Acquire(t, a.Mutex("orders").Acquire, "a")
	if _, err := b.Mutex("orders").TryAcquire(t.Context(), "b"); !errors.Is(err, lock.ErrHeld) || !lock.Definite(err) {
		t.Errorf("try: %v, want a definite ErrHeld", err)
	}
	served := start(t, b.Mutex("orders"), "b")
	s.WaitForEntries(t, "orders", 2)
	Release(t, first)
	second := granted(t, served)
	if second.Token() <= first.Token() || first.Token() <= 0 {
		t.Errorf("tokens %d and then %d", first.Token(), second.Token())
	}
	if err := first.Release(t.Context()); !errors.Is(err, lock.ErrReleased) {
		t.Errorf("second release: %v, want ErrReleased", err)
	}
	if second.Err() != nil || second.Context().Err() != nil || time.Until(second.Deadline()) <= 0 {
		t.Errorf("the second hold: %v, deadline %v", second.Err(), second.Deadline())
	}
	Release(t, second)
	if context.Cause(second.Context()) != lock.ErrReleased { //nolint:errorlint // exactly this one
		t.Errorf("cause %v, want ErrReleased", context.Cause(second.Context()))
	}
	s.WaitForEntries(t, "orders", 0)
}

// testWaiterGivesUp: an acquire whose context ends leaves no entry, and does not disturb the waiters behind it.
func testWaiterGivesUp(t *testing.T, s *Proxied) {
	mutex := func() Lock { return s.Client(t, Options{}).Mutex("orders") }
	first := Acquire(t, mutex().Acquire, "a")
	ctx, cancel := context.WithCancel(t.Context())
	gone := startIn(ctx, mutex(), "b")
	s.WaitForEntries(t, "orders", 2)
	served := start(t, mutex(), "c")
	s.WaitForEntries(t, "orders", 3)
	s.WaitForWatches(t, Watches{Held: 1, One: 2})
	cancel()
	if r := <-gone; !errors.Is(r.err, lock.ErrHeld) || !lock.Definite(r.err) || !errors.Is(r.err, context.Canceled) {
		t.Errorf("%v, want a definite ErrHeld because of the context", r.err)
	}
	s.WaitForEntries(t, "orders", 2)
	Release(t, first)
	Release(t, granted(t, served))
}

// testCreateAnsweredTooLate: an entry whose creation is answered when the acquire has given up is removed. The Locks of
// etcd's own client and of go-zookeeper leave it for as long as the session lives.
func testCreateAnsweredTooLate(t *testing.T, s *Proxied) {
	m := s.Client(t, Options{}).Mutex("orders")
	Release(t, Acquire(t, m.Acquire, "a")) // the session begins, and the parents of nodes exist
	s.abandon(t, m, "orders")
	s.WaitForEntries(t, "orders", 0)
	Release(t, Acquire(t, m.Acquire, "c"))
}

// abandon acquires a lock, which is free, and gives up after the creation of the entry and before the reply to it. Name
// is the name of the lock that has the last entry.
func (s *Proxied) abandon(t *testing.T, l Lock, name string) {
	t.Helper()
	s.Proxy.PauseReplies()
	ctx, cancel := context.WithCancel(t.Context())
	failed := startIn(ctx, l, "b")
	s.WaitForEntries(t, name, 1) // created, and not answered
	cancel()
	if s.UndoesUnanswered() {
		s.WaitForEntries(t, name, 0) // it has given up: the answer does not come before that
	}
	s.Proxy.ResumeReplies()
	if r := <-failed; !errors.Is(r.err, context.Canceled) || !s.Undone(r.err) {
		t.Errorf("created too late: %v, want the context's, undone", r.err)
	}
}

// testOneSession: two owners of one session do not both hold the lock. Two Mutexes of etcd's own package do.
func testOneSession(t *testing.T, s *Proxied) {
	m := s.Client(t, Options{}).Mutex("orders")
	first := Acquire(t, m.Acquire, "a")
	if _, err := m.TryAcquire(t.Context(), "b"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("%v, want ErrHeld", err)
	}
	Release(t, first)
}

// testConnectionLost: a creation and a release whose answers are lost with the connection are found out about and
// completed with the next one.
func testConnectionLost(t *testing.T, s *Proxied) {
	m := s.Client(t, Options{}).Mutex("orders")
	Release(t, Acquire(t, m.Acquire, "a"))
	s.loseReplies(t, m, "orders")
}

// loseReplies acquires and releases a lock while the replies to both are lost with the connection. The lock has these
// names.
func (s *Proxied) loseReplies(t *testing.T, l Lock, names ...string) {
	t.Helper()
	s.Proxy.PauseReplies()
	served := start(t, l, "b")
	s.WaitForEntries(t, names[len(names)-1], 1)
	s.cutConnections()
	h := granted(t, served)
	for _, name := range names {
		s.WaitForEntries(t, name, 1) // its own, and not another of a second creation
	}
	s.Proxy.PauseReplies()
	released := make(chan error)
	go func() { released <- h.Release(context.Background()) }()
	s.WaitForEntries(t, names[0], 0)
	s.cutConnections()
	if err := <-released; err != nil {
		t.Errorf("release: %v; the entries are gone by its own request", err)
	}
}

// testEntryRemoved: a release of a hold whose entry is not there is no success, and a waiter whose entry is not there
// gets nothing.
func testEntryRemoved(t *testing.T, s *Proxied) {
	c := s.Client(t, Options{})
	h := Acquire(t, c.Mutex("orders").Acquire, "a")
	failed := startIn(t.Context(), c.Mutex("orders"), "b")
	s.WaitForEntries(t, "orders", 2)
	if err := s.Remove(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	if r := <-failed; !errors.Is(r.err, lock.ErrLost) {
		t.Errorf("acquire: %v, want ErrLost", r.err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
}

// testHeldEntryRemoved: a hold whose entry is deleted by somebody else is reported lost while its session lasts, and
// its other entries are removed; a release is no such deletion.
func testHeldEntryRemoved(t *testing.T, s *Proxied) {
	lost := make(chan struct{}, 3)
	c := s.Client(t, Options{OnLost: func() { lost <- struct{}{} }})
	Release(t, Acquire(t, c.Mutex("orders").Acquire, "a"))
	for name, acquire := range map[string]func(context.Context, string) (Hold, error){
		"a lock": c.Mutex("orders").Acquire, "several locks": c.Multi("bills", "orders").Acquire,
	} {
		h := Acquire(t, acquire, "b")
		if err := s.Remove(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		<-h.Context().Done()
		if !errors.Is(h.Err(), lock.ErrLost) || context.Cause(h.Context()) != lock.ErrLost { //nolint:errorlint // this
			t.Errorf("%s: err %v, cause %v, want ErrLost", name, h.Err(), context.Cause(h.Context()))
		}
		<-lost
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("%s: release: %v, want ErrLost", name, err)
		}
		s.WaitForEntries(t, "bills", 0)
	}
	select {
	case <-lost:
		t.Error("a loss was reported for a hold that was released, or twice")
	default:
	}
}

// testLostAtTheDeadline: a client that is cut off reports the loss of its hold when the lease may have ended, before
// it is connected again and before another is granted the lock.
func testLostAtTheDeadline(t *testing.T, s *Proxied) {
	lost := make(chan time.Time, 1)
	c := s.Client(t, Options{Lease: ShortLease, OnLost: func() { lost <- time.Now() }})
	h := Acquire(t, c.Mutex("orders").Acquire, "a")
	s.Proxy.PauseReplies()
	next := Acquire(t, s.Direct(t).Mutex("orders").Acquire, "b")
	granted := time.Now()
	select {
	case at := <-lost:
		if at.After(granted) {
			t.Errorf("the loss was reported %v after the next grant", at.Sub(granted))
		}
	default:
		t.Error("the next owner was granted the lock before the loss was reported")
	}
	if !errors.Is(h.Err(), lock.ErrLost) || context.Cause(h.Context()) != lock.ErrLost { //nolint:errorlint // this
		t.Errorf("err %v, cause %v, want ErrLost", h.Err(), context.Cause(h.Context()))
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
	s.Proxy.ResumeReplies()
	Release(t, next)
	Release(t, Acquire(t, c.Mutex("orders").Acquire, "c")) // with another lease
}

// testOnePredecessor: a release wakes one waiter.
func testOnePredecessor(t *testing.T, s *Proxied) {
	m := s.Client(t, Options{}).Mutex("orders")
	holds := make(chan Hold)
	last := Acquire(t, m.Acquire, "a")
	const waiters = 8
	for range waiters {
		go func() { holds <- Acquire(t, m.Acquire, "w") }()
	}
	s.WaitForEntries(t, "orders", 1+waiters)
	for range waiters {
		Release(t, last)
		next := <-holds
		if next.Token() <= last.Token() {
			t.Errorf("token %d after %d", next.Token(), last.Token())
		}
		last = next
	}
	Release(t, last)
}

// testClose: a closed client ends its holds at the servers at once, and acquires nothing.
func testClose(t *testing.T, s *Proxied) {
	c := s.Client(t, Options{})
	h := Acquire(t, c.Mutex("orders").Acquire, "a")
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.WaitForEntries(t, "orders", 0)
	if _, err := c.Mutex("orders").Acquire(t.Context(), "b"); !errors.Is(err, lock.ErrClosed) {
		t.Errorf("acquire: %v, want ErrClosed", err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrClosed) {
		t.Errorf("release: %v, want ErrClosed", err)
	}
}

// BadNames are refused before a request is sent, and an acquire ends with its context. No server has the address of the
// client, which is closed.
func BadNames(t *testing.T, c Client, names ...string) {
	t.Helper()
	for _, name := range names {
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
