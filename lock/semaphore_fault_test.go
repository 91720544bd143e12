package lock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Replies are lost after the server has executed the requests: with the retries, each
// takes effect once (Redisson's addPermits counts twice).
// Regression: Redisson's semaphore (addPermits counts twice)
func TestSemaphoreRepliesLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	faulty(t, Options{Timeout: testTimeout}, func(t *testing.T, s *tested, p *proxy) {
		lose := p.lose
		lose(2)
		s.setUp(t, 5)
		lose(2)
		if total, err := s.AddPermits(ctx, 2); total != 7 || err != nil {
			t.Errorf("add: %d, %v, want 7", total, err)
		}
		lose(2)
		if err := s.SetPermits(ctx, 6); err != nil {
			t.Error(err)
		}
		lose(2)
		a, err := s.take(ctx, 2)
		mustTake(t, a, err)
		s.want(t, 6, 4)
		lose(2)
		mustGive(t, a)
		s.want(t, 6, 6)
		b, err := s.take(ctx, 2)
		mustTake(t, b, err)
		lose(2)
		if n, err := s.force(ctx, b.IDs()...); n != 2 || err != nil {
			t.Errorf("force: %d, %v, want 2", n, err)
		}
		s.want(t, 6, 6)
		if len(p.Dropped) != 12 {
			t.Errorf("%d replies were lost, want 12", len(p.Dropped))
		}
	})
}

// Nothing is released twice: not by the handle, and not by a release that arrives under
// another request (redisson#5066).
func TestN5066DoubleReleaseAddsNoPermits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	bothKinds(t, map[string]func(t *testing.T, s *tested){"twice": func(t *testing.T, s *tested) {
		s.setUp(t, 3)
		p, err := s.take(ctx, 2)
		mustTake(t, p, err)
		mustGive(t, p)
		if err := p.Release(ctx); !errors.Is(err, ErrReleased) {
			t.Errorf("second release: %v, want ErrReleased", err)
		}
		if n, err := s.force(ctx, p.IDs()...); n != 0 || err != nil {
			t.Errorf("force: %d, %v, want 0", n, err)
		}
		s.want(t, 3, 3)
	}})
}

// The caller leaves while its request is in flight: nothing is left behind.
func TestSemaphoreCancelledInFlight(t *testing.T) {
	t.Parallel()
	faulty(t, Options{}, func(t *testing.T, s *tested, p *proxy) {
		s.setUp(t, 2)
		p.hang()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := s.take(ctx, 2)
			failed <- err
		}()
		<-p.Dropped // executed, but without a reply
		if free := s.rdb.HGet(ctx, s.name, "free").Val(); free != "0" {
			t.Errorf("free %s, want 0", free)
		}
		p.lose(0)
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) || !Definite(err) {
			t.Errorf("error %v, want a definite Canceled", err)
		}
		s.want(t, 2, 2)
	})
}

// The server does not reply to the undo either: the error is ErrUnknown, without a long
// wait.
func TestSemaphoreUnreachable(t *testing.T) {
	t.Parallel()
	faulty(t, Options{Timeout: 300 * time.Millisecond}, func(t *testing.T, s *tested, p *proxy) {
		s.setUp(t, 2)
		p.hang()
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if _, err := s.take(ctx, 1); !errors.Is(err, ErrUnknown) {
			t.Errorf("error %v, want ErrUnknown", err)
		}
		if _, err := s.AddPermits(context.Background(), 1); !errors.Is(err, ErrUnknown) {
			t.Errorf("add: %v, want ErrUnknown", err)
		}
	})
}

// An acquire that arrives after it was released acquires nothing.
func TestSemaphoreLateAcquire(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	plainSem(c, rdb, "plain").setUp(t, 1)
	leasedSem(c, rdb, "leased").setUp(t, 1)
	for _, late := range []claim{
		{key: "plain", id: "late", permits: 1, store: c.semaphores},
		{key: "leased", id: "late", permits: 1, store: c.permits, lease: 60000},
	} {
		if left, err := late.store.release(ctx, late); left != codeNotHeld || err != nil {
			t.Fatalf("release of what is not held: %d, %v", left, err)
		}
		if _, err := late.store.acquire(ctx, late); !errors.Is(err, ErrReleased) {
			t.Errorf("late acquire of %s: %v, want ErrReleased", late.key, err)
		}
	}
	plainSem(c, rdb, "plain").want(t, 1, 1)
	leasedSem(c, rdb, "leased").want(t, 1, 1)
}

// Permits end with the client, and are held at the server until their lease expires.
func TestSemaphoreClose(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for kind, build := range builders() {
		t.Run(kind, func(t *testing.T) {
			rdb := startRedis(t).Dial(t)
			c := newTestClient(t, rdb, Options{})
			s := build(c, rdb, "pool")
			s.setUp(t, 1)
			p, err := s.take(ctx, 1)
			mustTake(t, p, err)
			closeClient(t, c)
			if got := context.Cause(p.Context()); !errors.Is(got, ErrClosed) {
				t.Errorf("cause %v, want ErrClosed", got)
			}
			if _, err := s.take(ctx, 1); !errors.Is(err, ErrClosed) {
				t.Errorf("use after close: %v, want ErrClosed", err)
			}
			build(newTestClient(t, rdb, Options{}), rdb, "pool").want(t, 1, 0)
		})
	}
}

// Counters on several masters drift apart: there are none.
func TestCountedNeedsOneMaster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := startMasters(t, 3, Options{}).client
	_, a := c.Semaphore("x").TryAcquire(ctx, 1)
	_, b := c.PermitSemaphore("x").ForceRelease(ctx, "id")
	for _, err := range []error{a, b, c.Latch("x").Wait(ctx), c.Semaphore("x").SetPermits(ctx, 1)} {
		if !errors.Is(err, ErrOneMaster) {
			t.Errorf("error %v, want ErrOneMaster", err)
		}
	}
}
