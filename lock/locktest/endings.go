package locktest

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

// short is a lease that runs out within a test.
const short = 250 * time.Millisecond

// late is by how much a busy machine may be late with a timer.
const late = 2 * time.Second

// endings is how holds end, in all ways.
var endings = []behaviour{
	{"lease-runs-out", leased, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, Ask{Lease: short})
		next := s.acquire(t, s.b, s.long()) // nobody has released
		if err := h.Release(context.Background()); !errors.Is(err, s.spec.Lost) {
			t.Errorf("release after the lease: %v, want %v", err, s.spec.Lost)
		}
		s.refused(t, s.a) // the release of the old hold took nothing from the new one
		s.release(t, next)
	}},
	{"release-after-lease-is-told", leased, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, Ask{Lease: short})
		<-time.After(2 * short) // that the lease is over is a matter of time alone
		if err := h.Release(context.Background()); !errors.Is(err, s.spec.Lost) {
			t.Errorf("release after the lease, nobody else there: %v, want %v", err, s.spec.Lost)
		}
		s.free(t, s.b)
	}},
	{"lease-is-renewed", renews, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, Ask{})
		ended := time.After(2 * s.spec.Lease)
		ctx := context.Background()
		if s.spec.Tells {
			ctx = h.Context()
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the hold ended: %v", context.Cause(ctx))
		case <-ended:
		}
		s.refused(t, s.b)
		s.release(t, h)
		s.free(t, s.b)
	}},
	{"renewal-ends-with-the-program", renews, func(t *testing.T, s *scene) {
		one := s.bench.open(t)
		s.acquire(t, one, Ask{})
		shut(t, one)
		s.release(t, s.acquire(t, s.b, s.long())) // after the lease
	}},
	{"loss-is-told", tells, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, Ask{})
		s.bench.wipe()
		select {
		case <-h.Context().Done():
		case <-time.After(s.spec.Lease + patience/2):
			t.Fatal("the hold is gone and its context lives on")
		}
		if err := h.Release(context.Background()); !errors.Is(err, s.spec.Lost) {
			t.Errorf("release of what was lost: %v, want %v", err, s.spec.Lost)
		}
		s.free(t, s.b)
	}},
	{"loss-is-told-in-time-without-servers", tells, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, Ask{Lease: short})
		for _, p := range s.bench.proxies {
			p.Hold("e") // whatever is asked
		}
		select {
		case <-h.Context().Done():
		case <-time.After(short + late):
			if h.Context().Err() == nil {
				t.Error("the lease is over and the context of the hold lives on")
			}
		}
	}},
	{"released-twice", nil, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, s.long())
		s.release(t, h)
		next := s.acquire(t, s.b, s.long())
		if err := h.Release(context.Background()); err == nil {
			t.Error("a second release was no error")
		}
		s.refused(t, s.a)
		s.release(t, next)
	}},
	{"released-with-a-context-that-has-ended", nil, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, s.long())
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := h.Release(ctx); err != nil {
			t.Errorf("release: %v", err)
		}
		s.free(t, s.b)
	}},
	{"close-leaves-nothing", nil, closeLeavesNothing},
	{"closed-is-closed", nil, func(t *testing.T, s *scene) {
		one := s.bench.open(t)
		shut(t, one)
		if h, err := one.TryAcquire(context.Background(), s.name, s.long()); err == nil {
			_ = h.Release(context.Background())
			t.Error("a program that was closed was granted a lock")
		}
		s.free(t, s.b)
	}},
}

// gone says whether every key of the lock that is not said to stay has left the servers.
func (s *scene) gone() bool { return len(s.rest()) == 0 }

func closeLeavesNothing(t *testing.T, s *scene) {
	before, conns := runtime.NumGoroutine(), s.bench.conns()
	one := s.bench.spec.Open(t, s.bench.addrs)
	h := s.acquire(t, one, s.long())
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	waiting := s.later(ctx, one, s.long())
	if o := soon(t, patience, waiting); o.err == nil {
		t.Fatal("the lock was granted while it is held")
	}
	s.release(t, h)
	shut(t, one)
	Eventually(t, patience, "no goroutine is left of a program that was closed", func() bool {
		return runtime.NumGoroutine() <= before || s.spec.Beside
	})
	Eventually(t, patience, "no connection is left of a program that was closed", func() bool {
		return s.bench.conns() <= conns
	})
	Eventually(t, patience, "no key is left that the lock does not keep", s.gone)
}
