package lock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// shortLease is renewed several times within a test.
const shortLease = watchedLease

// staysHeld checks that h lasts for two leases, at the server too.
func staysHeld(t *testing.T, rdb *redis.Client, h *Hold) {
	t.Helper()
	select {
	case <-h.Context().Done():
		t.Fatalf("the hold ended: %v", context.Cause(h.Context()))
	case <-time.After(2 * shortLease):
	}
	if ttl := rdb.PTTL(context.Background(), h.Name()).Val(); ttl <= 0 {
		t.Fatalf("the hold lasts and the key does not: %v", ttl)
	}
}

// Faults that stopped Redisson's watchdog, each while the lock is held.
// Regression: redisson#2515, redisson#3712, redisson#6144, redisson#5697
func TestWatchdogContinues(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, rdb *redis.Client, c *Client) *Hold{
		"B35-connections-cut": func(t *testing.T, rdb *redis.Client, c *Client) *Hold {
			h := acquire(t, c.Mutex("dog"))
			if n := rdb.ClientKillByFilter(context.Background(), "TYPE", "normal", "SKIPME", "yes").Val(); n == 0 {
				t.Error("no connection was cut: the test tested nothing")
			}
			return h
		},
		"acquired-again-after-loss": func(t *testing.T, rdb *redis.Client, c *Client) *Hold {
			h := acquire(t, c.Mutex("dog"), WithOwner("same"), WithReentry())
			rdb.Del(context.Background(), "dog")
			next := acquire(t, c.Mutex("dog"), WithOwner("same"), WithReentry())
			within(t, testTimeout, "the loss", h.Context().Done())
			return next
		},
		"B37-after-re-entry": func(t *testing.T, _ *redis.Client, c *Client) *Hold {
			outer := acquire(t, c.Mutex("dog"), WithOwner("first"), WithReentry())
			release(t, acquire(t, c.Mutex("dog"), WithOwner("first"), WithReentry()))
			release(t, outer)
			return acquire(t, c.Mutex("dog"), WithOwner("second"), WithReentry())
		},
		"B39-contenders": func(t *testing.T, _ *redis.Client, c *Client) *Hold {
			h := acquire(t, c.Mutex("dog"))
			ctx, cancel := context.WithTimeout(context.Background(), shortLease)
			t.Cleanup(cancel)
			for range 10 {
				go func() { _, _ = c.Mutex("dog").Acquire(ctx) }()
			}
			return h
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startRedis(t)
			rdb := s.Dial(t)
			c := newTestClient(t, s.Dial(t), Options{Lease: shortLease})
			h := prepare(t, rdb, c)
			staysHeld(t, rdb, h)
			release(t, h)
		})
	}
}

// Releases that meet their own renewals: each succeeds, nothing is renewed afterwards, and
// no key is restored.
// Regression: redisson#7272, redisson#1626, redisson#6483, redis-semaphore#205
func TestReleaseMeetsRenewal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	for range 50 {
		h := acquire(t, c.Mutex("race"))
		renewed := make(chan error, 1)
		go func() { renewed <- h.Renew(ctx) }()
		release(t, h)
		if err := <-renewed; err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, ErrReleased) {
			t.Errorf("renewal beside the release: %v", err)
		}
		mustExist(t, rdb, "race", false)
		c.dog.mu.Lock()
		watched := len(c.dog.holds)
		c.dog.mu.Unlock()
		if watched != 0 {
			t.Fatalf("%d holds are watched after the release", watched)
		}
	}
}

// The server is unreachable: the holder is notified before its key can expire, not after.
// Regression: RedLock.net#93, rueidislock (loss noticed late)
func TestLossIsReportedInTime(t *testing.T) {
	t.Parallel()
	direct, p, c := behindProxy(t, Options{Lease: shortLease, Timeout: 100 * time.Millisecond})
	h := acquire(t, c.Mutex("hole"))
	p.hang()
	within(t, testTimeout, "the loss", h.Context().Done())
	if early := time.Until(h.Deadline()); early > 0 {
		t.Errorf("lost %v before the deadline", early)
	}
	if cause := context.Cause(h.Context()); !errors.Is(cause, ErrLost) {
		t.Errorf("cause %v, want ErrLost", cause)
	}
	eventually(t, testTimeout, "the key ends", func() bool {
		return direct.Exists(context.Background(), "hole").Val() == 0
	})
}

// A waiter that waited for longer than a lease is granted a whole one, and none whose
// reply came after it had expired.
// Regression: node-redlock#168, etcd#11456
func TestGrantIsNotOverWhenItComes(t *testing.T) {
	t.Parallel()
	_, p, c := behindProxy(t, Options{})
	h := acquire(t, c.Mutex("late"), WithLease(500*time.Millisecond))
	const lease = 200 * time.Millisecond
	next := acquire(t, c.Mutex("late"), WithLease(lease))
	if !next.Deadline().After(h.Deadline()) {
		t.Errorf("its lease ends at %v, before that of the hold it waited for, %v", next.Deadline(), h.Deadline())
	}
	within(t, testTimeout, "the end of the first hold", h.Context().Done())
	_ = next.Release(context.Background())
	p.Delay(100 * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if h, err := c.Mutex("late").Acquire(ctx, WithLease(60*time.Millisecond)); err == nil {
		t.Errorf("granted %v after it expired", time.Since(h.Deadline()))
	}
}

// The last waiter leaves and another comes: the channel is subscribed again.
// Regression: redisson#4064, rueidis#653
func TestWaiterAfterTheLastOneHasLeft(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	holder := newTestClient(t, s.Dial(t), Options{})
	waiter := newTestClient(t, s.Dial(t), Options{PollMax: time.Hour})
	for range 20 {
		h := acquire(t, holder.Mutex("churn"), WithLease(time.Hour))
		ctx, cancel := context.WithCancel(context.Background())
		left := make(chan error, 1)
		go func() {
			_, err := waiter.Mutex("churn").Acquire(ctx)
			left <- err
		}()
		served := make(chan *Hold, 1)
		go cancel() // at a random moment
		if err := within(t, testTimeout, "the waiter leaves", left); err == nil {
			t.Fatal("granted while it is held")
		}
		go func() {
			h, err := waiter.Mutex("churn").Acquire(context.Background())
			if err != nil {
				t.Error(err)
			}
			served <- h
		}()
		release(t, h)
		release(t, within(t, testTimeout, "the next waiter is served", served))
	}
}

// The server restarts empty while a client waits: the waiter continues.
// Regression: redisson#6026
func TestServerRestartsUnderAWaiter(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	c := newTestClient(t, s.Dial(t), Options{PollMax: time.Hour})
	holder := newTestClient(t, s.Dial(t), Options{})
	h := acquire(t, holder.Mutex("restart"), WithLease(time.Hour))
	served := make(chan *Hold, 1)
	go func() {
		h, err := c.Mutex("restart").Acquire(context.Background())
		if err != nil {
			t.Error(err)
		}
		served <- h
	}()
	waitSubscribed(t, c, "{restart}:free")
	s.Kill()
	_, port, _ := net.SplitHostPort(s.Addr)
	again := locktest.StartServerAt(t, net.JoinHostPort("127.0.0.1", port))
	release(t, within(t, testTimeout, "the waiter is served by the new server", served))
	if err := h.Release(context.Background()); !errors.Is(err, ErrLost) {
		t.Errorf("release of what the old server had: %v, want ErrLost", err)
	}
	mustExist(t, again.Dial(t), "restart", false)
}

// All connections of the pool go silent, and go-redis waits for replies without end: the renewal after the first one
// without a reply has a connection of its own.
func TestRenewalOnSilentConnections(t *testing.T) {
	t.Parallel()
	p := startProxy(t, startRedis(t).Addr)
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, ReadTimeout: -1, PoolSize: 8})
	t.Cleanup(func() { _ = rdb.Close() })
	s := newHooks()
	c := newTestClient(t, rdb, s.options(watchedLease))
	t.Cleanup(p.CutConnections) // or Close waits for the replies
	var holds []*Hold
	for range 3 {
		holds = append(holds, acquire(t, c.Mutex(fmt.Sprint("held-", len(holds)))))
	}
	for range 2 { // so that each connection of the pool was used
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { _ = rdb.BLPop(t.Context(), 100*time.Millisecond, "nothing").Err() })
		}
		wg.Wait()
	}
	p.Silence()
	for len(s.renewed) > 0 { // before that, on a slow machine
		<-s.renewed
	}
	for range holds {
		within(t, 3*watchedLease, "a renewal", s.renewed)
	}
	for _, h := range holds {
		if err := h.Err(); err != nil {
			t.Errorf("%s: %v", h.Name(), err)
		}
	}
}
