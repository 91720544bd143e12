package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// pair is two clients of one server, and a lock as both see it.
type pair struct {
	rdb       *redis.Client
	m, theirs *Mutex
}

// each runs every case with a lock of its own.
func each(t *testing.T, cases map[string]func(t *testing.T, p pair)) {
	t.Helper()
	rdb := startRedis(t).Dial(t)
	c, other := newTestClient(t, rdb, Options{}), newTestClient(t, rdb, Options{})
	for name, run := range cases {
		t.Run(name, func(t *testing.T) { run(t, pair{rdb, c.Mutex(name), other.Mutex(name)}) })
	}
}

func tokensWhenAskedFor(t *testing.T, p pair) {
	fenced := p.m.client.FencedMutex(p.m.name)
	h := acquire(t, fenced)
	inner := acquire(t, p.m, WithOwner(h.Owner()), WithReentry())
	if h.token == 0 || inner.token != h.token {
		t.Errorf("token %d, of the inner hold %d, want some and the same", h.token, inner.token)
	}
	release(t, inner)
	release(t, h)
	if next := acquire(t, fenced); next.token <= h.token {
		t.Errorf("next token %d, want more than %d", next.token, h.token)
	}
}

// The basic operations of a mutex.
func TestMutex(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	each(t, map[string]func(t *testing.T, p pair){
		"acquired-and-released": func(t *testing.T, p pair) {
			h := acquire(t, p.m)
			if h.token != 0 || h.Count() != 1 {
				t.Errorf("token %d, count %d, want none and 1", h.token, h.Count())
			}
			if left := time.Until(h.Deadline()); left < 10*time.Second || left > 30*time.Second {
				t.Errorf("valid for %v, want a little less than 30 s", left)
			}
			release(t, h)
			mustExist(t, p.rdb, p.m.name, false)
			if got := context.Cause(h.Context()); !errors.Is(got, ErrReleased) {
				t.Errorf("cause %v, want ErrReleased", got)
			}
			acquire(t, p.theirs)
		},
		"tokens-when-asked-for": tokensWhenAskedFor,
		"held-by-another": func(t *testing.T, p pair) {
			acquire(t, p.m)
			_, err := p.theirs.TryAcquire(ctx)
			if !errors.Is(err, ErrHeld) || !Definite(err) {
				t.Errorf("error %v, want a definite ErrHeld", err)
			}
		},
		"wait-runs-out": func(t *testing.T, p pair) {
			acquire(t, p.m)
			short, cancel := context.WithTimeout(ctx, waitTimeout)
			defer cancel()
			_, err := p.theirs.Acquire(short)
			if !errors.Is(err, ErrHeld) || !errors.Is(err, context.DeadlineExceeded) || !Definite(err) {
				t.Errorf("error %v, want a definite ErrHeld and DeadlineExceeded", err)
			}
		},
		"released-twice": func(t *testing.T, p pair) {
			h := acquire(t, p.m)
			release(t, h)
			if err := h.Release(ctx); !errors.Is(err, ErrReleased) {
				t.Errorf("second release: %v, want ErrReleased", err)
			}
		},
		"released-with-ended-context": func(t *testing.T, p pair) {
			h := acquire(t, p.m)
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if err := h.Release(ended); err != nil {
				t.Errorf("release: %v", err)
			}
			mustExist(t, p.rdb, p.m.name, false)
		},
		"script-cache-emptied": func(t *testing.T, p pair) {
			p.rdb.ScriptFlush(ctx)
			h := acquire(t, p.m)
			p.rdb.ScriptFlush(ctx)
			release(t, h)
		},
	})
}

// An owner holds a lock as often as it likes, and no hold affects another.
func TestReentry(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	each(t, map[string]func(t *testing.T, p pair){
		"reentered-by-owner": func(t *testing.T, p pair) {
			a := acquire(t, p.m, WithOwner("x"), WithReentry())
			b := acquire(t, p.theirs, WithOwner("x"), WithReentry())
			checkNested(t, p.rdb.HGet(ctx, p.m.name, "count").Val(), a, b)
			release(t, a)
			mustExist(t, p.rdb, p.m.name, true)
			release(t, b)
			mustExist(t, p.rdb, p.m.name, false)
		},
		"reentered-by-context": func(t *testing.T, p pair) {
			a := acquire(t, p.m)
			b, err := p.m.TryAcquire(a.Context(), WithReentry())
			if err != nil {
				t.Fatal(err)
			}
			checkNested(t, p.rdb.HGet(ctx, p.m.name, "count").Val(), a, b)
			release(t, b)
			if a.Context().Err() != nil {
				t.Error("the outer hold ended with the inner one")
			}
			release(t, a)
		},
		"lease-never-shortened": func(t *testing.T, p pair) {
			acquire(t, p.m, WithOwner("x"), WithReentry(), WithLease(time.Hour))
			acquire(t, p.m, WithOwner("x"), WithReentry(), WithLease(time.Minute))
			if ttl := p.rdb.PTTL(ctx, p.m.name).Val(); ttl < 59*time.Minute || ttl > time.Hour {
				t.Errorf("ttl %v, want just under an hour", ttl)
			}
		},
		"old-hold-of-same-owner": func(t *testing.T, p pair) {
			old := acquire(t, p.m, WithOwner("x"), WithReentry(), WithLease(50*time.Millisecond))
			eventually(t, testTimeout, "the lease expires", func() bool {
				return p.rdb.Exists(ctx, p.m.name).Val() == 0
			})
			h := acquire(t, p.m, WithOwner("x"), WithReentry())
			if err := old.Release(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("release of the old hold: %v, want ErrLost", err)
			}
			mustExist(t, p.rdb, p.m.name, true)
			release(t, h)
		},
	})
}

// Holds whose lease was renewed or has expired, or whose lock another owner has.
func TestLease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	each(t, map[string]func(t *testing.T, p pair){
		"lease-expired": func(t *testing.T, p pair) {
			h := acquire(t, p.m, WithLease(100*time.Millisecond))
			<-h.Context().Done()
			if got := context.Cause(h.Context()); !errors.Is(got, ErrLost) {
				t.Errorf("cause %v, want ErrLost", got)
			}
			if err := h.Release(ctx); !errors.Is(err, ErrLost) || errors.Is(err, ErrNotOwner) {
				t.Errorf("release: %v, want ErrLost alone", err)
			}
			if err := h.Renew(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("renew: %v, want ErrLost", err)
			}
		},
		"lease-expired-and-taken": func(t *testing.T, p pair) {
			h := acquire(t, p.m, WithLease(100*time.Millisecond))
			theirHold := acquire(t, p.theirs, WithOwner("them"), WithReentry()) // a hash, whether it waited or not
			before := hashOf(t, p.rdb, p.m.name)
			if err := h.Release(ctx); !errors.Is(err, ErrLost) || !errors.Is(err, ErrNotOwner) {
				t.Errorf("release: %v, want ErrLost and ErrNotOwner", err)
			}
			if diff := cmp.Diff(before, hashOf(t, p.rdb, p.m.name)); diff != "" {
				t.Errorf("the release changed another owner's lock: %s", diff)
			}
			release(t, theirHold)
		},
		"renewed-by-hand": func(t *testing.T, p pair) {
			h := acquire(t, p.m, WithLease(time.Minute))
			p.rdb.PExpire(ctx, p.m.name, 10*time.Second)
			before := h.Deadline()
			if err := h.Renew(ctx); err != nil {
				t.Fatal(err)
			}
			if ttl := p.rdb.PTTL(ctx, p.m.name).Val(); ttl < 40*time.Second {
				t.Errorf("ttl %v, want a minute", ttl)
			}
			if !h.Deadline().After(before) {
				t.Error("the deadline was not extended")
			}
			release(t, h)
		},
	})
}

// A key that is not a lock is left as it is.
func TestForeignKey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	each(t, map[string]func(t *testing.T, p pair){
		"foreign-string": func(t *testing.T, p pair) {
			p.rdb.Set(ctx, p.m.name, "mine", 0)
			_, err := p.m.Acquire(ctx)
			if !errors.Is(err, ErrForeign) || p.rdb.Get(ctx, p.m.name).Val() != "mine" {
				t.Errorf("error %v, want ErrForeign and the key untouched", err)
			}
		},
		"foreign-hash": func(t *testing.T, p pair) {
			p.rdb.HSet(ctx, p.m.name, "size", "9")
			_, err := p.m.Acquire(ctx)
			want := map[string]string{"size": "9"}
			if diff := cmp.Diff(want, hashOf(t, p.rdb, p.m.name)); !errors.Is(err, ErrForeign) || diff != "" {
				t.Errorf("error %v, want ErrForeign and the key untouched: %s", err, diff)
			}
		},
	})
}

func checkNested(t *testing.T, count string, outer, inner *Hold) {
	t.Helper()
	if count != "2" || inner.Count() != 2 {
		t.Errorf("count %s at the server, %d at the client, want 2", count, inner.Count())
	}
	if outer.token != inner.token || outer.Owner() != inner.Owner() {
		t.Errorf("inner hold has token %d and owner %s, outer %d and %s",
			inner.token, inner.Owner(), outer.token, outer.Owner())
	}
}

func TestRefusedArguments(t *testing.T) {
	t.Parallel()
	rdb := dialRedis(t, "127.0.0.1:1") // never dialed
	c := newTestClient(t, rdb, Options{})
	for _, tt := range []struct {
		name  string
		lease time.Duration
	}{{"", 0}, {"a}b", 0}, {"x", time.Millisecond}, {"x", -1}} {
		_, err := c.Mutex(tt.name).Acquire(context.Background(), WithLease(tt.lease))
		if err == nil || !Definite(err) {
			t.Errorf("name %q, lease %v: error %v, want a definite one", tt.name, tt.lease, err)
		}
	}
	if _, err := New(rdb, Options{PollMax: -1}); err == nil {
		t.Error("a negative poll limit was accepted")
	}
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	if _, err := New(ring, Options{}); err == nil {
		t.Error("a ring was accepted, which panics at the first pipeline")
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{Timeout: testTimeout})
	h := acquire(t, c.FencedMutex("orders"), WithOwner("me"), WithReentry())
	want := map[string]string{"owner": "me", "count": "1", "token": fmt.Sprint(h.token), "h:" + h.claim.id: "1"}
	if diff := cmp.Diff(want, hashOf(t, rdb, "orders")); diff != "" {
		t.Errorf("hash of a held lock: %s", diff)
	}
	release(t, h)
	keys := rdb.Keys(context.Background(), "*").Val()
	if len(keys) != 2 { // the token counter and a tombstone that expires by itself
		t.Errorf("keys left behind: %v", keys)
	}
	if ttl := rdb.PTTL(context.Background(), h.claim.tombstoneKey()).Val(); ttl <= testTimeout || ttl > 2*testTimeout {
		t.Errorf("tombstone lives for %v, want about twice the timeout", ttl)
	}
}

func TestManyPairs(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	const workers, each = 50, 200
	errs := make(chan error, workers)
	for w := range workers {
		go func() {
			for i := range each {
				h, err := c.Mutex(fmt.Sprintf("pair-%d-%d", w, i)).Acquire(context.Background())
				if err == nil {
					err = h.Release(context.Background())
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range workers {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if n := len(rdb.Keys(context.Background(), "pair-*").Val()); n != 0 {
		t.Errorf("%d locks left behind", n)
	}
	c.dog.mu.Lock()
	defer c.dog.mu.Unlock()
	if len(c.dog.holds) != 0 {
		t.Errorf("%d holds still watched", len(c.dog.holds))
	}
}

// Contenders on one key are all served, one at a time, with increasing tokens.
func TestContenders(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	clients := []*Client{newTestClient(t, s.Dial(t), Options{}), newTestClient(t, s.Dial(t), Options{})}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	var inside int
	var last int64
	errs := make(chan error, 100)
	for i := range 100 {
		go func() {
			h, err := clients[i%2].FencedMutex("one").Acquire(ctx)
			if err != nil {
				errs <- err
				return
			}
			mu.Lock()
			inside++
			if inside != 1 || h.token <= last {
				err = fmt.Errorf("%d inside, token %d after %d", inside, h.token, last)
			}
			last = h.token
			mu.Unlock()
			mu.Lock()
			inside--
			mu.Unlock()
			errs <- errors.Join(err, h.Release(ctx))
		}()
	}
	for range 100 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}
