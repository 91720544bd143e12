package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Redisson reports success to every client that releases a fair lock that does not exist.
// Regression: Redisson's fair lock (release of an expired lock succeeds)
func TestFairReleaseOfExpiredIsLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	h := acquire(t, c.FairMutex("over"), WithLease(50*time.Millisecond))
	<-h.Context().Done()
	if err := h.Release(ctx); !errors.Is(err, ErrLost) || errors.Is(err, ErrNotOwner) {
		t.Errorf("release: %v, want ErrLost alone", err)
	}
	stranger := claim{key: "over", owner: "s", id: "s"}
	if left, err := c.fair.release(ctx, stranger); left != codeNotHeld || err != nil {
		t.Errorf("the release of another hold: %d, %v, want codeNotHeld", left, err)
	}
	h = acquire(t, c.FairMutex("over"), WithLease(50*time.Millisecond))
	other := acquire(t, c.FairMutex("over"))
	if err := h.Release(ctx); !errors.Is(err, ErrLost) || !errors.Is(err, ErrNotOwner) {
		t.Errorf("release: %v, want ErrLost and ErrNotOwner", err)
	}
	release(t, other)
}

// A lost reply makes nothing count twice, and nothing is granted twice.
// Regression: redisson#7367, redisson#4871
func TestFairRepliesLost(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.Addr)
	direct := s.Dial(t)
	c := newTestClient(t, dialRedis(t, p.Addr), Options{})
	for _, losses := range []int{1, 2} {
		p.lose(losses)
		h := acquire(t, c.FairMutex("lost"))
		if got := hashOf(t, direct, "lost")["count"]; got != "1" || h.Count() != 1 {
			t.Errorf("count %s at the server, %d at the client, want 1", got, h.Count())
		}
		served := inTurn(t, direct, newTestClient(t, direct, Options{}).FairMutex("lost"), "next")
		handed := locktest.Calls(t, direct, "publish")
		p.lose(losses)
		release(t, h)
		next := within(t, testTimeout, "the next", served[0])
		if n := locktest.Calls(t, direct, "publish") - handed; n != 1 || next.token <= h.token {
			t.Errorf("handed over %d times, token %d after %d: want once", n, next.token, h.token)
		}
		release(t, next)
		mustBeRemoved(t, direct, "lost")
	}
	if len(p.Dropped) != 6 {
		t.Errorf("%d replies were lost, want 6", len(p.Dropped))
	}
}

// The message that the lock was handed over is lost (also redisson#6026): a new
// subscription wakes the waiter, and else its heartbeat fetches the grant.
// Regression: redisson#5761
func TestFairGrantMessageLost(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	direct := s.Dial(t)
	c := newTestClient(t, s.Dial(t), Options{})
	for name, help := range map[string]func(){
		"resubscribed": func() { killSubscribers(t, direct) },
		"heartbeat":    func() {},
	} {
		t.Run(name, func(t *testing.T) {
			waiter := newTestClient(t, s.Dial(t), patient)
			if name == "heartbeat" {
				waiter.maxHeartbeat = 2 * time.Second
			}
			h := acquire(t, c.FairMutex(name))
			served := inTurn(t, direct, waiter.FairMutex(name), "w")
			waitSubscribed(t, waiter, grantChannel(name))
			otherChannel := fairKeys(h.claim)
			otherChannel[5] = tagged(name, "nowhere")
			_, err := c.node.Do(context.Background(), wire.Call{
				Script: kindScript.fair.release, Keys: otherChannel, Args: []any{h.claim.id, 1000, h.claim.owner},
			})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			help()
			next := within(t, testTimeout, "the waiter", served[0])
			if next.token <= h.token {
				t.Errorf("token %d after %d", next.token, h.token)
			}
			t.Logf("served %v after the release", time.Since(start))
			release(t, next)
			_ = h.Release(context.Background())
		})
	}
}

// A waiter leaves at the moment when it is granted the lock: the next gets it at once.
// Regression: redisson#2714
func TestFairCancelMeetsGrant(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, patient)
	for range 50 {
		h := acquire(t, c.FairMutex("meet"))
		ctx, cancel := context.WithCancel(context.Background())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if h, err := c.FairMutex("meet").Acquire(ctx, WithOwner("leaving"), WithReentry()); err == nil {
				_ = h.Release(ctx)
			}
		}()
		eventually(t, testTimeout, "the leaving owner waits", func() bool {
			return len(waitersAtServer(t, rdb, "meet")) == 1
		})
		served := inTurn(t, rdb, c.FairMutex("meet"), "next")
		go cancel()
		release(t, h)
		release(t, within(t, testTimeout, "the next", served[0]))
		<-gone
	}
	mustBeRemoved(t, rdb, "meet")
}

// The server restarts empty: waiters queue again, and the scripts are loaded again.
// Regression: redisson#6026
func TestFairServerRestartsEmpty(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	rdb := s.Dial(t)
	c := newTestClient(t, rdb, impatient)
	h := acquire(t, c.FairMutex("again"), WithLease(time.Hour))
	served := inTurn(t, rdb, c.FairMutex("again"), "a", "b")
	s.Kill()
	locktest.StartServerAt(t, s.Addr)
	one := make(chan *Hold, 2) // in any order: the queue was lost
	for _, s := range served {
		go func() { one <- <-s }()
	}
	for range 2 {
		release(t, within(t, testTimeout, "a waiter", one))
	}
	if err := h.Release(context.Background()); !errors.Is(err, ErrLost) {
		t.Errorf("release of the old hold: %v, want ErrLost", err)
	}
}

// The lock is removed without a message, and another client tries it before the waiters
// notice: it does not overtake them, and the first is woken.
func TestFairTryDoesNotOvertake(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, patient)
	h := acquire(t, c.FairMutex("try"))
	served := inTurn(t, rdb, c.FairMutex("try"), "w")
	asleep(t, c, grantChannel("try"), 1)
	rdb.Del(context.Background(), "try")
	mustBeHeld(t, c.FairMutex("try"))
	next := within(t, testTimeout, "the waiter", served[0]) // by the message: its next heartbeat is an hour away
	if next.token <= h.token {
		t.Errorf("token %d after %d", next.token, h.token)
	}
	release(t, next)
	_ = h.Release(context.Background())
}

// A handed-over grant has no lease until it is fetched: then it has the lease that the waiter asked for, though the
// grant would have lasted longer.
func TestFairFetchedGrantIsALease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{PollMax: time.Hour}) // a grant waits for three hours
	h := acquire(t, c.FairMutex("fetch"))
	short := acquireLater(ctx, t, c.FairMutex("fetch"), WithLease(time.Minute))
	eventually(t, testTimeout, "it waits", func() bool { return len(waitersAtServer(t, rdb, "fetch")) == 1 })
	release(t, h)
	h = within(t, testTimeout, "the grant", short)
	if ttl := rdb.PTTL(ctx, "fetch").Val(); ttl > time.Minute {
		t.Errorf("the lock lasts %v, want the lease of a minute", ttl)
	}
	if hash := hashOf(t, rdb, "fetch"); hash["granted"] != "" {
		t.Errorf("still marked as not fetched: %v", hash)
	}
	release(t, h)
}

// A waiter that is dead for longer than its heartbeat lasts is not granted the lock.
func TestFairLongDeadHeadIsPassedOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, patient)
	h := acquire(t, c.FairMutex("past"))
	for _, id := range []string{"1", "2"} {
		dead := claim{key: "past", owner: "dead" + id, id: id, lease: 1000, waiterTTL: 2000}
		if g, err := c.fair.acquire(ctx, dead); err != nil || g.ok {
			t.Fatalf("acquire: %+v, %v", g, err)
		}
	}
	served := inTurn(t, rdb, c.FairMutex("past"), "live")
	last := deadline(t, rdb, "past", "dead2")
	eventually(t, testTimeout, "they have expired", func() bool { return serverTime(t, rdb) > last })
	handed := locktest.Calls(t, rdb, "publish")
	release(t, h)
	next := within(t, testTimeout, "the live waiter", served[0])
	if n := locktest.Calls(t, rdb, "publish") - handed; n != 1 || next.token <= h.token {
		t.Errorf("handed over %d times, token %d after %d: want once, to the live waiter", n, next.token, h.token)
	}
	release(t, next)
	mustBeRemoved(t, rdb, "past")
}

// The script cache is emptied between any two requests.
func TestFairScriptFlush(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, impatient)
	h := acquire(t, c.FairMutex("flush"))
	served := inTurn(t, rdb, c.FairMutex("flush"), "w")
	rdb.ScriptFlush(context.Background())
	release(t, h)
	rdb.ScriptFlush(context.Background())
	release(t, within(t, testTimeout, "the waiter", served[0]))
}
