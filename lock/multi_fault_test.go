package lock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Replies to the script that acquires all locks are lost: the retry counts nothing twice.
// Regression: redisson#7367
func TestMultiRepliesLost(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.Addr)
	direct := s.Dial(t)
	c := newTestClient(t, dialRedis(t, p.Addr), Options{})
	p.lose(2)
	h, err := multi(t, c.FencedMutex("a"), c.FencedMutex("b")).TryAcquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if got := hashOf(t, direct, name); got["count"] != "1" || got["token"] != fmt.Sprint(tokenOf(h, name)) {
			t.Errorf("%s: %v, token %d, want a count of 1 and the same token", name, got, tokenOf(h, name))
		}
	}
	p.lose(2)
	releaseAll(t, h)
	if len(p.Dropped) != 4 {
		t.Errorf("%d replies were lost, want 4", len(p.Dropped))
	}
	mustExist(t, direct, "a", false)
	mustExist(t, direct, "b", false)
}

// The caller leaves while the request is in flight: nothing is left behind, and nothing is
// granted later.
func TestMultiCancelledInFlight(t *testing.T) {
	t.Parallel()
	direct, p, c := behindProxy(t, Options{})
	release(t, acquire(t, c.Mutex("warm")))
	p.hang()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := multi(t, c.Mutex("a"), c.Mutex("b")).Acquire(ctx)
		failed <- err
	}()
	<-p.Dropped // executed, but without a reply
	mustExist(t, direct, "b", true)
	p.lose(0)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || !Definite(err) {
		t.Errorf("error %v, want a definite Canceled", err)
	}
	mustExist(t, direct, "a", false)
	mustExist(t, direct, "b", false)
}

// When the watchdog finds a part of a hold lost, the hold ends, and its other parts are no
// longer renewed.
func TestMultiPartFoundGone(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{Lease: watchedLease})
	h := acquireAll(t, multi(t, c.Mutex("a"), c.Mutex("b")))
	first := h.Deadline()
	eventually(t, testTimeout, "it was renewed", func() bool { return h.Deadline().After(first) })
	rdb.Del(context.Background(), "a")
	select {
	case <-h.Context().Done():
	case <-time.After(testTimeout):
		t.Fatal("the loss was not noticed")
	}
	if got := context.Cause(h.Context()); !errors.Is(got, ErrLost) {
		t.Errorf("cause %v, want ErrLost", got)
	}
	eventually(t, testTimeout, "the other expires", func() bool {
		return rdb.Exists(context.Background(), "b").Val() == 0
	})
}

// Names in several slots, and a client that does not know of slots: the locks are acquired one by one instead. An
// Atomic acquire gets an error with the remedy. Names under one tag go in one script.
func TestCrossSlotMulti(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := clusterOfOne(t)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr}})
	t.Cleanup(func() { _ = cluster.Close() })
	for name, rdb := range map[string]redis.UniversalClient{"plain": s.Dial(t), "cluster": cluster} {
		t.Run(name, func(t *testing.T) {
			c := newTestClient(t, rdb, Options{})
			apart, err := c.Multi("a", "b", "c")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				releaseAll(t, acquireAll(t, apart))
			}
			if _, err := apart.TryAcquire(ctx, WithAtomic()); !errors.Is(err, ErrCrossSlot) || !Definite(err) {
				t.Errorf("one script for several slots: %v, want a definite ErrCrossSlot", err)
			}
			for _, key := range []string{"a", "b", "c"} {
				mustExist(t, s.Dial(t), key, false)
			}
			tagged, err := c.Multi("x{t}", "y{t}", "{t}")
			if err != nil {
				t.Fatal(err)
			}
			h, err := tagged.TryAcquire(ctx, WithAtomic())
			if err != nil {
				t.Fatal(err)
			}
			releaseAll(t, h)
		})
	}
}

// The other keys of a lock are in the slot of its name, whatever braces it has.
func TestCrossSlotCounted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := clusterOfOne(t)
	c := newTestClient(t, s.Dial(t), Options{})
	for _, name := range []string{"pool", "a{t}b", "{t}", "{}x", "x{y"} {
		for kind, build := range builders() {
			x := build(c, s.Dial(t), name)
			if _, err := x.TrySetPermits(ctx, 1); err != nil {
				if checkName(name) == nil {
					t.Errorf("%s %s: %v", kind, name, err)
				}
				continue
			}
			p, err := x.take(ctx, 1)
			mustGive(t, mustTake(t, p, err))
			x.rdb.Del(ctx, name)
		}
		if checkName(name) == nil {
			arm(t, c.Latch(name), 1)
			count(t, c.Latch(name), CountDownOptions{})
		}
	}
}

// TestMultiReleaseAtOnce: all locks are released before the first reply, even if their releases waited behind others
// for a reply that does not come. No reply is given up meanwhile: the client would wait a minute for it.
func TestMultiReleaseAtOnce(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.Addr)
	direct := s.Dial(t)
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = rdb.Close() })
	c := newTestClient(t, rdb, Options{Timeout: 2 * time.Minute})
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	all, err := c.Multi(names...)
	if err != nil {
		t.Fatal(err)
	}
	releaseAll(t, acquireAll(t, all)) // the scripts are known
	h := acquireAll(t, all)
	p.hang()
	released := make(chan error, 1)
	go func() { released <- h.Release(context.Background()) }()
	for _, name := range names {
		eventually(t, testTimeout, name+" is released without a reply to another", func() bool {
			return direct.Exists(context.Background(), name).Val() == 0
		})
	}
	if len(released) > 0 {
		t.Errorf("the release ended without a reply: %v", <-released)
	}
	p.lose(0)
	p.CutConnections()
	if err := within(t, 2*testTimeout, "the release", released); err != nil {
		t.Error(err)
	}
}

// lateTimer is a context whose deadline has passed, and whose timer has not noticed.
type lateTimer struct{ context.Context }

func (lateTimer) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// A part that was not granted before the limit of its wait leads to another round, also if the timer of the limit is
// late.
func TestRoundEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	later, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	for name, tc := range map[string]struct {
		ctx  context.Context
		want bool
	}{
		"without a deadline":  {t.Context(), false},
		"before its deadline": {later, false},
		"canceled":            {canceled, true},
		"a late timer":        {lateTimer{t.Context()}, true},
	} {
		if got := ended(tc.ctx); got != tc.want {
			t.Errorf("%s: ended %v, want %v", name, got, tc.want)
		}
	}
}
