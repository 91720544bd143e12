package lock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A lost reply makes nothing count twice; a retried release gets the reply of the first,
// even if there was nothing to release (Redisson: first an error, then success).
// Regression: redisson#7367, Redisson's readers-writer lock (a repeated release gets another reply)
func TestRWRepliesLost(t *testing.T) {
	t.Parallel()
	direct, p, c := behindProxy(t, Options{Timeout: testTimeout})
	for _, side := range []*RWSide{c.RW("lost").Read(), c.RW("lost").Write()} {
		p.lose(2)
		h := acquire(t, side, WithOwner("x"), WithReentry())
		if h.Count() != 1 {
			t.Errorf("count %d, want 1", h.Count())
		}
		inner := acquire(t, side, WithOwner("x"), WithReentry())
		p.lose(2)
		release(t, inner)
		if inner.Count() != 1 {
			t.Errorf("%d left, want 1: the outer hold was released too", inner.Count())
		}
		release(t, h)
		mustBeRemoved(t, direct, "lost")

		h = acquire(t, side, WithLease(time.Minute))
		direct.Del(context.Background(), "lost", "{lost}:leases")
		p.lose(2)
		if err := h.Release(context.Background()); !errors.Is(err, ErrLost) || !Definite(err) {
			t.Errorf("release of what is not there: %v, want a definite ErrLost", err)
		}
	}
	if len(p.Dropped) != 12 {
		t.Errorf("%d replies were lost, want 12", len(p.Dropped))
	}
}

// The caller leaves while its request is in flight: nothing is left behind.
// Regression: redisson#2714
func TestRWCanceledInFlight(t *testing.T) {
	t.Parallel()
	direct, p, c := behindProxy(t, Options{})
	release(t, acquire(t, c.RW("warm").Read()))
	release(t, acquire(t, c.RW("warm").Write()))
	for _, side := range []*RWSide{c.RW("cut").Read(), c.RW("cut").PreferWriters().Write()} {
		p.hang()
		ctx, cancel := context.WithCancel(context.Background())
		failed := make(chan error, 1)
		go func() {
			_, err := side.Acquire(ctx)
			failed <- err
		}()
		<-p.Dropped // executed, but without a reply
		mustExist(t, direct, "cut", true)
		p.lose(0)
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) || !Definite(err) {
			t.Errorf("error %v, want a definite Canceled", err)
		}
		mustBeRemoved(t, direct, "cut")
	}
}

// The subscription breaks and the lock is removed without a message: the new subscription
// wakes readers and writers (also redisson#6026).
// Regression: redisson#4744
func TestRWMessageMissed(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	direct := s.Dial(t)
	for _, write := range []bool{false, true} {
		c := newTestClient(t, s.Dial(t), patient)
		h := acquire(t, c.RW("missed").Write())
		side, channel := c.RW("missed").Read(), "{missed}:read"
		if write {
			side, channel = c.RW("missed").Write(), "{missed}:write"
		}
		served := acquireLater(context.Background(), t, side)
		asleep(t, c, channel, 1)
		direct.Del(context.Background(), "missed", "{missed}:leases")
		killSubscribers(t, direct)
		release(t, within(t, testTimeout, "the waiter", served))
		_ = h.Release(context.Background())
		closeClient(t, c)
	}
}

// A reader whose lease expires without a release is followed by a writer.
func TestRWExpiredReadersAreFollowed(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	acquire(t, c.RW("exp").Read(), WithLease(300*time.Millisecond))
	acquire(t, c.RW("exp").Read(), WithLease(100*time.Millisecond))
	var last time.Duration // when the longer lease expires, by the server's clock
	for _, z := range rdb.ZRangeWithScores(context.Background(), "{exp}:leases", 0, -1).Val() {
		last = max(last, time.Duration(z.Score)*time.Millisecond)
	}
	w := acquire(t, c.RW("exp").Write())
	if now := serverTime(t, rdb); now < last {
		t.Errorf("the writer came %v before the longer lease expired", last-now)
	}
	release(t, w)
}

// A hold that has expired is not renewed, although others keep the lock alive.
func TestRWExpiredHoldIsNotRenewed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	long := acquire(t, c.RW("ran").Read())
	short := acquire(t, c.RW("ran").Read(), WithLease(50*time.Millisecond))
	end := time.Duration(rdb.ZScore(ctx, "{ran}:leases", short.claim.id).Val()) * time.Millisecond
	eventually(t, testTimeout, "it has expired", func() bool { return serverTime(t, rdb) > end })
	for i, r := range c.readers.renew(ctx, []claim{short.claim, long.claim}) {
		if r.err != nil || r.kept != (i == 1) {
			t.Errorf("hold %d: kept %v, error %v", i, r.kept, r.err)
		}
	}
	release(t, long)
}

// The last hold of an owner is released while another is acquired; the remaining hold is
// renewed.
// Regression: Redisson's read watchdog (last release meets first acquire)
func TestLastReleaseMeetsFirstAcquire(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	s := newHooks()
	c := newTestClient(t, rdb, s.options(watchedLease))
	h := acquire(t, c.RW("meet").Read(), WithOwner("x"), WithReentry())
	for range 50 {
		next := acquireLater(context.Background(), t, c.RW("meet").Read(), WithOwner("x"), WithReentry())
		release(t, h)
		h = within(t, testTimeout, "the next hold", next)
	}
	for range 4 {
		for within(t, testTimeout, "a renewal of the last hold", s.renewed) != h {
		}
	}
	if h.Context().Err() != nil {
		t.Error("the last hold was lost")
	}
	release(t, h)
}

// Readers and writers of a register of two halves: no reader sees it torn, no write is
// lost.
func TestRWStress(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	clients := []*Client{
		newTestClient(t, rdb, Options{PollMax: 200 * time.Millisecond}),
		newTestClient(t, rdb, Options{PollMax: 200 * time.Millisecond}),
	}
	const writers, readers, rounds = 8, 16, 12
	var left, right, together, most atomic.Int64
	var wg sync.WaitGroup
	pause := func() { rdb.Ping(context.Background()) } // long enough to notice others
	for i := range writers {
		wg.Go(func() {
			for range rounds {
				h := acquire(t, clients[i%2].RW("reg").PreferWriters().Write())
				v := left.Load() + 1
				left.Store(v)
				pause()
				right.Store(v)
				release(t, h)
			}
		})
	}
	for i := range readers {
		wg.Go(func() {
			for range rounds {
				h := acquire(t, clients[i%2].RW("reg").Read())
				if n := together.Add(1); n > most.Load() {
					most.Store(n)
				}
				a := left.Load()
				pause()
				if b := right.Load(); a != b {
					t.Errorf("torn: %d and %d", a, b)
				}
				together.Add(-1)
				release(t, h)
			}
		})
	}
	wg.Wait()
	if left.Load() != writers*rounds || most.Load() < 2 {
		t.Errorf("%d writes, want %d; at most %d readers together, want several", left.Load(), writers*rounds, most.Load())
	}
	mustBeRemoved(t, rdb, "reg")
}
