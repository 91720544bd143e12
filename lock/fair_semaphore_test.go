package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// heldPool is a fair semaphore at a server of its own, with one permit that is held.
func heldPool(t *testing.T, total int) (*redis.Client, *FairSemaphore, *Permits) {
	t.Helper()
	rdb := startRedis(t).Dial(t)
	s := newTestClient(t, rdb, patient).FairSemaphore("pool", WithTotal(total))
	held, err := s.Acquire(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return rdb, s, held
}

// queuedPermits are waiters of a fair semaphore, one for each number of permits, which the server has in this order.
func queuedPermits(t *testing.T, rdb *redis.Client, s *FairSemaphore, wants ...int) []<-chan *Permits {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	before := int(rdb.LLen(ctx, "{pool}:queue").Val())
	served := make([]<-chan *Permits, len(wants))
	for i, n := range wants {
		out := make(chan *Permits, 1)
		go func() {
			if p, err := s.Acquire(ctx, n); err == nil {
				out <- p
			} else if ctx.Err() == nil {
				t.Error(err)
			}
		}()
		eventually(t, testTimeout, "the waiter is queued", func() bool {
			return int(rdb.LLen(ctx, "{pool}:queue").Val()) == before+i+1
		})
		served[i] = out
	}
	return served
}

// Permits are granted in the order of arrival: a small request waits behind a large one, and a try behind both.
func TestFairSemaphoreOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb, s, held := heldPool(t, 3)
	served := queuedPermits(t, rdb, s, 3, 1, 2)
	if _, err := s.TryAcquire(ctx, 1); !errors.Is(err, ErrQueued) {
		t.Errorf("a try passes the queue: %v, want ErrQueued", err)
	}
	if _, err := s.Drain(ctx); !errors.Is(err, ErrQueued) {
		t.Errorf("a drain passes the queue: %v, want ErrQueued", err)
	}
	state, err := s.State(ctx)
	if err != nil || state.Free != 2 {
		t.Errorf("%+v, %v: want two free permits, which the first waiter waits for", state, err)
	}
	if _, err := s.TryAcquire(ctx, 3); !errors.Is(err, ErrNoPermits) || errors.Is(err, ErrQueued) {
		t.Errorf("a try for more than are free: %v, want ErrNoPermits and not ErrQueued", err)
	}
	release(t, held)
	first := within(t, testTimeout, "the first waiter", served[0])
	if n := rdb.LLen(ctx, "{pool}:queue").Val(); n != 2 {
		t.Errorf("%d waiters are left, want two", n)
	}
	release(t, first)
	second, third := within(t, testTimeout, "the second", served[1]), within(t, testTimeout, "the third", served[2])
	release(t, second)
	release(t, third)
	if p, err := s.TryAcquire(ctx, 3); err != nil {
		t.Errorf("all permits are free: %v", err)
	} else {
		release(t, p)
	}
	mustExist(t, rdb, "{pool}:queue", false)
	mustExist(t, rdb, "{pool}:waiters", false)
}

// A waiter that gives up leaves the queue, and the next is served at once; a dead one is skipped.
func TestFairSemaphoreWaiterLeaves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb, s, held := heldPool(t, 2)
	leaving, leave := context.WithCancel(ctx)
	left := make(chan error, 1)
	go func() {
		_, err := s.Acquire(leaving, 2)
		left <- err
	}()
	asleep(t, s.client, "{pool}:free", 1) // it is queued, and knows
	served := queuedPermits(t, rdb, s, 1)
	leave()
	if err := within(t, testTimeout, "the leaver", left); !errors.Is(err, ErrNoPermits) || !Definite(err) {
		t.Errorf("the leaver: %v, want a definite ErrNoPermits", err)
	}
	second := within(t, testTimeout, "the next", served[0])
	dead := time.Now().Add(-time.Second).UnixMilli()
	rdb.RPush(ctx, "{pool}:queue", "dead 2")
	rdb.ZAdd(ctx, "{pool}:waiters", redis.Z{Score: float64(dead), Member: "dead 2"})
	release(t, second)
	p, err := s.Acquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	release(t, p)
	release(t, held)
}

// A waiter is refused when there are no longer as many permits as it wants, and the next one is served.
func TestFairSemaphoreIsMadeSmaller(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb, s, held := heldPool(t, 3)
	refused := make(chan error, 1)
	go func() {
		_, err := s.Acquire(ctx, 3)
		refused <- err
	}()
	eventually(t, testTimeout, "the first is queued", func() bool { return rdb.LLen(ctx, "{pool}:queue").Val() == 1 })
	served := queuedPermits(t, rdb, s, 1)
	if err := s.SetPermits(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if err := within(t, testTimeout, "the refusal", refused); !errors.Is(err, ErrPermits) {
		t.Errorf("%v, want ErrPermits", err)
	}
	release(t, within(t, testTimeout, "the next", served[0]))
	release(t, held)
}

// An entry of another program in the queue stops no script, and nobody waits for it.
func TestFairSemaphoreForeignEntries(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"foreign", "two words", "a 1 b", "", "7"} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			rdb := startRedis(t).Dial(t)
			s := newTestClient(t, rdb, patient).FairSemaphore("pool", WithTotal(2))
			held, err := s.Acquire(ctx, 1)
			if err != nil {
				t.Fatal(err)
			}
			rdb.RPush(ctx, "{pool}:queue", entry)
			rdb.ZAdd(ctx, "{pool}:waiters", redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: entry})
			release(t, held)
			p, err := s.TryAcquire(ctx, 2)
			if err != nil {
				t.Fatal(err)
			}
			release(t, p)
			mustExist(t, rdb, "{pool}:queue", false)
			mustExist(t, rdb, "{pool}:waiters", false)
		})
	}
}
