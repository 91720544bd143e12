package sessiontest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/lock"
)

// testReadersWriter: readers share the lock, a writer waits for all of them, and readers that come later for it.
func testReadersWriter(t *testing.T, s *Proxied) {
	reader, writer := s.Client(t, Options{}).Reader("table"), s.Client(t, Options{}).Writer("table")
	one, two := Acquire(t, reader.Acquire, "r1"), Acquire(t, reader.Acquire, "r2")
	if _, err := writer.TryAcquire(t.Context(), "w"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a writer beside readers: %v, want ErrHeld", err)
	}
	writes := start(t, writer, "w")
	s.WaitForEntries(t, "table", 3)
	late := start(t, s.Client(t, Options{}).Reader("table"), "r3")
	s.WaitForEntries(t, "table", 4)
	s.WaitForWatches(t, Watches{Held: 2, One: 2})
	if _, err := reader.TryAcquire(t.Context(), "r4"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a reader behind a waiting writer: %v, want ErrHeld", err)
	}
	Release(t, two) // the writer watches this one, and then the other
	s.WaitForWatches(t, Watches{Held: 1, One: 2})
	waits(t, writes, "a writer beside one reader")
	Release(t, one)
	w := granted(t, writes)
	waits(t, late, "a reader beside a writer")
	if w.Token() <= two.Token() {
		t.Errorf("token %d of a writer after %d", w.Token(), two.Token())
	}
	Release(t, w)
	r3, r4 := granted(t, late), Acquire(t, reader.Acquire, "r4")
	Release(t, r3)
	Release(t, r4)
	s.WaitForEntries(t, "table", 0)
}

// testSemaphore: as many permits are out as there are, whole requests are served in turn, and one release serves all
// that fit.
func testSemaphore(t *testing.T, s *Proxied) {
	const total = 3
	permits := func(n int) Lock { return s.Client(t, Options{EventsOnly: true}).Permits("pool", n, total) }
	take := func(n int) <-chan result { return start(t, permits(n), "") }
	all := granted(t, take(total))
	if _, err := permits(1).TryAcquire(t.Context(), "x"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a fourth permit of three: %v, want ErrHeld", err)
	}
	one := take(1)
	s.WaitForEntries(t, "pool", 2)
	another := take(1)
	s.WaitForEntries(t, "pool", 3)
	two := take(2)
	s.WaitForEntries(t, "pool", 4)
	small := take(1)
	s.WaitForEntries(t, "pool", 5)
	s.WaitForWatches(t, Watches{Held: 1, One: 3, All: 1})
	Release(t, all) // one and another fit; two has to wait for one of them
	h1, h2 := granted(t, one), granted(t, another)
	waits(t, two, "a request for two of three, of which one is free,")
	waits(t, small, "a small request behind a large one")
	Release(t, h1)
	h3 := granted(t, two)
	waits(t, small, "a request for a fourth permit")
	Release(t, h2) // not the one before it
	h4 := granted(t, small)
	Release(t, h3)
	Release(t, h4)
	s.WaitForEntries(t, "pool", 0)
	for _, n := range []int{-1, 0, total + 1} {
		if _, err := permits(n).TryAcquire(t.Context(), "x"); !errors.Is(err, lock.ErrPermits) ||
			!lock.Definite(err) {
			t.Errorf("%d of %d permits: %v, want a definite ErrPermits", n, total, err)
		}
	}
}

// testMulti: several locks are held together; orders that cross do not block each other for good, and a request that
// gives up leaves nothing.
func testMulti(t *testing.T, s *Proxied) {
	c := s.Client(t, Options{})
	both := Acquire(t, c.Multi("a", "b", "a").Acquire, "x")
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
	s.WaitForEntries(t, "c", 0)
	Release(t, both)
	crossOrders(t, c)
	h := Acquire(t, c.Multi("a", "b").Acquire, "x")
	if err := s.Remove(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of locks one of which is lost: %v, want ErrLost", err)
	}
	s.WaitForEntries(t, "a", 0)
}

// crossOrders acquires two locks together many times, in both orders.
func crossOrders(t *testing.T, c Client) {
	t.Helper()
	done := make(chan error)
	const clients, rounds = 4, 5
	for i := range clients {
		m := c.Multi("a", "b")
		if i%2 == 1 {
			m = c.Multi("b", "a")
		}
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), Timeout)
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
}

// testMultiConnectionLost: the replies to the creation and the release of several entries are lost with the connection,
// and that to a creation comes too late.
func testMultiConnectionLost(t *testing.T, s *Proxied) {
	m := s.Client(t, Options{}).Multi("a", "b")
	Release(t, Acquire(t, m.Acquire, "x"))
	s.loseReplies(t, m, "a", "b")
	s.abandon(t, m, "b")
	s.WaitForEntries(t, "a", 0)
	s.WaitForEntries(t, "b", 0)
}

// testKindsEndWithTheLease: holds of every kind are lost together, and are then free for others.
func testKindsEndWithTheLease(t *testing.T, s *Proxied) {
	lost := make(chan struct{}, 4)
	c := s.Client(t, Options{Lease: ShortLease, OnLost: func() { lost <- struct{}{} }})
	Acquire(t, c.Mutex("m").Acquire, "")
	Acquire(t, c.Reader("rw").Acquire, "")
	Acquire(t, c.Multi("x", "y").Acquire, "")
	Acquire(t, c.Permits("s", 2, 2).TryAcquire, "")
	s.Proxy.PauseReplies()
	other := s.Direct(t)
	next := Acquire(t, other.Writer("rw").Acquire, "next")
	for range cap(lost) {
		<-lost // before the next grant, or this blocks until the test times out
	}
	Release(t, next)
	Release(t, Acquire(t, other.Multi("x", "y").Acquire, "next"))
}

// testEvents: a program learns of each grant, refusal, release and loss.
func testEvents(t *testing.T, s *Proxied) {
	events := make(chan lock.Event, 100)
	c := s.Client(t, Options{Observe: func(e lock.Event) {
		if e.Kind != lock.Renewed { // at any time
			events <- e
		}
	}})
	expect := func(want lock.Event) {
		t.Helper()
		select {
		case got := <-events:
			if wrong := !errors.Is(got.Err, want.Err); wrong || (got.Took > 0) != (want.Kind != lock.Lost) {
				t.Errorf("event %+v, want %+v", got, want)
			}
			if (got.Context != nil) != (want.Kind != lock.Lost) {
				t.Errorf("event %s has context %v", got.Kind, got.Context)
			}
			got.Err, got.Took, got.Context, want.Err = nil, 0, nil, nil
			if got != want {
				t.Errorf("event %+v, want %+v", got, want)
			}
		case <-time.After(Timeout):
			t.Fatalf("no event, want %+v", want)
		}
	}
	h := Acquire(t, c.Mutex("orders").Acquire, "a")
	a := lock.Event{Kind: lock.Acquired, Primitive: "lock", Name: "orders", Owner: "a", Token: h.Token()}
	expect(a)
	if _, err := c.Mutex("orders").TryAcquire(t.Context(), "b"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("try: %v, want ErrHeld", err)
	}
	expect(lock.Event{Kind: lock.NotAcquired, Primitive: "lock", Name: "orders", Owner: "b", Err: lock.ErrHeld})
	if err := s.Remove(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	a.Kind, a.Err = lock.Lost, lock.ErrLost
	expect(a)
	_ = h.Release(t.Context())
	a.Kind = lock.Released
	expect(a)
	h = Acquire(t, c.Permits("seats", 2, 3).Acquire, "c")
	p := lock.Event{Kind: lock.Acquired, Primitive: "permits", Name: "seats", Owner: "c", Permits: 2, Token: h.Token()}
	expect(p)
	Release(t, h)
	p.Kind = lock.Released
	expect(p)
}
