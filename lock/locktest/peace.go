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

// peace is what a lock does when nothing goes wrong.
var peace = []behaviour{
	{"taken-and-given-back", nil, takenAndGivenBack},
	{"try-does-not-wait", nil, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, s.long())
		s.refused(t, s.b)
		s.refused(t, s.a) // a new owner of the same program is another owner
		s.release(t, h)
		s.free(t, s.b)
	}},
	{"contenders-take-turns", nil, contendersTakeTurns},
	{"re-entered-as-often-as-declared", reentrant, reentered},
	{"not-re-entered-unless-declared", func(s Spec) bool { return !s.Reentrant }, notReentered},
	{"waiter-is-woken", nil, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, s.long())
		next := s.later(context.Background(), s.b, s.long())
		s.asleep(t)
		s.release(t, h)
		s.release(t, served(t, s.spec.wakes(), next))
	}},
	{"all-waiters-are-served", nil, allAreServed},
	{"waiting-ends-with-its-context", nil, waitingEnds},
	{"tokens-grow", fences, func(t *testing.T, s *scene) {
		var last uint64
		for i := range 6 {
			h := s.acquire(t, []Locker{s.a, s.b}[i%2], s.long())
			if h.Token() <= last {
				t.Fatalf("token %d after %d", h.Token(), last)
			}
			last = h.Token()
			s.release(t, h)
		}
	}},
	{"names-are-apart", nil, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, s.long())
		other := *s
		other.name = s.name + "-other"
		other.free(t, s.b)
		s.release(t, h)
	}},
	{"braces-in-a-name", nil, func(t *testing.T, s *scene) {
		tagged := *s
		tagged.name = "{locktest}:" + s.name
		h := tagged.acquire(t, s.a, s.long())
		tagged.refused(t, s.b)
		tagged.release(t, h)
		tagged.free(t, s.b)
	}},
	{"empty-name-is-refused", nil, func(t *testing.T, s *scene) {
		if h, err := s.a.TryAcquire(context.Background(), "", s.long()); err == nil {
			_ = h.Release(context.Background())
			t.Error("a lock without a name was granted")
		}
	}},
}

func takenAndGivenBack(t *testing.T, s *scene) {
	for range 3 {
		for _, l := range []Locker{s.a, s.b} {
			h := s.acquire(t, l, s.long())
			if ctx := h.Context(); ctx != nil && ctx.Err() != nil {
				t.Errorf("the context of a new hold has ended: %v", context.Cause(ctx))
			}
			s.release(t, h)
			if ctx := h.Context(); ctx != nil && ctx.Err() == nil {
				t.Error("the context of a hold that was released has not ended")
			}
		}
	}
	Eventually(t, patience, "nothing is left at the servers but what the lock says", func() bool {
		return len(s.rest()) == 0
	})
}

// contendersTakeTurns counts who is inside; the race detector watches, too.
func contendersTakeTurns(t *testing.T, s *scene) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	var inside atomic.Int32
	unguarded := 0
	var wg sync.WaitGroup
	const programs, rounds = 8, 5
	for i := range programs {
		l := []Locker{s.a, s.b}[i%2]
		wg.Go(func() {
			for range rounds {
				h, err := l.Acquire(ctx, s.name, s.long())
				if err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d inside at once", n)
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
	if unguarded != programs*rounds {
		t.Errorf("%d of %d turns were counted", unguarded, programs*rounds)
	}
}

func reentered(t *testing.T, s *scene) {
	o := s.long()
	o.Owner = "the-owner"
	outer, inner := s.acquire(t, s.a, o), s.acquire(t, s.a, o)
	if outer.Token() != inner.Token() {
		t.Errorf("tokens %d and %d of one stay: the inner one would fence out the outer", outer.Token(), inner.Token())
	}
	s.refused(t, s.b)
	s.release(t, inner)
	if ctx := outer.Context(); ctx != nil && ctx.Err() != nil {
		t.Error("the release of the inner hold has ended the outer one")
	}
	s.refused(t, s.b)
	s.release(t, outer)
	s.free(t, s.b)
}

func notReentered(t *testing.T, s *scene) {
	o := s.long()
	o.Owner = "the-owner"
	h := s.acquire(t, s.a, o)
	if again, err := s.a.TryAcquire(context.Background(), s.name, o); err == nil {
		_ = again.Release(context.Background())
		t.Error("the same owner was granted the lock twice, and the lock does not say so")
	}
	s.release(t, h)
	s.free(t, s.b)
}

// allAreServed: 20 waiters, each leaves room for the next.
func allAreServed(t *testing.T, s *scene) {
	const waiters = 20
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	h := s.acquire(t, s.a, s.long())
	done := make(chan error, waiters)
	for i := range waiters {
		l := []Locker{s.a, s.b}[i%2]
		go func() {
			h, err := l.Acquire(ctx, s.name, s.long())
			if err == nil {
				err = h.Release(ctx)
			}
			done <- err
		}()
	}
	s.asleep(t)
	s.release(t, h)
	for range waiters {
		if err := <-done; err != nil {
			t.Fatalf("a waiter was not served: %v", err)
		}
	}
}

// waitingEnds: who leaves is told so in time, and leaves nothing behind.
func waitingEnds(t *testing.T, s *scene) {
	h := s.acquire(t, s.a, s.long())
	for _, end := range []string{"deadline", "cancel"} {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		waiting := s.later(ctx, s.b, s.long())
		if end == "cancel" {
			s.asleep(t)
			cancel()
		}
		o := soon(t, patience, waiting)
		cancel()
		if o.err == nil {
			t.Fatalf("%s: the lock was granted while it is held", end)
		}
		if !errors.Is(o.err, s.spec.Held) && !errors.Is(o.err, ctx.Err()) {
			t.Errorf("%s: %v, want one that says %v or why the context ended", end, o.err, s.spec.Held)
		}
	}
	s.release(t, h)
	s.free(t, s.b)
	if rest := fmt.Sprint(s.rest()); rest != "[]" {
		Eventually(t, patience, "the one who left has left nothing behind: "+rest, func() bool {
			return len(s.rest()) == 0
		})
	}
}
