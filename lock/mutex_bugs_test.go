package lock

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The redis client retries by itself, as go-redis does by default: no request counts
// twice, and none is refused because of itself.
// Regression: go-redis#2985, rueidislock (refused by its own key), redis-py (refused by its own key)
// Regression: go-redis by default (a script is sent twice)
func TestRetriedByTheRedisClient(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.Addr)
	direct := s.Dial(t)
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: 3, ReadTimeout: replyTimeout})
	t.Cleanup(func() { _ = rdb.Close() })
	c := newTestClient(t, rdb, Options{})
	release(t, acquire(t, c.Mutex("warm")))
	p.lose(2)
	h, err := c.Mutex("resent").TryAcquire(context.Background())
	if err != nil {
		t.Fatalf("refused although it is free: %v", err)
	}
	if got := hashOf(t, direct, "resent")["count"]; got != "1" || len(p.Dropped) != 2 {
		t.Errorf("count %s after %d lost replies, want 1 after 2", got, len(p.Dropped))
	}
	release(t, h)
	mustExist(t, direct, "resent", false)
}

// A release without a reply: the next acquire is of a new owner, and does not re-enter a possible hold of the old one.
// Regression: redisson#4178, redisson#4109
func TestUnconfirmedReleaseIsNotReentered(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	direct, p, c := behindProxy(t, Options{Timeout: waitTimeout}) // its last release must succeed
	h := acquire(t, c.FencedMutex("job"))
	before := hashOf(t, direct, "job")["owner"]
	p.hang()
	if err := h.Release(ctx); !errors.Is(err, ErrUnknown) {
		t.Fatalf("release without a reply: %v, want ErrUnknown", err)
	}
	p.lose(0)
	next := acquire(t, c.FencedMutex("job"))
	if now := hashOf(t, direct, "job"); now["owner"] == before || now["count"] != "1" || next.token <= h.token {
		t.Errorf("the next run re-entered: %v, token %d after %d", now, next.token, h.token)
	}
	release(t, next)
	mustExist(t, direct, "job", false)
}

// Different kinds of lock on one name refuse each other, in any order.
// Regression: redisson#4023
func TestMutexAndReadersWriterOnOneName(t *testing.T) {
	t.Parallel()
	c := newTestClient(t, startRedis(t).Dial(t), Options{})
	kinds := map[string]fencedTaker{"mutex": c.FencedMutex("one"), "read": c.RW("one").Read(), "write": c.RW("one").Write()}
	for _, tt := range []struct{ first, second string }{{"mutex", "read"}, {"mutex", "write"}, {"read", "mutex"}} {
		h := acquire(t, kinds[tt.first])
		if _, err := kinds[tt.second].TryAcquire(context.Background()); !errors.Is(err, ErrForeign) {
			t.Errorf("%s while there is a %s: %v, want ErrForeign", tt.second, tt.first, err)
		}
		release(t, h)
	}
}

// A lock of Redisson that its owner has entered again often from Go, in Redisson's layout, has as many fields.
func TestForeignHashOfManyReentries(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	fields := map[string]any{"23aed3a8-5a0c-4f5b-9f3a-0c3c1c2b7a11:1": 1000}
	for i := range 1000 {
		fields["h:"+strconv.Itoa(i)] = 1
	}
	rdb.HSet(ctx, "orders", fields)
	rdb.PExpire(ctx, "orders", time.Hour)
	if _, err := c.FencedMutex("orders").TryAcquire(ctx); !errors.Is(err, ErrHeld) {
		t.Errorf("try: %v, want ErrHeld", err)
	}
	rdb.HSet(ctx, "orders", "23aed3a8-5a0c-4f5b-9f3a-0c3c1c2b7a11:2", 1)
	if _, err := c.FencedMutex("orders").TryAcquire(ctx); !errors.Is(err, ErrForeign) {
		t.Errorf("try, with two owners in the hash: %v, want ErrForeign", err)
	}
}

// The lease is this call's, not an earlier one's.
// Regression: redisson#4818
func TestLeaseIsOfThisCall(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	m := newTestClient(t, rdb, Options{}).Mutex("lease")
	h := acquire(t, m, WithLease(time.Hour))
	release(t, h)
	h = acquire(t, m)
	if ttl := rdb.PTTL(ctx, "lease").Val(); ttl > 30*time.Second {
		t.Errorf("lease %v, want the client's 30 s", ttl)
	}
	inner, err := m.Acquire(h.Context(), WithReentry(), WithLease(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	release(t, inner)
	if ttl := rdb.PTTL(ctx, "lease").Val(); ttl < 10*time.Second {
		t.Errorf("an inner hold has shortened the lease to %v", ttl)
	}
	release(t, h)
}

// A release after the lease has expired reports the loss, and whether another owner has
// the lock, and changes nothing.
// Regression: redsync#125, node-redlock#65, redis-py#490, ShedLock#2583
func TestReleaseAfterExpiry(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	each(t, map[string]func(t *testing.T, p pair){
		"free": func(t *testing.T, p pair) {
			h := acquire(t, p.m, WithLease(50*time.Millisecond))
			eventually(t, testTimeout, "the lease expires", func() bool { return p.rdb.Exists(ctx, p.m.name).Val() == 0 })
			if err := h.Release(ctx); !errors.Is(err, ErrLost) || errors.Is(err, ErrNotOwner) {
				t.Errorf("release: %v, want ErrLost and not ErrNotOwner", err)
			}
		},
		"taken-through-the-same-mutex": func(t *testing.T, p pair) {
			h := acquire(t, p.m, WithLease(50*time.Millisecond))
			next := acquire(t, p.m)
			if err := h.Release(ctx); !errors.Is(err, ErrLost) || !errors.Is(err, ErrNotOwner) {
				t.Errorf("release: %v, want ErrLost and ErrNotOwner", err)
			}
			if err := next.Renew(ctx); err != nil {
				t.Errorf("the next one's hold: %v", err)
			}
			release(t, next)
		},
	})
}

// A hold that has ended is not restored by a renewal, not even if another owner came and
// left in between.
// Regression: redsync#158, RedLock.net#64, redlock-rb#36, redsync (extended after another holder)
func TestRenewalAfterTheEnd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	each(t, map[string]func(t *testing.T, p pair){
		"another-owner-in-between": func(t *testing.T, p pair) {
			h := acquire(t, p.m, WithLease(time.Hour))
			p.rdb.Del(ctx, p.m.name)
			release(t, acquire(t, p.theirs))
			if err := h.Renew(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("renew: %v, want ErrLost", err)
			}
			mustExist(t, p.rdb, p.m.name, false)
		},
		"renewal-overtaken-by-the-release": func(t *testing.T, p pair) {
			h := acquire(t, p.m)
			release(t, h)
			if r := p.m.client.store.renew(ctx, []claim{h.claim})[0]; r.err != nil || r.kept {
				t.Errorf("a renewal that arrives after the release: %+v", r)
			}
			mustExist(t, p.rdb, p.m.name, false)
		},
	})
}

// The context of the request was canceled: the deferred release works with it all the
// same; so does the undo of an acquire.
// Regression: open-match#1576, redis-py#3847, CURATOR-79, redsync (cleanup with the canceled context)
// Regression: bsm/redislock (no cleanup after a lost reply)
func TestCanceledRequestLeavesNothing(t *testing.T) {
	t.Parallel()
	direct, p, c := behindProxy(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	h, err := c.Mutex("web").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := h.Release(ctx); err != nil {
		t.Errorf("release: %v", err)
	}
	mustExist(t, direct, "web", false)

	p.hang()
	ctx, cancel = context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Mutex("web").Acquire(ctx)
		failed <- err
	}()
	<-p.Dropped // executed
	p.lose(0)
	cancel()
	if err := within(t, testTimeout, "the end of the acquire", failed); err == nil {
		t.Error("granted without a reply")
	}
	eventually(t, testTimeout, "nothing is left", func() bool {
		return direct.Exists(context.Background(), "web").Val() == 0
	})
	if n := len(c.dog.holds); n != 0 {
		t.Errorf("%d holds are watched", n)
	}
}

// There is never a lock without a lease, not even if its client dies before it has a
// reply.
// Regression: redis-py#818
func TestNoLockWithoutALease(t *testing.T) {
	t.Parallel()
	direct, p, c := behindProxy(t, Options{Timeout: 100 * time.Millisecond})
	p.hang()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _, _ = c.Mutex("crash").Acquire(ctx, WithLease(time.Minute)) }()
	<-p.Dropped
	if ttl := direct.PTTL(context.Background(), "crash").Val(); ttl <= 0 || ttl > time.Minute {
		t.Errorf("the lock of a client without a reply expires in %v", ttl)
	}
}

// Two goroutines with one mutex are two owners.
// Regression: etcd#11360, etcd's mutex (one session locks twice)
func TestOneMutexTwoGoroutines(t *testing.T) {
	t.Parallel()
	each(t, map[string]func(t *testing.T, p pair){"shared": func(t *testing.T, p pair) {
		inside, turns := make(chan struct{}, 1), make(chan error, 20)
		for range cap(turns) {
			go func() {
				h, err := p.m.Acquire(context.Background())
				if err != nil {
					turns <- err
					return
				}
				select {
				case inside <- struct{}{}:
					<-inside
				default:
					err = errors.New("two inside")
				}
				turns <- errors.Join(err, h.Release(context.Background()))
			}()
		}
		for range cap(turns) {
			if err := within(t, testTimeout, "a turn", turns); err != nil {
				t.Error(err)
			}
		}
	}})
}

// Two acquires of one owner are two holds: the first release does not free both.
// Regression: bsm/redislock (one release frees two holds)
func TestTwoHoldsOfOneOwner(t *testing.T) {
	t.Parallel()
	each(t, map[string]func(t *testing.T, p pair){"twice": func(t *testing.T, p pair) {
		first, second := acquire(t, p.m, WithOwner("o"), WithReentry()), acquire(t, p.m, WithOwner("o"), WithReentry())
		release(t, first)
		mustBeHeld(t, p.theirs)
		release(t, second)
		mustExist(t, p.rdb, p.m.name, false)
	}})
}
