package lock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Redisson tells anybody who releases a fair lock that is not there that all
// is well.
// Regression: Redisson's fair lock (release of an expired lock succeeds)
func TestFairReleaseOfExpiredIsLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).dial(t)
	c := newTestClient(t, rdb, Options{})
	h := take(t, c.FairMutex("over"), AcquireOptions{Lease: 50 * time.Millisecond})
	<-h.Context().Done()
	if err := h.Release(ctx); !errors.Is(err, ErrLost) || errors.Is(err, ErrNotOwner) {
		t.Errorf("release: %v, want ErrLost alone", err)
	}
	stranger := claim{name: "over", owner: "s", id: "s"}
	if left, err := c.fair.release(ctx, stranger); left != codeNotHeld || err != nil {
		t.Errorf("a stranger's release: %d, %v, want -1", left, err)
	}
	h = take(t, c.FairMutex("over"), AcquireOptions{Lease: 50 * time.Millisecond})
	other := take(t, c.FairMutex("over"), AcquireOptions{})
	if err := h.Release(ctx); !errors.Is(err, ErrLost) || !errors.Is(err, ErrNotOwner) {
		t.Errorf("release: %v, want ErrLost and ErrNotOwner", err)
	}
	release(t, other)
}

// Lost answers count nothing twice and grant nothing twice (redisson#7367, #4871).
// Regression: redisson#7367, redisson#4871
func TestFairAnswersLost(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.addr)
	direct := s.dial(t)
	c := newTestClient(t, dialRedis(t, p.addr), Options{})
	for _, losses := range []int32{1, 2} {
		p.loseNext.Store(losses)
		h := take(t, c.FairMutex("lost"), AcquireOptions{})
		if got := hashOf(t, direct, "lost")["count"]; got != "1" || h.Count() != 1 {
			t.Errorf("count %s at the server, %d at the client, want 1", got, h.Count())
		}
		served := inTurn(t, direct, newTestClient(t, direct, Options{}).FairMutex("lost"), "next")
		handed := calls(t, direct, "publish")
		p.loseNext.Store(losses)
		release(t, h)
		next := within(t, prompt, "the next", served[0])
		if n := calls(t, direct, "publish") - handed; n != 1 || next.Token() <= h.Token() {
			t.Errorf("handed over %d times, token %d after %d: want once", n, next.Token(), h.Token())
		}
		release(t, next)
		checkGone(t, direct, "lost")
	}
	if len(p.lost) != 6 {
		t.Errorf("%d answers were lost, want 6: the test tested nothing", len(p.lost))
	}
}

// The message that the lock was handed over is lost (redisson#5761, #6026): a new
// subscription wakes the grantee, and without one his heartbeat does.
// Regression: redisson#5761
func TestFairGrantMessageLost(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	direct := s.dial(t)
	c := newTestClient(t, s.dial(t), Options{})
	for name, help := range map[string]func(){
		"resubscribed": func() { killSubscribers(t, direct) },
		"heartbeat":    func() {},
	} {
		t.Run(name, func(t *testing.T) {
			waiter := newTestClient(t, s.dial(t), patient)
			if name == "heartbeat" {
				waiter.maxHeartbeat = 2 * time.Second
			}
			h := take(t, c.FairMutex(name), AcquireOptions{})
			served := inTurn(t, direct, waiter.FairMutex(name), "w")
			waitSubscribed(t, waiter, grantChannel(name))
			deaf := fairKeys(h.claim)
			deaf[5] = tagged(name, "nowhere")
			_, err := c.node.do(context.Background(), call{
				script: fairScript.release, keys: deaf, args: []any{h.claim.id, 1000, h.claim.owner},
			})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			help()
			next := within(t, prompt, "the waiter", served[0])
			if next.Token() <= h.Token() {
				t.Errorf("token %d after %d", next.Token(), h.Token())
			}
			t.Logf("served %v after the release", time.Since(start))
			release(t, next)
			_ = h.Release(context.Background())
		})
	}
}

// A waiter leaves just when it is granted the lock: it goes to the next at once.
// Regression: redisson#2714
func TestFairCancelMeetsGrant(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).dial(t)
	c := newTestClient(t, rdb, patient)
	for range 50 {
		h := take(t, c.FairMutex("meet"), AcquireOptions{})
		ctx, cancel := context.WithCancel(context.Background())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if h, err := c.FairMutex("meet").Acquire(ctx, AcquireOptions{Owner: "leaver"}); err == nil {
				_ = h.Release(ctx)
			}
		}()
		eventually(t, prompt, "the leaver waits", func() bool { return len(queued(t, rdb, "meet")) == 1 })
		served := inTurn(t, rdb, c.FairMutex("meet"), "next")
		go cancel()
		release(t, h)
		release(t, within(t, prompt, "the next", served[0]))
		<-gone
	}
	checkGone(t, rdb, "meet")
}

// The server restarts without anything: who waits takes a place again, and the
// scripts are sent again.
// Regression: redisson#6026
func TestFairServerRestartsEmpty(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	rdb := s.dial(t)
	c := newTestClient(t, rdb, impatient)
	h := take(t, c.FairMutex("again"), AcquireOptions{Lease: time.Hour})
	served := inTurn(t, rdb, c.FairMutex("again"), "a", "b")
	s.kill()
	startRedisAt(t, s.addr)
	one := make(chan *Hold, 2) // their order is open: the queue is gone
	for _, s := range served {
		go func() { one <- <-s }()
	}
	for range 2 {
		release(t, within(t, prompt, "a waiter", one))
	}
	if err := h.Release(context.Background()); !errors.Is(err, ErrLost) {
		t.Errorf("release of the old hold: %v, want ErrLost", err)
	}
}

// The lock vanishes without a word, and somebody tries to take it before those
// who wait have found out: he does not overtake them, and the first is told.
func TestFairTryDoesNotOvertake(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).dial(t)
	c := newTestClient(t, rdb, patient)
	h := take(t, c.FairMutex("try"), AcquireOptions{})
	served := inTurn(t, rdb, c.FairMutex("try"), "w")
	asleep(t, c, grantChannel("try"), 1)
	rdb.Del(context.Background(), "try")
	mustBeHeld(t, c.FairMutex("try"))
	next := within(t, prompt, "the waiter", served[0]) // by the message: his next heartbeat is an hour away
	if next.Token() <= h.Token() {
		t.Errorf("token %d after %d", next.Token(), h.Token())
	}
	release(t, next)
	_ = h.Release(context.Background())
}

// What is granted to a waiter is no lease until he fetches it: then it is the
// one that he asked for, though the grant would have waited longer.
func TestFairFetchedGrantIsALease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).dial(t)
	c := newTestClient(t, rdb, Options{PollMax: time.Hour}) // a grant waits for three hours
	h := take(t, c.FairMutex("fetch"), AcquireOptions{})
	short := wait(ctx, t, c.FairMutex("fetch"), AcquireOptions{Lease: time.Minute})
	eventually(t, prompt, "it waits", func() bool { return len(queued(t, rdb, "fetch")) == 1 })
	release(t, h)
	h = within(t, prompt, "the grant", short)
	if ttl := rdb.PTTL(ctx, "fetch").Val(); ttl > time.Minute {
		t.Errorf("the lock lasts %v, want the lease of a minute", ttl)
	}
	if hash := hashOf(t, rdb, "fetch"); hash["granted"] != "" {
		t.Errorf("still marked as not fetched: %v", hash)
	}
	release(t, h)
}

// Who has been dead for longer than his heartbeat lasts is not granted the lock.
func TestFairLongDeadHeadIsPassedOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).dial(t)
	c := newTestClient(t, rdb, patient)
	h := take(t, c.FairMutex("past"), AcquireOptions{})
	for _, id := range []string{"1", "2"} {
		dead := claim{name: "past", owner: "dead" + id, id: id, lease: 1000, waiterTTL: 2000}
		if g, err := c.fair.acquire(ctx, dead); err != nil || g.ok {
			t.Fatalf("acquire: %+v, %v", g, err)
		}
	}
	served := inTurn(t, rdb, c.FairMutex("past"), "live")
	last := deadline(t, rdb, "past", "dead2")
	eventually(t, prompt, "their time is over", func() bool { return serverTime(t, rdb) > last })
	handed := calls(t, rdb, "publish")
	release(t, h)
	next := within(t, prompt, "the live one", served[0])
	if n := calls(t, rdb, "publish") - handed; n != 1 || next.Token() <= h.Token() {
		t.Errorf("handed over %d times, token %d after %d: want once, to the live one", n, next.Token(), h.Token())
	}
	release(t, next)
	checkGone(t, rdb, "past")
}

// The script cache is emptied between any two requests.
func TestFairScriptFlush(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).dial(t)
	c := newTestClient(t, rdb, impatient)
	h := take(t, c.FairMutex("flush"), AcquireOptions{})
	served := inTurn(t, rdb, c.FairMutex("flush"), "w")
	rdb.ScriptFlush(context.Background())
	release(t, h)
	rdb.ScriptFlush(context.Background())
	release(t, within(t, prompt, "the waiter", served[0]))
}
