package locktest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// patience is for what must come at once, on a machine that has other things to do.
const patience = 20 * time.Second

// long is a lease that does not run out within a test.
const long = time.Minute

// long is as the constant, if the lock has leases; else it is none.
func (s *scene) long() Ask {
	if s.spec.Lease == 0 {
		return Ask{}
	}
	return Ask{Lease: long}
}

func (s *scene) acquire(t *testing.T, l Locker, o Ask) Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h, err := l.Acquire(ctx, s.name, o)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return h
}

func (s *scene) release(t *testing.T, h Hold) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Fatalf("release: %v", err)
	}
}

// refused checks that the lock is held, as l sees it, and that the answer comes at once.
func (s *scene) refused(t *testing.T, l Locker) {
	t.Helper()
	begun := time.Now()
	h, err := l.TryAcquire(context.Background(), s.name, s.long())
	if err == nil {
		_ = h.Release(context.Background())
		t.Fatal("the lock was granted while it is held")
	}
	if !errors.Is(err, s.spec.Held) {
		t.Errorf("refusal: %v, want %v", err, s.spec.Held)
	}
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("a try took %v", took)
	}
}

// free checks that the lock can be had at once, as l sees it.
func (s *scene) free(t *testing.T, l Locker) {
	t.Helper()
	h, err := l.TryAcquire(context.Background(), s.name, s.long())
	if err != nil {
		t.Fatalf("the lock is not free: %v", err)
	}
	s.release(t, h)
}

// outcome is what a call in the background came to.
type outcome struct {
	hold Hold
	err  error
}

// later calls Acquire in the background; its result comes by the channel.
func (s *scene) later(ctx context.Context, l Locker, o Ask) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		h, err := l.Acquire(ctx, s.name, o)
		out <- outcome{h, err}
	}()
	return out
}

// soon is the result that comes by ch within limit.
func soon(t *testing.T, limit time.Duration, ch <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-ch:
		return o
	case <-time.After(limit):
		t.Fatalf("nothing came of it within %v", limit)
	}
	return outcome{}
}

// served is the hold that comes by ch within limit.
func served(t *testing.T, limit time.Duration, ch <-chan outcome) Hold {
	t.Helper()
	o := soon(t, limit, ch)
	if o.err != nil {
		t.Fatalf("a waiter was refused: %v", o.err)
	}
	return o.hold
}

// asleep gives a waiter the time to ask, be refused and lie down: until the
// servers have seen nothing of it for as long as a few answers take, or half a
// second is over, for a lock that asks all the time. If it comes too early, the
// case is an easier one and not another.
func (s *scene) asleep(t *testing.T) {
	t.Helper()
	quiet, last, begun := 0, int64(-1), time.Now()
	Eventually(t, patience, "the waiter has asked", func() bool {
		now := s.scripts(t)
		if quiet++; now != last {
			quiet = 0
		}
		last = now
		return now > 0 && (quiet >= 10 || time.Since(begun) > 500*time.Millisecond)
	})
}

// scripts is how often the first master was asked for what locks are made of.
func (s *scene) scripts(t *testing.T) int64 {
	t.Helper()
	list, err := s.bench.direct[0].Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	return calls(list, "eval", "evalsha", "set", "setnx", "subscribe", "ssubscribe")
}
