package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/internal/sessions"
)

// TestLocks: the common parts of packages etcd and zookeeper.
func TestLocks(t *testing.T) { sessiontest.Run(t, startServer) }

// TestConformance: every kind of lock passes the tests of package locktest, where its faults do not need Redis.
func TestConformance(t *testing.T) { sessiontest.Conformance(t, startServer) }

// TestOneSessionOfConcurrency: two mutexes of etcd's package concurrency are held at once if they share a session. Ours
// are not (TestLocks/OneSession).
func TestOneSessionOfConcurrency(t *testing.T) {
	session, err := concurrency.NewSession(startBackend(t).admin)
	if err != nil {
		t.Fatal(err)
	}
	for _, owner := range []string{"first", "second"} {
		if err := concurrency.NewMutex(session, "/orders").TryLock(t.Context()); err != nil {
			t.Errorf("%s: %v, want no error: docs/contributors/hypotheses.md says that both hold the lock", owner, err)
		}
	}
}

// TestCreateArrivesTooLate: a creation that was not answered, and reaches the servers after the key was removed,
// creates nothing.
func TestCreateArrivesTooLate(t *testing.T) {
	b := startBackend(t)
	c := open(t, b.addr, Options{})
	sessiontest.Release(t, sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a"))
	session, err := c.sessions.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := newClaim(session, &c.Mutex("orders").queue, "late")
	late.unsure = true
	if err := late.remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := late.create(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("%v, want ErrLost", err)
	}
	if keys, err := b.Entries(t.Context(), "orders"); err != nil || len(keys) > 0 {
		t.Errorf("keys %q (%v), want none", keys, err)
	}
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

// TestLeaseRevoked: a client whose lease is gone at the servers reports the loss with the next keepalive, and
// acquires with another lease.
func TestLeaseRevoked(t *testing.T) {
	b := startBackend(t)
	c := open(t, b.addr, Options{Lease: sessiontest.ShortLease})
	h := sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")
	if _, err := b.admin.Revoke(t.Context(), h.claim.session.id); err != nil {
		t.Fatal(err)
	}
	<-h.Done()
	if !errors.Is(h.Err(), lock.ErrLost) {
		t.Errorf("%v, want ErrLost", h.Err())
	}
	sessiontest.Release(t, sessiontest.Acquire(t, c.Mutex("orders").Acquire, "b"))
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
	sessiontest.BadNames(t, clientOf(c), "", "a/b")
}
