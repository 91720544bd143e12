package lock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The reply to an acquire is lost after the server has executed it: the retry counts the
// same hold once (redisson#7367).
func TestAcquireReplyLost(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.Addr)
	c := newTestClient(t, dialRedis(t, p.Addr), Options{})
	for _, losses := range []int{1, 2} {
		p.lose(losses)
		h, err := c.Mutex("lost").TryAcquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if got := hashOf(t, s.Dial(t), "lost")["count"]; got != "1" || h.Count() != 1 {
			t.Errorf("count %s at the server, %d at the client, want 1", got, h.Count())
		}
		release(t, h)
		mustExist(t, s.Dial(t), "lost", false)
	}
	if len(p.Dropped) != 3 {
		t.Errorf("%d replies were lost, want 3", len(p.Dropped))
	}
}

// A retried acquire is promised its lease from then on, so the server must keep it for as
// long.
func TestRetriedAcquireKeepsWholeLease(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	cl := claim{key: "again", owner: "o", id: "1", lease: 30000}
	for range 2 {
		g, err := c.store.acquire(context.Background(), cl)
		if err != nil || !g.ok || g.count != 1 {
			t.Fatalf("acquire: %+v, %v", g, err)
		}
		ttl := rdb.PTTL(context.Background(), "again").Val()
		if promised := time.Until(g.sent.Add(validity(30 * time.Second))); ttl < promised {
			t.Errorf("the server keeps the lease for %v, promised %v", ttl, promised)
		}
		rdb.PExpire(context.Background(), "again", 5*time.Second) // as if the first reply took so long
	}
}

// The reply to a release is lost: the retry gets the same reply, and does not release an
// outer hold (redisson#4871).
func TestReleaseReplyLost(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.Addr)
	direct := s.Dial(t)
	c := newTestClient(t, dialRedis(t, p.Addr), Options{})
	outer := acquire(t, c.Mutex("lost"))
	inner, err := c.Mutex("lost").Acquire(outer.Context(), WithReentry())
	if err != nil {
		t.Fatal(err)
	}
	p.lose(2)
	release(t, inner)
	if got := hashOf(t, direct, "lost")["count"]; got != "1" || inner.Count() != 1 {
		t.Errorf("after the inner release: count %s at the server, %d at the client, want 1", got, inner.Count())
	}
	p.lose(2)
	release(t, outer)
	mustExist(t, direct, "lost", false)
	if len(p.Dropped) != 4 {
		t.Errorf("%d replies were lost, want 4", len(p.Dropped))
	}
}

// The caller leaves while its request is in flight: nothing is left behind, and the
// outcome is definite once the undo was confirmed.
func TestCanceledInFlight(t *testing.T) {
	t.Parallel()
	direct, p, c := behindProxy(t, Options{})
	release(t, acquire(t, c.Mutex("warm")))
	p.hang()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := c.Mutex("cut").Acquire(ctx)
		failed <- err
	}()
	<-p.Dropped // executed, but without a reply
	mustExist(t, direct, "cut", true)
	p.lose(0)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || !Definite(err) {
		t.Errorf("error %v, want a definite Canceled", err)
	}
	mustExist(t, direct, "cut", false)
}

// The same, and the server does not reply to the undo either: the error is ErrUnknown,
// without a long wait.
func TestCanceledAndUnreachable(t *testing.T) {
	t.Parallel()
	_, p, c := behindProxy(t, Options{Timeout: 300 * time.Millisecond})
	p.hang()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := c.Mutex("cut").Acquire(ctx)
		failed <- err
	}()
	if err := within(t, testTimeout, "the end, without any reply", failed); !errors.Is(err, ErrUnknown) || Definite(err) {
		t.Errorf("error %v, want ErrUnknown", err)
	}
}

// An acquire that arrives after it was undone acquires nothing.
func TestLateAcquire(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	cl := claim{key: "late", owner: "o", id: "1", lease: 30000}
	if left, err := c.store.release(context.Background(), cl); left != codeNotHeld || err != nil {
		t.Fatalf("release of what is not held: %d, %v", left, err)
	}
	if _, err := c.store.acquire(context.Background(), cl); !errors.Is(err, ErrReleased) {
		t.Errorf("late acquire: %v, want ErrReleased", err)
	}
	mustExist(t, rdb, "late", false)
}

// A grant that arrives when its lease has expired is no grant.
func TestReplyAfterLease(t *testing.T) {
	t.Parallel()
	_, p, c := behindProxy(t, Options{})
	release(t, acquire(t, c.Mutex("warm")))
	p.Delay(60 * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if _, err := c.Mutex("slow").Acquire(ctx, WithLease(40*time.Millisecond)); err == nil {
		t.Error("granted with an expired lease")
	}
}

// Messages wake waiters: with a poll limit of an hour, nothing else does.
func TestWakeUp(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	direct := s.Dial(t)
	holder := newTestClient(t, s.Dial(t), Options{})
	waiter := newTestClient(t, s.Dial(t), Options{PollMax: time.Hour})
	for _, tt := range []struct {
		name string
		harm func(t *testing.T)
	}{
		{"undisturbed", func(*testing.T) {}},
		{"subscribed-already", func(*testing.T) {}},
		{"connection-killed", func(t *testing.T) { killSubscribers(t, direct) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := acquire(t, holder.Mutex("wake"), WithLease(time.Hour))
			served := make(chan *Hold, 1)
			go func() {
				h, err := waiter.Mutex("wake").Acquire(context.Background())
				if err != nil {
					t.Error(err)
				}
				served <- h
			}()
			waitSubscribed(t, waiter, "{wake}:free")
			tt.harm(t)
			start := time.Now()
			release(t, h)
			select {
			case h := <-served:
				t.Logf("served %v after the release", time.Since(start))
				release(t, h)
			case <-time.After(testTimeout):
				t.Fatal("the waiter was not woken")
			}
		})
	}
}

// The connection breaks and the release happens before it is restored: the waiter has
// missed the message, and is woken by the new subscription.
func TestMessageMissed(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	direct := s.Dial(t)
	waiter := newTestClient(t, s.Dial(t), Options{PollMax: time.Hour})
	holder := newTestClient(t, s.Dial(t), Options{})
	h := acquire(t, holder.Mutex("missed"), WithLease(time.Hour))
	served := make(chan *Hold, 1)
	go func() {
		h, _ := waiter.Mutex("missed").Acquire(context.Background())
		served <- h
	}()
	waitSubscribed(t, waiter, "{missed}:free")
	// Removed without a message, as if it were lost.
	direct.Del(context.Background(), "missed")
	killSubscribers(t, direct)
	select {
	case h := <-served:
		release(t, h)
	case <-time.After(testTimeout):
		t.Fatal("the waiter was not woken")
	}
	_ = h.Release(context.Background())
}

// asleepIn is how many waiters of c sleep on a subscribed channel: their requests were answered, nothing has woken them
// since, and a message does.
func asleepIn(c *Client, channel string) (n, of int) {
	n, of, subscribed := c.queues.AsleepIn(channel)
	if !subscribed {
		return 0, 0
	}
	return n, of
}

// asleep waits until c has n waiters on a channel, and all of them sleep.
func asleep(t *testing.T, c *Client, channel string, n int) {
	t.Helper()
	eventually(t, testTimeout, fmt.Sprint(n, " waiters sleep"), func() bool {
		sleep, of := asleepIn(c, channel)
		return sleep == n && of == n
	})
}

// waitSubscribed waits until c has one waiter on a channel, and it sleeps.
func waitSubscribed(t *testing.T, c *Client, channel string) {
	t.Helper()
	asleep(t, c, channel, 1)
}

func killSubscribers(t *testing.T, rdb *redis.Client) {
	t.Helper()
	n, err := rdb.ClientKillByFilter(context.Background(), "TYPE", "pubsub").Result()
	if err != nil || n == 0 {
		t.Fatalf("kill subscribers: %d, %v", n, err)
	}
}

func replicaReady(rdb *redis.Client) bool {
	info, err := rdb.InfoMap(context.Background(), "replication").Result()
	return err == nil && info["Replication"]["master_link_status"] == "up"
}
