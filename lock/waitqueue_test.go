package lock

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// A refusal wakes all waiters for their holds, because each of them has to poll, and the first of other waiters.
func TestRefusalWakesThoseThatPoll(t *testing.T) {
	t.Parallel()
	bg := newBackground(errClosed)
	rdb := redis.NewClient(&redis.Options{Addr: locktest.FreeAddr(t)}) // nothing is confirmed
	queues := newWaitQueues(rdb, bg, newRandom(nil), time.Second, nil)
	queues.report = func(string, error) {}
	defer func() {
		if err := bg.close(context.Background()); err != nil {
			t.Error(err)
		}
		_ = rdb.Close()
	}()
	for hold, want := range map[string]int{"": 1, "h": 3} {
		channel := "{k}" + hold
		var all []*waiter
		for range 3 {
			w, _ := queues.join(channel, false, false)
			if hold != "" {
				queues.setHold(w, hold)
			}
			all = append(all, w)
		}
		queues.refused(channel, redis.Nil)
		woken := 0
		for _, w := range all {
			woken += len(w.wake)
		}
		for _, w := range all {
			queues.leave(w, true, time.Time{})
		}
		if woken != want {
			t.Errorf("waiters with hold %q: %d were woken, want %d", hold, woken, want)
		}
	}
}

// Permits that were added are added, and a latch that was counted is counted, though nothing may be published.
func TestChangesWithoutTheRightToPublish(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	ctx := context.Background()
	c := newTestClient(t, s.Dial(t), Options{})
	pool, latch := c.Semaphore("pool"), c.Latch("start")
	if _, err := pool.TrySetPermits(ctx, 1); err != nil {
		t.Fatal(err)
	}
	acl(t, s.Dial(t), "resetchannels")
	total, err := pool.AddPermits(ctx, 3)
	if err != nil || total != 4 {
		t.Errorf("add permits: total %d, %v; want 4", total, err)
	}
	if _, err := latch.TrySetCount(ctx, 1); err != nil {
		t.Errorf("arm: %v", err)
	}
	if state, err := latch.CountDown(ctx, CountDownOptions{}); err != nil || state.Count != 0 {
		t.Errorf("count down: %+v, %v", state, err)
	}
	acquire(t, c.Mutex("job"))
	if held, err := c.Mutex("job").ForceRelease(ctx); err != nil || !held {
		t.Errorf("force: %v, %v", held, err)
	}
}

// A script that its user may not finish has begun: the outcome is unknown, not a failure.
func TestScriptWithoutRightsIsUnknown(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	c := newTestClient(t, s.Dial(t), Options{})
	h := acquire(t, c.Mutex("job"))
	acl(t, s.Dial(t), "-set", "-rename")
	err := h.Release(context.Background())
	if Definite(err) || err == nil {
		t.Errorf("release without the right for its last write: %v, want an unknown outcome", err)
	}
	if state, err := c.Mutex("job").Inspect(context.Background()); err != nil || state.Owner != "" {
		t.Errorf("the lock is held by %q after that release (%v); the test is about one that happened", state.Owner, err)
	}
}
