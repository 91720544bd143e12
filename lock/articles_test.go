package lock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// Test cases of published articles on this kind of lock.

// Ten thousand pairs on distinct keys, a thousand with -short, leave nothing but tombstones, which expire.
func TestTenThousandPairs(t *testing.T) {
	t.Parallel()
	pairs := 200
	if testing.Short() {
		pairs = 20
	}
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{Timeout: 3 * time.Second, Lease: 10 * time.Second}) // tombstones last for a lease at most
	var wg sync.WaitGroup
	for w := range 50 {
		wg.Go(func() {
			for i := range pairs {
				h, err := c.Mutex(fmt.Sprintf("pair-%d-%d", w, i)).Acquire(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				if err := h.Release(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(rdb.Keys(context.Background(), "pair-*").Val()); n != 0 {
		t.Errorf("%d locks left behind", n)
	}
	eventually(t, testTimeout, "the tombstones expire", func() bool {
		return len(rdb.Keys(context.Background(), "*:tombstone:*").Val()) == 0
	})
}

// Of a thousand contenders that give up after a short wait, exactly one gets a lock that is never released.
func TestThousandContendersOneGetsIt(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	results := contend(ctx, c, 1000, func(h *Hold) error { // the others wait for 300 ms more
		time.AfterFunc(300*time.Millisecond, cancel)
		return nil
	})
	got := 0
	for err := range results {
		switch {
		case err == nil:
			got++
		case !errors.Is(err, ErrHeld) && !errors.Is(err, context.Canceled):
			t.Errorf("error %v, want ErrHeld or Canceled", err)
		}
	}
	if got != 1 || rdb.HGet(context.Background(), "one", "count").Val() != "1" {
		t.Errorf("%d got the lock, want 1", got)
	}
}

// A hundred contenders with a long wait are all granted the lock in turn, with increasing tokens and at most three
// commands for each grant.
func TestHundredContendersAllGetIt(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, patient)
	before := locktest.Calls(t, rdb, "evalsha")
	var mu sync.Mutex
	var last int64
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	results := contend(ctx, c, 100, func(h *Hold) error {
		if !mu.TryLock() {
			return errors.New("two are inside")
		}
		grew := h.token > last
		last = max(last, h.token)
		mu.Unlock()
		if !grew {
			return fmt.Errorf("token %d, the greatest is %d", h.token, last)
		}
		return h.Release(context.Background())
	})
	for err := range results {
		if err != nil {
			t.Error(err)
		}
	}
	// Each contender sends one request before it queues, one when it is woken, and the release.
	if n := locktest.Calls(t, rdb, "evalsha") - before; n > 100*3+30 {
		t.Errorf("%d scripts for 100 grants", n)
	}
}

func contend(ctx context.Context, c *Client, n int, inside func(*Hold) error) <-chan error {
	results := make(chan error, n)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			h, err := c.FencedMutex("one").Acquire(ctx)
			if err == nil {
				err = inside(&h.Hold)
			}
			results <- err
		})
	}
	go func() {
		wg.Wait()
		close(results)
	}()
	return results
}

// A thousand waiters in one process: a release wakes one of them, and a wait costs a few
// kilobytes and no requests of its own.
func TestThousandWaitersOneWakeUp(t *testing.T) {
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{PollMax: 3 * time.Second})
	h := acquire(t, c.Mutex("one"), WithLease(time.Hour))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	results := contend(ctx, c, 1000, func(h *Hold) error { return h.Release(context.Background()) })
	asleep(t, c, "{one}:free", 1000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	asked := locktest.Calls(t, rdb, "evalsha")
	release(t, h)
	for err := range results {
		if err != nil {
			t.Error(err)
		}
	}
	// An acquire and a release for each, and polls of the first waiter.
	if n := locktest.Calls(t, rdb, "evalsha") - asked; n > 2*1000+200 {
		t.Errorf("%d scripts for 1000 grants, want two for each", n)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+4<<20 {
		t.Errorf("heap grew from %d to %d", before.HeapAlloc, after.HeapAlloc)
	}
}

// Ten thousand holds are renewed in batches, by a bounded number of goroutines.
func TestTenThousandHoldsRenewed(t *testing.T) {
	rdb := startRedis(t).Dial(t)
	s := &hooks{make(chan *Hold, 50000), make(chan *Hold, 50000)}
	c := newTestClient(t, rdb, s.options(3*watchedLease))
	var wg sync.WaitGroup
	holds := make([]*Hold, 10000)
	for w := range 50 {
		wg.Go(func() {
			for i := w; i < len(holds); i += 50 {
				h, err := c.Mutex(fmt.Sprintf("many-%d", i)).Acquire(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				holds[i] = h
			}
		})
	}
	wg.Wait()
	renewed, most := make(map[*Hold]bool), 0
	asked := locktest.Calls(t, rdb, "evalsha")
	for len(renewed) < len(holds) && len(s.lost) == 0 {
		renewed[within(t, testTimeout, "renewal of every hold", s.renewed)] = true
		if len(renewed)%500 == 0 {
			most = max(most, runtime.NumGoroutine())
		}
	}
	if most > 250 {
		t.Errorf("%d goroutines, want a bounded number", most)
	}
	if n := locktest.Calls(t, rdb, "evalsha") - asked; n > 1000 {
		t.Errorf("%d scripts to renew 10,000 holds", n)
	}
	if len(s.lost) > 0 {
		t.Errorf("%d holds lost", len(s.lost))
	}
}
