package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The answer to an acquire is lost after the server has executed it: asked
// again, the same hold is counted once (redisson#7367).
func TestAcquireAnswerLost(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.addr)
	c := newTestClient(t, dialRedis(t, p.addr), Options{})
	for _, losses := range []int32{1, 2} {
		p.loseNext.Store(losses)
		h, err := c.Mutex("lost").TryAcquire(context.Background(), AcquireOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := hashOf(t, s.dial(t), "lost")["count"]; got != "1" || h.Count() != 1 {
			t.Errorf("count %s at the server, %d at the client, want 1", got, h.Count())
		}
		release(t, h)
		mustExist(t, s.dial(t), "lost", false)
	}
	if len(p.lost) != 3 {
		t.Errorf("%d answers were lost, want 3: the test tested nothing", len(p.lost))
	}
}

// An acquire that is asked again is promised its lease from then on, so the
// server must keep it for as long.
func TestAskedAgainKeepsWholeLease(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).dial(t)
	c := newTestClient(t, rdb, Options{})
	cl := claim{name: "again", owner: "o", id: "1", lease: 30000}
	for range 2 {
		g, err := c.store.acquire(context.Background(), cl)
		if err != nil || !g.ok || g.count != 1 {
			t.Fatalf("acquire: %+v, %v", g, err)
		}
		ttl := rdb.PTTL(context.Background(), "again").Val()
		if promised := time.Until(g.sent.Add(validity(30 * time.Second))); ttl < promised {
			t.Errorf("the server keeps the lease for %v, promised %v", ttl, promised)
		}
		rdb.PExpire(context.Background(), "again", 5*time.Second) // as if the first answer took so long
	}
}

// The answer to a release is lost: asked again, it is the same answer, and an
// outer hold is not taken for the inner one (redisson#4871).
func TestReleaseAnswerLost(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.addr)
	direct := s.dial(t)
	c := newTestClient(t, dialRedis(t, p.addr), Options{})
	outer := acquire(t, c.Mutex("lost"), AcquireOptions{})
	inner, err := c.Mutex("lost").Acquire(outer.Context(), AcquireOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.loseNext.Store(2)
	release(t, inner)
	if got := hashOf(t, direct, "lost")["count"]; got != "1" || inner.Count() != 1 {
		t.Errorf("after the inner release: count %s at the server, %d at the client, want 1", got, inner.Count())
	}
	p.loseNext.Store(2)
	release(t, outer)
	mustExist(t, direct, "lost", false)
	if len(p.lost) != 4 {
		t.Errorf("%d answers were lost, want 4: the test tested nothing", len(p.lost))
	}
}

// The caller leaves while its request is on the way: nothing stays behind, and
// the outcome is certain once the undo was answered.
func TestCancelledInFlight(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.addr)
	direct := s.dial(t)
	c := newTestClient(t, dialRedis(t, p.addr), Options{})
	release(t, acquire(t, c.Mutex("warm"), AcquireOptions{}))
	p.hang.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := c.Mutex("cut").Acquire(ctx, AcquireOptions{})
		failed <- err
	}()
	<-p.lost // executed, and not answered
	mustExist(t, direct, "cut", true)
	p.hang.Store(false)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || !Definite(err) {
		t.Errorf("error %v, want a definite Canceled", err)
	}
	mustExist(t, direct, "cut", false)
}

// The same, and the server does not answer the undo either: that is unknown,
// and said so in good time.
func TestCancelledAndUnreachable(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.addr)
	c := newTestClient(t, dialRedis(t, p.addr), Options{Timeout: 300 * time.Millisecond})
	p.hang.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := c.Mutex("cut").Acquire(ctx, AcquireOptions{})
		failed <- err
	}()
	if err := within(t, prompt, "the end, without any answer", failed); !errors.Is(err, ErrUnknown) || Definite(err) {
		t.Errorf("error %v, want ErrUnknown", err)
	}
}

// An acquire that arrives after it was undone takes nothing.
func TestLateAcquire(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).dial(t)
	c := newTestClient(t, rdb, Options{})
	cl := claim{name: "late", owner: "o", id: "1", lease: 30000}
	if left, err := c.store.release(context.Background(), cl); left != codeNotHeld || err != nil {
		t.Fatalf("release of what is not held: %d, %v", left, err)
	}
	if _, err := c.store.acquire(context.Background(), cl); !errors.Is(err, ErrReleased) {
		t.Errorf("late acquire: %v, want ErrReleased", err)
	}
	mustExist(t, rdb, "late", false)
}

// A grant that comes when its lease is over is not one.
func TestAnswerAfterLease(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.addr)
	c := newTestClient(t, dialRedis(t, p.addr), Options{})
	release(t, acquire(t, c.Mutex("warm"), AcquireOptions{}))
	p.delay.Store(int64(60 * time.Millisecond))
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if _, err := c.Mutex("slow").Acquire(ctx, AcquireOptions{Lease: 40 * time.Millisecond}); err == nil {
		t.Error("a lease that was over was granted")
	}
}

// Wake-ups come by message: with a poll limit of an hour, nothing else can.
func TestWakeUp(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	direct := s.dial(t)
	holder := newTestClient(t, s.dial(t), Options{})
	waiter := newTestClient(t, s.dial(t), Options{PollMax: time.Hour})
	for _, tt := range []struct {
		name string
		harm func(t *testing.T)
	}{
		{"undisturbed", func(*testing.T) {}},
		{"subscribed-already", func(*testing.T) {}},
		{"connection-killed", func(t *testing.T) { killSubscribers(t, direct) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := acquire(t, holder.Mutex("wake"), AcquireOptions{Lease: time.Hour})
			served := make(chan *Hold, 1)
			go func() {
				h, err := waiter.Mutex("wake").Acquire(context.Background(), AcquireOptions{})
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
			case <-time.After(prompt):
				t.Fatal("the waiter sleeps on")
			}
		})
	}
}

// The connection breaks and the release happens before it is back: the waiter
// has missed the message, and is woken by the new subscription.
func TestMessageMissed(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	direct := s.dial(t)
	waiter := newTestClient(t, s.dial(t), Options{PollMax: time.Hour})
	holder := newTestClient(t, s.dial(t), Options{})
	h := acquire(t, holder.Mutex("missed"), AcquireOptions{Lease: time.Hour})
	served := make(chan *Hold, 1)
	go func() {
		h, _ := waiter.Mutex("missed").Acquire(context.Background(), AcquireOptions{})
		served <- h
	}()
	waitSubscribed(t, waiter, "{missed}:free")
	// Removed without a word, as by a message that was lost.
	direct.Del(context.Background(), "missed")
	killSubscribers(t, direct)
	select {
	case h := <-served:
		release(t, h)
	case <-time.After(prompt):
		t.Fatal("the waiter sleeps on")
	}
	_ = h.Release(context.Background())
}

func waitSubscribed(t *testing.T, c *Client, channel string) {
	t.Helper()
	eventually(t, prompt, "a waiter is subscribed and asleep", func() bool {
		c.queues.mu.Lock()
		defer c.queues.mu.Unlock()
		ch := c.queues.channels[channel]
		return ch != nil && ch.live && len(ch.waiters) == 1 && len(ch.waiters[0].wake) == 0
	})
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
