package lock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// acl changes the rights of the user of all clients.
func acl(t *testing.T, rdb *redis.Client, rules ...any) {
	t.Helper()
	if err := rdb.Do(context.Background(), append([]any{"ACL", "SETUSER", "default"}, rules...)...).Err(); err != nil {
		t.Fatal(err)
	}
}

// A subscription that is refused is reported once, however many waiters poll because of it.
func TestPollingIsReportedOnce(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	direct := s.Dial(t)
	acl(t, direct, "resetchannels")
	var mu sync.Mutex
	var said []Event
	c := newTestClient(t, s.Dial(t), Options{Observe: func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == Polling {
			said = append(said, e)
		}
	}})
	for _, name := range []string{"a", "b", "c"} {
		h := acquire(t, c.Mutex(name))
		served := acquireLater(context.Background(), t, c.Mutex(name))
		eventually(t, testTimeout, "the waiter is queued, and polling was reported", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return c.queues.Waiting(c.Mutex(name).channel()) == 1 && len(said) > 0
		})
		release(t, h)
		release(t, within(t, testTimeout, name+" is served", served))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(said) != 1 || said[0].Err == nil || !strings.Contains(said[0].Err.Error(), "NOPERM") {
		t.Errorf("reported %v, want one event with the refusal", said)
	}
}

// sleeping waits until c has n waiters on a channel, and all of them sleep, subscribed or not.
func sleeping(t *testing.T, c *Client, channel string, n int) {
	t.Helper()
	eventually(t, testTimeout, fmt.Sprint(n, " waiters sleep"), func() bool {
		asleep, of, _ := c.queues.AsleepIn(channel)
		return of == n && asleep == n
	})
}

// Once the server has refused every subscription of a client, waiters for other locks poll too, and so do waiters that
// become the first of their client.
func TestWaitersForOtherLocksPoll(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	acl(t, s.Dial(t), "resetchannels")
	o := Options{PollMax: time.Hour, Lease: time.Hour}
	c, holder := newTestClient(t, s.Dial(t), o), newTestClient(t, s.Dial(t), o)
	for _, name := range []string{"a", "b"} {
		h := acquire(t, holder.FairMutex(name))
		first := acquireLater(context.Background(), t, c.FairMutex(name))
		sleeping(t, c, "{"+name+"}:grant", 1)
		second := acquireLater(context.Background(), t, c.FairMutex(name))
		sleeping(t, c, "{"+name+"}:grant", 2)
		release(t, h)
		release(t, within(t, testTimeout, "the first waiter for "+name+" is served", first))
		release(t, within(t, testTimeout, "the second waiter for "+name+" is served", second))
	}
	h := acquire(t, holder.Mutex("c"))
	first := acquireLater(context.Background(), t, c.Mutex("c"))
	sleeping(t, c, "{c}:free", 1)
	second := acquireLater(context.Background(), t, c.Mutex("c"))
	sleeping(t, c, "{c}:free", 2)
	release(t, h)
	release(t, within(t, testTimeout, "the first waiter for c is served", first))
	release(t, within(t, testTimeout, "the second waiter for c is served", second))
}

// Of the waiters of one client, the first in the queue at the server polls, also if another one is the first of the
// client.
func TestFirstFairWaiterAtServerPolls(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	direct := s.Dial(t)
	acl(t, direct, "resetchannels")
	o := Options{PollMax: time.Hour, Lease: time.Hour}
	c, holder := newTestClient(t, s.Dial(t), o), newTestClient(t, s.Dial(t), o)
	c.maxHeartbeat = time.Hour
	h := acquire(t, holder.FairMutex("a"))
	first := acquireLater(context.Background(), t, c.FairMutex("a"))
	sleeping(t, c, "{a}:grant", 1)
	second := acquireLater(context.Background(), t, c.FairMutex("a"))
	sleeping(t, c, "{a}:grant", 2)
	ctx := context.Background()
	if err := direct.LMove(ctx, "{a}:queue", "{a}:queue", "LEFT", "RIGHT").Err(); err != nil {
		t.Fatal(err)
	}
	release(t, h)
	release(t, within(t, testTimeout, "the first waiter at the server is served", second))
	release(t, within(t, testTimeout, "the other waiter is served", first))
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
