package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/sessiontest"
)

// TestReadersWriter: readers share the lock, a writer waits for all of them, and readers that come later for it.
func TestReadersWriter(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	rw := c.RW("table")
	one, two := acquire(t, rw.Read(), "r1"), acquire(t, rw.Read(), "r2")
	if _, err := rw.Write().TryAcquire(t.Context(), "w"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a writer beside readers: %v, want ErrHeld", err)
	}
	writer := sessiontest.AsyncAcquire(t, func(ctx context.Context) (*Hold, error) { return rw.Write().Acquire(ctx, "w") })
	s.waitForKeys(t, "table", 3)
	late := sessiontest.AsyncAcquire(t, func(ctx context.Context) (*Hold, error) { return rw.Read().Acquire(ctx, "r3") })
	s.waitForKeys(t, "table", 4)
	s.waitForWatchers(t, 2)
	if _, err := rw.Read().TryAcquire(t.Context(), "r4"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a reader behind a waiting writer: %v, want ErrHeld", err)
	}
	release(t, two) // the writer watches this one, and then the other
	s.waitForWatchers(t, 2)
	sessiontest.Waits(t, writer, "a writer beside one reader")
	release(t, one)
	w := sessiontest.Granted(t, writer)
	sessiontest.Waits(t, late, "a reader beside a writer")
	if w.Token() <= two.Token() {
		t.Errorf("token %d of a writer after %d", w.Token(), two.Token())
	}
	release(t, w)
	r3, r4 := sessiontest.Granted(t, late), acquire(t, rw.Read(), "r4")
	release(t, r3)
	release(t, r4)
	s.waitForKeys(t, "table", 0)
}

// TestSemaphore: as many permits are out as there are, whole requests are served in turn, and one release serves all
// that fit.
func TestSemaphore(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{Lease: time.Hour}) // waiters look again only when an event wakes them
	sem := c.Semaphore("pool", 3)
	take := func(n int) <-chan sessiontest.Result[*Hold] {
		return sessiontest.AsyncAcquire(t, func(ctx context.Context) (*Hold, error) { return sem.Acquire(ctx, fmt.Sprint(n), n) })
	}
	all := sessiontest.Granted(t, take(3))
	if _, err := sem.TryAcquire(t.Context(), "x", 1); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a fourth permit of three: %v, want ErrHeld", err)
	}
	one := take(1)
	s.waitForKeys(t, "pool", 2)
	another := take(1)
	s.waitForKeys(t, "pool", 3)
	two := take(2)
	s.waitForKeys(t, "pool", 4)
	small := take(1)
	s.waitForKeys(t, "pool", 5)
	s.waitForWatchers(t, 4)
	release(t, all) // one and another fit; two has to wait for one of them
	h1, h2 := sessiontest.Granted(t, one), sessiontest.Granted(t, another)
	sessiontest.Waits(t, two, "a request for two of three, of which one is free,")
	sessiontest.Waits(t, small, "a small request behind a large one")
	release(t, h1)
	h3 := sessiontest.Granted(t, two)
	sessiontest.Waits(t, small, "a request for a fourth permit")
	release(t, h2) // not the one before it
	h4 := sessiontest.Granted(t, small)
	release(t, h3)
	release(t, h4)
	s.waitForKeys(t, "pool", 0)
	for _, n := range []int{-1, 0, 4} {
		if _, err := sem.TryAcquire(t.Context(), "x", n); !errors.Is(err, lock.ErrPermits) || !lock.Definite(err) {
			t.Errorf("%d of 3 permits: %v, want a definite ErrPermits", n, err)
		}
	}
}

// TestMulti: several locks are held together; orders that cross do not block each other for good, and a request that
// gives up leaves nothing.
func TestMulti(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	both := acquire(t, c.Multi("a", "b", "a"), "x")
	if got := both.Names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("names %q", got)
	}
	for _, name := range both.Names() {
		if _, err := c.Mutex(name).TryAcquire(t.Context(), "y"); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("lock %s: %v, want ErrHeld", name, err)
		}
	}
	if _, err := c.Multi("b", "c").TryAcquire(t.Context(), "y"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("try: %v, want ErrHeld", err)
	}
	s.waitForKeys(t, "c", 0)
	release(t, both)
	done := make(chan error)
	const clients, rounds = 4, 5
	for i := range clients {
		m := c.Multi("a", "b")
		if i%2 == 1 {
			m = c.Multi("b", "a")
		}
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			for range rounds {
				h, err := m.Acquire(ctx, "z")
				if err == nil {
					err = h.Release(ctx)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range clients {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	h := acquire(t, c.Multi("a", "b"), "x")
	if _, err := s.admin.Delete(t.Context(), h.claim.entries[1].key()); err != nil {
		t.Fatal(err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of locks one of which is lost: %v, want ErrLost", err)
	}
	s.waitForKeys(t, "a", 0)
}

// TestMultiConnectionLost: the answers to the creation and the release of several keys are lost with the connection.
func TestMultiConnectionLost(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	m := c.Multi("a", "b")
	release(t, acquire(t, m, "x"))
	s.relay.Hold()
	served := sessiontest.AsyncAcquire(t, func(ctx context.Context) (*Hold, error) { return m.Acquire(ctx, "x") })
	s.waitForKeys(t, "b", 1)
	s.relay.Reset()
	h := sessiontest.Granted(t, served)
	s.waitForKeys(t, "a", 1)
	s.waitForKeys(t, "b", 1) // and not another of a second creation
	s.relay.Hold()
	released := make(chan error)
	go func() { released <- h.Release(context.Background()) }()
	s.waitForKeys(t, "a", 0)
	s.relay.Reset()
	if err := <-released; err != nil {
		t.Errorf("release: %v; the keys are gone by its own request", err)
	}
	s.relay.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := m.Acquire(ctx, "y")
		failed <- err
	}()
	s.waitForKeys(t, "b", 1)
	cancel()
	s.waitForKeys(t, "b", 0) // it has given up: the answer does not come before that
	s.relay.Pass()
	if err := <-failed; !Undone(err) {
		t.Errorf("created too late: %v, want undone", err)
	}
	s.waitForKeys(t, "a", 0)
	s.waitForKeys(t, "b", 0)
}

// TestKindsEndWithTheLease: holds of every kind are lost together, and are then free for others.
func TestKindsEndWithTheLease(t *testing.T) {
	s := startServer(t)
	lost := make(chan *Hold, 4)
	c := s.client(t, Options{Lease: shortLease, OnLost: func(h *Hold) { lost <- h }})
	acquire(t, c.Mutex("m"), "")
	acquire(t, c.RW("rw").Read(), "")
	acquire(t, c.Multi("x", "y"), "")
	if _, err := c.Semaphore("s", 2).TryAcquire(t.Context(), "", 2); err != nil {
		t.Fatal(err)
	}
	s.relay.Hold()
	other := s.direct(t)
	next := acquire(t, other.RW("rw").Write(), "next")
	for range cap(lost) {
		<-lost // before the next grant, or this blocks until the test times out
	}
	release(t, next)
	release(t, acquire(t, other.Multi("x", "y"), "next"))
}
