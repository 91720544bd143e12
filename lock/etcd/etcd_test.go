package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

const testTimeout = 30 * time.Second

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
	s.waitForKeys(t, "orders", 2)
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
	s.waitForKeys(t, "orders", 0)
}

// TestWaiterGivesUp: an acquire whose context ends leaves no key, and does not disturb those behind it.
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
	s.waitForKeys(t, "orders", 2)
	served := make(chan *Hold)
	go func() { served <- acquire(t, c.Mutex("orders"), "c") }()
	s.waitForKeys(t, "orders", 3)
	s.waitForWatchers(t, 2)
	cancel()
	if err := <-gone; !errors.Is(err, lock.ErrHeld) || !lock.Definite(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want a definite ErrHeld because of the context", err)
	}
	s.waitForKeys(t, "orders", 2)
	release(t, first)
	release(t, <-served)
}

// TestCreateAnsweredTooLate: a key whose creation is answered when the acquire has given up is removed. etcd's own Lock
// leaves it for as long as the session lives.
func TestCreateAnsweredTooLate(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	release(t, acquire(t, c.Mutex("orders"), "a")) // the lease is there
	s.relay.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := c.Mutex("orders").Acquire(ctx, "b")
		failed <- err
	}()
	s.waitForKeys(t, "orders", 1) // created, and not answered
	cancel()
	s.waitForKeys(t, "orders", 0) // it has given up: the answer does not come before that
	s.relay.Pass()
	if err := <-failed; !errors.Is(err, context.Canceled) || !Undone(err) {
		t.Errorf("%v, want the context's, undone", err)
	}
	s.waitForKeys(t, "orders", 0)
	release(t, acquire(t, c.Mutex("orders"), "c"))
}

// TestCreateArrivesTooLate: a creation that was not answered, and reaches the servers after the key was removed,
// creates nothing.
func TestCreateArrivesTooLate(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	release(t, acquire(t, c.Mutex("orders"), "a"))
	session, err := c.sessions.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := newClaim(session, &c.Mutex("orders").queue, "late")
	late.unsure = true
	if _, err := late.remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := late.create(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("%v, want ErrLost", err)
	}
	s.waitForKeys(t, "orders", 0)
}

// TestOneSession: two owners of one session do not both hold the lock. Two Mutexes of etcd's own package do.
func TestOneSession(t *testing.T) {
	c := startServer(t).client(t, Options{})
	first := acquire(t, c.Mutex("orders"), "a")
	if _, err := c.Mutex("orders").TryAcquire(t.Context(), "b"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("%v, want ErrHeld", err)
	}
	release(t, first)
}

// TestTermsOfRenewals: a keepalive counts if the same leader was the current one before and after it.
func TestTermsOfRenewals(t *testing.T) {
	start := time.Now()
	s := &session{Session: sessions.New(&sessions.Settings{Margin: time.Second})}
	s.Created(start, 10*time.Second)
	for _, r := range []struct {
		name      string
		term, now uint64
		counts    bool
	}{
		{"the first one", 2, 2, false}, {"the same leader", 2, 2, true}, {"a leader that was replaced", 2, 3, false},
		{"that one again", 2, 3, false}, {"the new leader", 3, 3, true}, {"a newer one than a majority knows", 4, 3, false},
	} {
		start = start.Add(time.Second)
		before := s.Deadline()
		if got := s.confirmed(start, r.term, r.now); got != r.counts || s.Deadline().After(before) != r.counts {
			t.Errorf("%s: %v, deadline moved by %v", r.name, got, s.Deadline().Sub(before))
		}
	}
}

// TestGrantAwaitsAKeepalive: a waiter that is served while the last keepalive that counted is older than half of the
// lease, as after the change of a leader, has the lock only after the next one; not if its context or the session ends
// first.
func TestGrantAwaitsAKeepalive(t *testing.T) {
	const lease = 9 * time.Second
	for name, c := range map[string]struct {
		age  time.Duration
		next func(*session, context.CancelFunc) // nil: it does not wait
		want error
	}{
		"recent":          {age: lease / 2},
		"sign":            {lease/2 + 1, func(s *session, _ context.CancelFunc) { s.confirmed(time.Now(), 2, 2) }, nil},
		"context ends":    {lease/2 + 1, func(_ *session, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"session is over": {lease/2 + 1, func(s *session, _ context.CancelFunc) { s.End(lock.ErrLost) }, sessions.ErrEnded},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := &Client{}
			s := &session{Session: sessions.New(&sessions.Settings{Margin: time.Second}), client: client, lease: lease, term: 2}
			s.Created(time.Now().Add(-c.age), lease)
			defer s.End(lock.ErrClosed)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var h *Hold
			err, returned := error(nil), false
			go func() {
				h, err = client.Mutex("orders").queue.grant(ctx, &claim{session: s})
				returned = true
			}()
			synctest.Wait()
			if returned != (c.next == nil) {
				t.Errorf("%s: granted at once %v, want %v", name, returned, !returned)
			}
			if c.next != nil {
				c.next(s, cancel)
				synctest.Wait()
			}
			switch {
			case !returned || !errors.Is(err, c.want) || (err == nil) != (c.want == nil):
				t.Errorf("%s: returned %v: %v, want %v", name, returned, err, c.want)
			case err == nil && time.Until(h.Deadline()) < lease/2-time.Second:
				t.Errorf("%s: the hold ends in %v", name, time.Until(h.Deadline()))
			}
		})
	}
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
	s.waitForKeys(t, "orders", 1)
	s.relay.Reset()
	h := <-served
	s.waitForKeys(t, "orders", 1) // its own, and not another of a second creation
	s.relay.Hold()
	released := make(chan error)
	go func() { released <- h.Release(context.Background()) }()
	s.waitForKeys(t, "orders", 0)
	s.relay.Reset()
	if err := <-released; err != nil {
		t.Errorf("release: %v; the node is gone by its own request", err)
	}
}

// TestKeyRemoved: a release of a hold whose key is not there is no success, and a waiter whose key is not there gets
// nothing.
func TestKeyRemoved(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	h := acquire(t, c.Mutex("orders"), "a")
	failed := make(chan error)
	go func() {
		_, err := c.Mutex("orders").Acquire(t.Context(), "b")
		failed <- err
	}()
	s.waitForKeys(t, "orders", 2)
	if _, err := s.admin.Delete(t.Context(), h.claim.entries[0].prefix, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, lock.ErrLost) {
		t.Errorf("acquire: %v, want ErrLost", err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
}

// TestLeaseRevoked: a client whose lease is gone at the servers reports the loss with the next keepalive, and
// acquires with another lease.
func TestLeaseRevoked(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{Lease: shortLease})
	h := acquire(t, c.Mutex("orders"), "a")
	if _, err := s.admin.Revoke(t.Context(), h.claim.session.id); err != nil {
		t.Fatal(err)
	}
	<-h.Done()
	if !errors.Is(h.Err(), lock.ErrLost) {
		t.Errorf("%v, want ErrLost", h.Err())
	}
	release(t, acquire(t, c.Mutex("orders"), "b"))
}

// TestLostAtTheDeadline: a client that is cut off reports the loss of its hold when the lease may have ended, before
// it is connected again and before another is granted the lock.
func TestLostAtTheDeadline(t *testing.T) {
	s := startServer(t)
	lost := make(chan time.Time, 1)
	c := s.client(t, Options{Lease: shortLease, OnLost: func(*Hold) { lost <- time.Now() }})
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
	release(t, acquire(t, c.Mutex("orders"), "c")) // with another lease
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
	s.waitForKeys(t, "orders", 1+waiters)
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

// TestClose: a closed client ends its holds at the servers at once, and acquires nothing.
func TestClose(t *testing.T) {
	s := startServer(t)
	c := s.client(t, Options{})
	h := acquire(t, c.Mutex("orders"), "a")
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.waitForKeys(t, "orders", 0)
	if _, err := c.Mutex("orders").Acquire(t.Context(), "b"); !errors.Is(err, lock.ErrClosed) {
		t.Errorf("acquire: %v, want ErrClosed", err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrClosed) {
		t.Errorf("release: %v, want ErrClosed", err)
	}
}

// TestBadInput is refused before a request is sent.
func TestBadInput(t *testing.T) {
	nowhere := connect(t, "127.0.0.1:1")
	for name, o := range map[string]Options{
		"negative lease": {Lease: -1}, "margin of a whole lease": {Lease: time.Second, Margin: time.Second},
		"negative timeout": {Timeout: -1},
	} {
		if _, err := Open(nowhere, o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := Open(nil, Options{}); err == nil {
		t.Error("no client is accepted")
	}
	c, err := Open(nowhere, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "a/b"} {
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
