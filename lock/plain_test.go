package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// plainLock acquires the mutex of that name with SET.
func plainLock(t *testing.T, c *Client, rdb *redis.Client, name string) *Hold {
	t.Helper()
	h := acquire(t, c.Mutex(name))
	if value := rdb.Get(context.Background(), name).Val(); value != "h:"+h.claim.id {
		t.Fatalf("the key holds %q, want the hold %s", value, h.claim.id)
	}
	return h
}

// A mutex that was acquired with SET is held, renewed, inspected and released as every other.
func TestPlainMutex(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c, other := newTestClient(t, rdb, Options{}), newTestClient(t, rdb, Options{})
	ctx := context.Background()
	h := plainLock(t, c, rdb, "job")
	if err := h.Extend(ctx, time.Hour); err != nil || rdb.PTTL(ctx, "job").Val() < 59*time.Minute {
		t.Errorf("extend: %v, and %v are left", err, rdb.PTTL(ctx, "job").Val())
	}
	if s, err := other.Mutex("job").Inspect(ctx); err != nil || s.Owner != h.Owner() || s.Count != 1 || s.Remaining <= 0 {
		t.Errorf("inspect: %+v, %v", s, err)
	}
	for kind, try := range map[string]func() error{
		"mutex": func() error { _, err := other.Mutex("job").TryAcquire(ctx); return err },
		"fair":  func() error { _, err := other.FairMutex("job").TryAcquire(ctx); return err },
		"multi": func() error { return tryMulti(ctx, other) },
	} {
		if err := try(); !errors.Is(err, ErrHeld) {
			t.Errorf("%s: %v, want that it is held", kind, err)
		}
	}
	if ttl := rdb.PTTL(ctx, "job").Val(); ttl < 59*time.Minute {
		t.Errorf("%v are left after it was asked for", ttl)
	}
	release(t, h)
	if rdb.Exists(ctx, "job").Val() != 0 {
		t.Error("the lock is there after its release")
	}
}

// A waiter of another client is woken, though the hold was acquired before any client waited.
func TestPlainMutexWakesWaiters(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c, other := newTestClient(t, rdb, Options{}), newTestClient(t, rdb, Options{PollMax: time.Hour})
	h := plainLock(t, c, rdb, "job")
	served := acquireLater(context.Background(), t, other.Mutex("job"))
	waitSubscribed(t, other, other.Mutex("job").channel())
	eventually(t, testTimeout, "it has left its mark", func() bool {
		return rdb.HGet(context.Background(), "job", "notify").Val() == "w"
	})
	release(t, h)
	release(t, within(t, testTimeout, "the waiter is served", served))
}

// Nested holds of every kind of release order leave the lock held until the last one is released.
func TestPlainMutexIsReentered(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	ctx := context.Background()
	for _, outerFirst := range []bool{false, true} {
		outer := plainLock(t, c, rdb, "job")
		if _, err := c.Mutex("job").Acquire(outer.Context()); !errors.Is(err, ErrReentered) {
			t.Fatalf("a re-entry that was not asked for: %v", err)
		}
		inner, err := c.Mutex("job").Acquire(outer.Context(), WithReentry(), WithLease(time.Hour))
		if err != nil || inner.Count() != 2 || rdb.PTTL(ctx, "job").Val() < 59*time.Minute {
			t.Fatalf("re-entry: %v; left %v", err, rdb.PTTL(ctx, "job").Val())
		}
		first, last := inner, outer
		if outerFirst {
			first, last = outer, inner
		}
		release(t, first)
		if _, err := c.Mutex("job").TryAcquire(ctx); !errors.Is(err, ErrHeld) {
			t.Errorf("between the releases: %v, want that it is held", err)
		}
		release(t, last)
		if rdb.Exists(ctx, "job").Val() != 0 {
			t.Error("the lock is there after its last release")
		}
	}
}

// A SET that arrives after the release of its hold makes a lock of nobody: every kind treats it as free.
func TestLateSetIsFree(t *testing.T) {
	t.Parallel()
	for kind, try := range map[string]func(ctx context.Context, c *Client) error{
		"mutex": func(ctx context.Context, c *Client) error { _, err := c.Mutex("job").TryAcquire(ctx); return err },
		"wait": func(ctx context.Context, c *Client) error {
			_, err := c.Mutex("job").Acquire(ctx, WithWait(time.Second))
			return err
		},
		"fenced":  func(ctx context.Context, c *Client) error { _, err := c.FencedMutex("job").TryAcquire(ctx); return err },
		"fair":    func(ctx context.Context, c *Client) error { _, err := c.FairMutex("job").TryAcquire(ctx); return err },
		"multi":   tryMulti,
		"inspect": freeByInspect,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := startRedis(t)
			rdb := s.Dial(t)
			p := startProxy(t, s.Addr)
			c := newTestClient(t, dialRedis(t, p.Addr), Options{Timeout: time.Second, Lease: time.Minute})
			p.lose(1) // the reply to SET; the request that follows finds the hold
			h := acquire(t, c.Mutex("job"))
			if !h.claim.late {
				t.Fatal("no SET was in doubt")
			}
			release(t, h)
			ctx := context.Background()
			if ttl := rdb.PTTL(ctx, h.claim.tombstoneKey()).Val(); ttl < time.Minute {
				t.Errorf("the tombstone lasts %v, less than the lock that its SET could make", ttl)
			}
			rdb.SetNX(ctx, "job", "h:"+h.claim.id, time.Minute)
			if err := try(ctx, newTestClient(t, rdb, Options{})); err != nil {
				t.Errorf("%v, want that it is free", err)
			}
		})
	}
}

// The lock of a hold becomes its tombstone if its lease outlasts the time of a tombstone, and if the user may rename
// keys. A release that is sent again gets the same reply in all cases.
func TestTombstoneOfPlainRelease(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lease   time.Duration
		right   string
		renamed bool
	}{
		"lock renamed":       {50 * time.Second, "+rename", true},
		"lease ends early":   {29 * time.Second, "+rename", false},
		"lease of a week":    {7 * 24 * time.Hour, "+rename", false},
		"no right to rename": {50 * time.Second, "-rename", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			const timeout = 10 * time.Second // three are more than a lease that ends early
			rdb, p, c := behindProxy(t, Options{Timeout: timeout})
			acl(t, rdb, tc.right)
			h, err := c.Mutex("job").Acquire(ctx, WithLease(tc.lease))
			if err != nil {
				t.Fatal(err)
			}
			p.lose(1) // the reply to the release
			release(t, h)
			key := h.claim.tombstoneKey()
			if value := rdb.Get(ctx, key).Val(); (value == h.claim.field()) != tc.renamed {
				t.Errorf("the tombstone is %q; renamed: want %v", value, tc.renamed)
			}
			if ttl := rdb.PTTL(ctx, key).Val(); ttl < timeout || ttl > maxTombstoneTTL {
				t.Errorf("the tombstone lasts %v, want from one timeout to %v", ttl, maxTombstoneTTL)
			}
		})
	}
}

func tryMulti(ctx context.Context, c *Client) error {
	m, err := c.Multi("job", "{job}2")
	if err == nil {
		_, err = m.TryAcquire(ctx)
	}
	return err
}

func freeByInspect(ctx context.Context, c *Client) error {
	s, err := c.Mutex("job").Inspect(ctx)
	if err == nil && s.Owner != "" {
		err = errors.New("it has the owner " + s.Owner)
	}
	return err
}

// What cannot be made a hash is left as it is: the hold stays valid, and others are refused.
func TestPlainMutexOnAFullServer(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	ctx := context.Background()
	h := plainLock(t, c, rdb, "job")
	if err := rdb.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := newTestClient(t, rdb, Options{}).Mutex("job").TryAcquire(ctx); !errors.Is(err, ErrHeld) {
		t.Errorf("%v, want that it is held", err)
	}
	if value := rdb.Get(ctx, "job").Val(); value != "h:"+h.claim.id {
		t.Errorf("the key holds %q", value)
	}
	release(t, h)
}
