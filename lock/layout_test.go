package lock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestRedissonRefusesOtherKinds: Redisson's layout has mutexes only, and says so.
func TestRedissonRefusesOtherKinds(t *testing.T) {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // nothing is sent
	c := newTestClient(t, rdb, Options{Layout: Redisson})
	other := func(port string) *redis.Client { return redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port}) }
	for name, refused := range map[string]func() error{
		"fair":           func() error { _, err := c.FairMutex("a").Acquire(ctx); return err },
		"fair queue":     func() error { _, err := c.FairMutex("a").Queue(ctx); return err },
		"read":           func() error { _, err := c.RW("a").Read().TryAcquire(ctx); return err },
		"inspect RW":     func() error { _, err := c.RW("a").Inspect(ctx); return err },
		"semaphore":      func() error { _, err := c.Semaphore("a", WithTotal(1)).Acquire(ctx, 1); return err },
		"permits":        func() error { return c.PermitSemaphore("a").SetPermits(ctx, 1) },
		"fair semaphore": func() error { _, err := c.FairSemaphore("a").State(ctx); return err },
		"latch":          func() error { _, err := c.Latch("a").TrySetCount(ctx, 1); return err },
		"several":        func() error { _, err := c.Multi("a", "b"); return err },
		"several masters": func() error {
			_, err := NewQuorum(Options{Layout: Redisson}, other("1"), other("2"), other("3"))
			return err
		},
		"one in several":    func() error { _, err := Multi(c.Mutex("a")); return err },
		"force of RW":       func() error { _, err := c.RW("a").ForceRelease(ctx); return err },
		"wait for a latch":  func() error { return c.Latch("a").Wait(ctx) },
		"drain":             func() error { _, err := c.Semaphore("a").Drain(ctx); return err },
		"force of the fair": func() error { _, err := c.FairMutex("a").ForceRelease(ctx); return err },
	} {
		if err := refused(); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %v, want %v", name, err, ErrLayout)
		}
	}
	if _, err := c.Mutex("a", WithMetadata("x")).Acquire(ctx); err == nil || !strings.Contains(err.Error(), "WithMetadata") {
		t.Errorf("metadata: %v", err)
	}
	if _, err := c.Mutex("a", WithOwner("h:x")).Acquire(ctx); err == nil || !strings.Contains(err.Error(), "h:x") {
		t.Errorf("an owner that looks like a hold: %v", err)
	}
	if _, err := New(rdb, Options{Layout: 7}); err == nil || !strings.Contains(err.Error(), "layout 7") {
		t.Errorf("an unknown layout: %v", err)
	}
}

// TestRedissonHash: the first hold of a new owner is Redisson's hash and nothing else, and is free for Redisson after
// its release.
func TestRedissonHash(t *testing.T) {
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{Layout: Redisson})
	h, err := c.Mutex("orders").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fields := rdb.HGetAll(ctx, "orders").Val()
	if len(fields) != 1 || fields[h.Owner()] != "1" {
		t.Errorf("the hash is %v, the owner %s", fields, h.Owner())
	}
	state, err := c.Mutex("orders").Inspect(ctx)
	if err != nil || state.Owner != h.Owner() || state.Count != 1 || state.Remaining <= 0 {
		t.Errorf("inspect: %+v, %v", state, err)
	}
	if err := h.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if n := rdb.Exists(ctx, "orders").Val(); n != 0 {
		t.Error("the key is there after the release")
	}
	if latches := rdb.Keys(ctx, "redisson_unlock_latch:{orders}:*").Val(); len(latches) != 1 {
		t.Errorf("latches %q, want one", latches)
	}
}

// TestRedissonOuterReleaseTwice: a release that arrives after its tombstone has expired leaves the inner hold alone.
func TestRedissonOuterReleaseTwice(t *testing.T) {
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{Layout: Redisson})
	outer, err := c.Mutex("orders").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := c.Mutex("orders", WithOwner(outer.Owner()), WithReentry()).Acquire(ctx)
	if err != nil || inner.Count() != 2 {
		t.Fatalf("re-entry: %v", err)
	}
	if err := outer.Release(ctx); err != nil || outer.Count() != 1 {
		t.Fatalf("release of the outer hold: %v, %d left", err, outer.Count())
	}
	rdb.Del(ctx, outer.claim.tombstoneKey())
	if left, err := c.giveBack(ctx, outer.claim); left != codeNotHeld || err != nil {
		t.Errorf("the second release of the outer hold: %d, %v", left, err)
	}
	if err := inner.Renew(ctx); err != nil {
		t.Errorf("renewal of the inner hold: %v", err)
	}
	if err := inner.Release(ctx); err != nil {
		t.Error(err)
	}
}

// TestRedissonForceRelease wakes a waiter, and leaves other data.
func TestRedissonForceRelease(t *testing.T) {
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{Layout: Redisson, PollMax: time.Hour})
	m := c.Mutex("orders")
	held, err := m.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan error, 1)
	go func() {
		h, err := m.Acquire(ctx, WithWait(testTimeout))
		if err == nil {
			err = h.Release(ctx)
		}
		next <- err
	}()
	eventually(t, testTimeout, "the waiter has subscribed", func() bool {
		return rdb.PubSubNumSub(ctx, "redisson_lock__channel:{orders}").Val()["redisson_lock__channel:{orders}"] == 1
	})
	if was, err := m.ForceRelease(ctx); !was || err != nil {
		t.Errorf("force: %v, %v", was, err)
	}
	if err := <-next; err != nil {
		t.Errorf("the waiter: %v", err)
	}
	if err := held.Release(ctx); !errors.Is(err, ErrLost) {
		t.Errorf("release after force: %v", err)
	}
	rdb.HSet(ctx, "user", "name", "x")
	if _, err := c.Mutex("user").ForceRelease(ctx); !errors.Is(err, ErrForeign) || rdb.Exists(ctx, "user").Val() != 1 {
		t.Errorf("force of a hash without expiry: %v", err)
	}
	if was, err := c.Mutex("none").ForceRelease(ctx); was || err != nil {
		t.Errorf("force of a free lock: %v, %v", was, err)
	}
}

// TestRedissonLockIsHeld: to a client with another layout, others hold Redisson's lock, re-entered or not.
func TestRedissonLockIsHeld(t *testing.T) {
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	theirs, c := newTestClient(t, rdb, Options{Layout: Redisson}), newTestClient(t, rdb, Options{})
	outer, err := theirs.Mutex("orders").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	held := func(when string) {
		t.Helper()
		for kind, try := range map[string]func() error{
			"mutex": func() error { _, err := c.Mutex("orders").TryAcquire(ctx); return err },
			"fair":  func() error { _, err := c.FairMutex("orders").TryAcquire(ctx); return err },
			"multi": func() error { _, err := multi(t, c.Mutex("orders"), c.Mutex("{orders}:2")).TryAcquire(ctx); return err },
		} {
			if err := try(); !errors.Is(err, ErrHeld) {
				t.Errorf("%s, %s: %v, want ErrHeld", when, kind, err)
			}
		}
	}
	held("held once")
	inner, err := theirs.Mutex("orders", WithOwner(outer.Owner()), WithReentry()).Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	held("re-entered")
	release(t, inner)
	release(t, outer)
}

// TestRedissonTokenOfAnInterruptedAcquire: an acquire was granted the lock while its slot migrated, and got no further.
// When it is sent again, its fencing token differs from the earlier grant's: the counter of tokens alone does not say
// whether a grant has one.
func TestRedissonTokenOfAnInterruptedAcquire(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers, rdb := startCluster(t)
	for name, finish := range map[string]func(m *slotMove){
		"during": func(*slotMove) {},
		"after":  (*slotMove).finish,
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestClient(t, rdb, Options{Layout: Redisson})
			m := c.FencedMutex(name)
			before := acquire(t, m)
			release(t, before)
			a, err := m.mutex.attempt(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			move := startMove(t, servers, name)
			store := c.store.(*redissonStore)
			if g, err := store.decide(ctx, a.claim); err != nil || !g.ok {
				t.Fatalf("the acquire that is interrupted: %+v, %v", g, err)
			}
			finish(move)
			for range 2 {
				g, err := store.acquire(ctx, a.claim)
				if err != nil || g.token != before.token+1 || g.count != 1 {
					t.Errorf("the acquire again: %+v, %v; the grant before had token %d", g, err, before.token)
				}
			}
			if left, err := store.release(ctx, a.claim); left != 0 || err != nil {
				t.Errorf("release: %d, %v", left, err)
			}
			if name == "during" {
				move.finish()
			}
			if n := rdb.Exists(ctx, name).Val(); n != 0 {
				t.Error("the lock is held after its release")
			}
		})
	}
}

// TestRedissonTokenOfTwoRequests: two acquires of one owner, while the slot of the lock migrates, both find that the
// grant has no fencing token yet, and both mint one. They get the same, and so does a re-entry after the migration: an
// inner hold with a greater token would fence out the outer one.
func TestRedissonTokenOfTwoRequests(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers, rdb := startCluster(t)
	c := newTestClient(t, rdb, Options{Layout: Redisson})
	m, store := c.FencedMutex("two"), c.store.(*redissonStore)
	move := startMove(t, servers, "two")
	var claims []claim
	for range 2 {
		a, err := m.mutex.attempt(ctx, []Option{WithOwner("owner:1"), WithReentry()})
		if err != nil {
			t.Fatal(err)
		}
		if g, err := store.decide(ctx, a.claim); err != nil || g.token != unminted {
			t.Fatalf("%+v, %v, want a grant without a token", g, err)
		}
		claims = append(claims, a.claim)
	}
	var tokens []int64
	for _, claim := range claims {
		token, err := store.mint(ctx, claim)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	move.finish()
	inner, err := store.acquire(ctx, claims[1])
	if err != nil || tokens[0] != tokens[1] || inner.token != tokens[0] {
		t.Errorf("tokens %v, and then %+v, %v", tokens, inner, err)
	}
	if state, err := m.Inspect(ctx); err != nil || state.Token != tokens[0] || state.Count != 2 {
		t.Errorf("inspect: %+v, %v, want token %d", state, err, tokens[0])
	}
	for _, claim := range slices.Backward(claims) {
		if _, err := store.release(ctx, claim); err != nil {
			t.Error(err)
		}
	}
	if next := acquire(t, m); next.token <= tokens[0] || rdb.HExists(ctx, "two", "h:").Val() {
		t.Errorf("the next grant has token %d after %v", next.token, tokens)
	}
}
