package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// happyPath is the behavior of a lock without faults.
func happyPath() []behavior {
	return []behavior{
		{"acquire-and-release", nil, acquireAndRelease},
		{"try-does-not-wait", nil, func(t *testing.T, s *fixture) {
			h := s.acquire(t, s.a, s.longLease())
			s.mustBeHeld(t, s.b)
			s.mustBeHeld(t, s.a) // each acquire of a client is a new owner
			s.release(t, h)
			s.mustBeFree(t, s.b)
		}},
		{"mutual-exclusion", nil, mutualExclusion},
		{"re-entry-counts", reentrant, reentry},
		{"no-re-entry-unless-claimed", func(s Spec) bool { return !s.Reentrant }, noReentry},
		{"waiter-is-woken", nil, func(t *testing.T, s *fixture) {
			s.handOver(t, s.acquire(t, s.a, s.longLease()), s.b)
		}},
		{"all-waiters-are-granted", nil, allWaitersGranted},
		{"wait-ends-with-its-context", nil, waitEnds},
		{"tokens-grow", fenced, func(t *testing.T, s *fixture) {
			var last int64
			for i := range 6 {
				h := s.acquire(t, []Locker{s.a, s.b}[i%2], s.longLease())
				if h.Token() <= last {
					t.Fatalf("token %d after %d", h.Token(), last)
				}
				last = h.Token()
				s.release(t, h)
			}
		}},
		{"names-are-independent", nil, func(t *testing.T, s *fixture) {
			h := s.acquire(t, s.a, s.longLease())
			other := *s
			other.name = s.name + "-other"
			other.mustBeFree(t, s.b)
			s.release(t, h)
		}},
		{"braces-in-a-name", nil, func(t *testing.T, s *fixture) {
			tagged := *s
			tagged.name = "{locktest}:" + s.name
			h := tagged.acquire(t, s.a, s.longLease())
			tagged.mustBeHeld(t, s.b)
			tagged.release(t, h)
			tagged.mustBeFree(t, s.b)
		}},
		{"empty-name-is-rejected", nil, func(t *testing.T, s *fixture) {
			if h, err := s.a.TryAcquire(context.Background(), "", s.longLease()); err == nil {
				_ = h.Release(context.Background())
				t.Error("a lock with an empty name was granted")
			}
		}},
	}
}

func acquireAndRelease(t *testing.T, s *fixture) {
	for range 3 {
		for _, l := range []Locker{s.a, s.b} {
			h := s.acquire(t, l, s.longLease())
			if ctx := h.Context(); ctx != nil && ctx.Err() != nil {
				t.Errorf("the context of a new hold has ended: %v", context.Cause(ctx))
			}
			s.release(t, h)
			if ctx := h.Context(); ctx != nil && ctx.Err() == nil {
				t.Error("the context of a released hold has not ended")
			}
		}
	}
	s.awaitClean(t, long+timeout, "only LeftKeys are left at the servers")
}

// mutualExclusion counts the holders; the race detector checks unguarded.
func mutualExclusion(t *testing.T, s *fixture) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*timeout)
	defer cancel()
	var inside atomic.Int32
	unguarded := 0
	var wg sync.WaitGroup
	const clients, rounds = 8, 5
	for i := range clients {
		l := []Locker{s.a, s.b}[i%2]
		wg.Go(func() {
			for range rounds {
				h, err := l.Acquire(ctx, s.name, s.longLease())
				if err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d holders at once", n)
				}
				unguarded++
				inside.Add(-1)
				if err := h.Release(ctx); err != nil {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if unguarded != clients*rounds {
		t.Errorf("%d of %d critical sections were counted", unguarded, clients*rounds)
	}
}

func reentry(t *testing.T, s *fixture) {
	o := s.longLease()
	o.Owner = "the-owner"
	outer, inner := s.acquire(t, s.a, o), s.acquire(t, s.a, o)
	if outer.Token() != inner.Token() {
		t.Errorf("tokens %d and %d of nested holds: the inner one would fence off the outer", outer.Token(), inner.Token())
	}
	s.mustBeHeld(t, s.b)
	s.release(t, inner)
	if ctx := outer.Context(); ctx != nil && ctx.Err() != nil {
		t.Error("the release of the inner hold ended the outer one")
	}
	s.mustBeHeld(t, s.b)
	s.release(t, outer)
	s.mustBeFree(t, s.b)
}

func noReentry(t *testing.T, s *fixture) {
	o := s.longLease()
	o.Owner = "the-owner"
	h := s.acquire(t, s.a, o)
	if second, err := s.a.TryAcquire(context.Background(), s.name, o); err == nil {
		_ = second.Release(context.Background())
		t.Error("the same owner acquired the lock twice, but the lock does not claim to be reentrant")
	}
	s.release(t, h)
	s.mustBeFree(t, s.b)
}

// allWaitersGranted: 20 waiters acquire and release the lock one after the other.
func allWaitersGranted(t *testing.T, s *fixture) {
	const waiters = 20
	ctx, cancel := context.WithTimeout(context.Background(), 4*timeout)
	defer cancel()
	h := s.acquire(t, s.a, s.longLease())
	done := make(chan error, waiters)
	for i := range waiters {
		l := []Locker{s.a, s.b}[i%2]
		go func() {
			h, err := l.Acquire(ctx, s.name, s.longLease())
			if err == nil {
				err = h.Release(ctx)
			}
			done <- err
		}()
	}
	s.awaitWaiting(t)
	s.release(t, h)
	for range waiters {
		if err := <-done; err != nil {
			t.Fatalf("a waiter failed: %v", err)
		}
	}
}

// waitEnds: a waiter whose context ends returns in time and leaves nothing behind.
func waitEnds(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, s.longLease())
	for _, end := range []string{"deadline", "cancel"} {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		waiting := s.acquireAsync(ctx, s.b, s.longLease())
		if end == "cancel" {
			s.awaitWaiting(t)
			cancel()
		}
		o := await(t, timeout, waiting)
		cancel()
		if o.err == nil {
			t.Fatalf("%s: the lock was granted while it is held", end)
		}
		if !errors.Is(o.err, s.spec.ErrHeld) && !errors.Is(o.err, ctx.Err()) {
			t.Errorf("%s: %v, want %v or the error of the context", end, o.err, s.spec.ErrHeld)
		}
	}
	s.release(t, h)
	s.mustBeFree(t, s.b)
	if left := fmt.Sprint(s.leftovers(t)); left != "[]" {
		s.awaitClean(t, long+timeout, "the waiter has left nothing behind: "+left)
	}
}
