package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// taker is any lock whose holds are of type H.
type taker[H anyHold] interface {
	Acquire(ctx context.Context, opts ...Option) (H, error)
	TryAcquire(ctx context.Context, opts ...Option) (H, error)
}

// fencedTaker is any lock whose holds have tokens.
type fencedTaker = taker[*FencedHold]

// anyHold is a hold with or without a token.
type anyHold interface {
	*Hold | *FencedHold
	bare() *Hold
}

// bare is the hold without its token.
func (h *Hold) bare() *Hold { return h }

// acquireLater acquires m in the background until the end of the test.
func acquireLater[H anyHold](ctx context.Context, t *testing.T, m taker[H], opts ...Option) <-chan *Hold {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	served, done := make(chan *Hold, 1), make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		h, err := m.Acquire(ctx, opts...)
		if err == nil {
			served <- h.bare()
		} else if ctx.Err() == nil {
			t.Errorf("acquire: %v", err)
		}
	}()
	return served
}

// waitersAtServer are the owners of the waiters that the server keeps; the queue and the
// deadlines must name the same.
func waitersAtServer(t testing.TB, rdb *redis.Client, name string) []string {
	t.Helper()
	owners, entries := []string{}, map[string]bool{}
	var list, set *redis.StringSliceCmd
	if _, err := rdb.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
		list = p.LRange(context.Background(), tagged(name, "queue"), 0, -1)
		set = p.ZRange(context.Background(), tagged(name, "waiters"), 0, -1)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Val() {
		_, owner, _ := strings.Cut(e, " ")
		owners = append(owners, owner)
		if entries[e] {
			t.Errorf("%s is twice in the queue", e)
		}
		entries[e] = true
	}
	for _, e := range set.Val() {
		if !entries[e] {
			t.Errorf("%s has a deadline and is not queued", e)
		}
		delete(entries, e)
	}
	if len(entries) > 0 {
		t.Errorf("without a deadline: %v", entries)
	}
	return owners
}

// inTurn makes owners queue one after the other.
func inTurn(t *testing.T, rdb *redis.Client, m *FairMutex, owners ...string) []<-chan *Hold {
	t.Helper()
	var served []<-chan *Hold
	before := len(waitersAtServer(t, rdb, m.name))
	for i, owner := range owners {
		served = append(served, acquireLater(context.Background(), t, m, WithOwner(owner), WithReentry()))
		eventually(t, testTimeout, owner+" waits", func() bool {
			return len(waitersAtServer(t, rdb, m.name)) == before+i+1
		})
	}
	return served
}

// Twenty waiters of two clients are granted the lock in the order in which they came, by
// the fencing tokens.
func TestFairServesInOrder(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	o := Options{PollMax: maxHeartbeat} // shorter than a lease: the next waiter learns of it without a message
	clients := []*Client{newTestClient(t, rdb, o), newTestClient(t, rdb, o)}
	first := acquire(t, clients[0].FairMutex("row"), WithOwner("first"), WithReentry())
	var served []<-chan *Hold
	for i := range 20 {
		served = append(served, inTurn(t, rdb, clients[i%2].FairMutex("row"), fmt.Sprint("w", i))...)
	}
	if _, err := clients[0].FairMutex("row").TryAcquire(context.Background()); !errors.Is(err, ErrHeld) {
		t.Errorf("try: %v, want ErrHeld", err)
	}
	last := first
	release(t, first)
	for i, c := range served {
		h := within(t, testTimeout, fmt.Sprint("waiter ", i), c)
		if h.token <= last.token || h.Owner() != fmt.Sprint("w", i) {
			t.Errorf("turn %d: owner %s, token %d after %d", i, h.Owner(), h.token, last.token)
		}
		if ttl := rdb.PTTL(context.Background(), "row").Val(); ttl < 10*time.Second {
			t.Errorf("the lease is %v once it is fetched, want 30 s", ttl)
		}
		release(t, h)
		last = h
	}
	if n := locktest.Calls(t, rdb, "publish"); n != 20 {
		t.Errorf("handed over %d times, want 20", n)
	}
	mustBeRemoved(t, rdb, "row")
}

// A waiter queues at the server at once, even if its client has other waiters: it does
// not rely on theirs.
func TestFairWaitersOfOneClientQueueAtOnce(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, patient)
	h := acquire(t, c.FairMutex("many"))
	var served []<-chan *Hold
	for i := range 5 {
		served = append(served, acquireLater(context.Background(), t, c.FairMutex("many")))
		asleep(t, c, grantChannel("many"), i+1)
		eventually(t, testTimeout, "the waiter is queued", func() bool {
			return len(waitersAtServer(t, rdb, "many")) == i+1
		})
	}
	release(t, h)
	for _, s := range served {
		release(t, within(t, testTimeout, "a waiter", s))
	}
}

// mustBeRemoved fails if anything of a lock is left except its token and tombstones.
func mustBeRemoved(t *testing.T, rdb *redis.Client, name string) {
	t.Helper()
	for _, key := range rdb.Keys(context.Background(), "*"+name+"*").Val() {
		if !strings.HasSuffix(key, ":token") && !strings.Contains(key, ":tombstone:") {
			t.Errorf("key %s is left", key)
		}
	}
}

// The basic operations of a fair mutex.
func TestFair(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{PollMax: 100 * time.Millisecond})
	for name, run := range map[string]func(t *testing.T, m *FairMutex){
		"reentry": func(t *testing.T, m *FairMutex) {
			a := acquire(t, m)
			served := inTurn(t, rdb, m, "other")
			b, err := m.Acquire(a.Context(), WithReentry())
			if err != nil || b.Count() != 2 || b.token != a.token {
				t.Fatalf("hold %+v, error %v, want the second of the same grant", b, err)
			}
			release(t, a)
			if len(served) != 1 || len(served[0]) != 0 {
				t.Error("served while the owner has a hold left")
			}
			release(t, b)
			release(t, within(t, testTimeout, "the other", served[0]))
		},
		"same-owner-waits-twice": func(t *testing.T, m *FairMutex) {
			h := acquire(t, m)
			c := newTestClient(t, rdb, patient)
			served := inTurn(t, rdb, c.FairMutex(m.name), "x", "x")
			asleep(t, c, grantChannel(m.name), 2)
			release(t, h)
			a := within(t, testTimeout, "one", served[0])
			killSubscribers(t, rdb) // a new subscription wakes the other, which would send a heartbeat in an hour
			b := within(t, testTimeout, "two", served[1])
			if a.Count() != 1 || b.Count() != 2 {
				t.Errorf("counts %d and %d, want 1 and 2", a.Count(), b.Count())
			}
			release(t, a)
			release(t, b)
		},
		"wait-runs-out": func(t *testing.T, m *FairMutex) {
			h := acquire(t, m)
			short, cancel := context.WithTimeout(ctx, waitTimeout)
			defer cancel()
			_, err := m.Acquire(short, WithOwner("late"), WithReentry())
			if !errors.Is(err, ErrHeld) || !errors.Is(err, context.DeadlineExceeded) || !Definite(err) {
				t.Errorf("error %v, want a definite ErrHeld and DeadlineExceeded", err)
			}
			if got := waitersAtServer(t, rdb, m.name); len(got) != 0 {
				t.Errorf("%v are still queued", got)
			}
			release(t, h)
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, c.FairMutex(name))
			mustBeRemoved(t, rdb, name)
		})
	}
}

// What a fair mutex has in common with a mutex.
func TestFairIsAMutex(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{PollMax: 100 * time.Millisecond})
	for name, run := range map[string]func(t *testing.T, m *FairMutex){
		"watched": func(t *testing.T, m *FairMutex) {
			s := newHooks()
			c := newTestClient(t, rdb, s.options(watchedLease))
			h := acquire(t, c.FairMutex(m.name))
			for range 4 {
				within(t, testTimeout, "a renewal", s.renewed)
			}
			release(t, h)
		},
		"excludes-mutex": func(t *testing.T, m *FairMutex) {
			h := acquire(t, m)
			if _, err := c.Mutex(m.name).TryAcquire(ctx); !errors.Is(err, ErrHeld) {
				t.Errorf("mutex of the same name: %v, want ErrHeld", err)
			}
			release(t, h)
		},
		"braces": func(t *testing.T, _ *FairMutex) {
			m := c.FairMutex("{tag}braces")
			h := acquire(t, m)
			served := inTurn(t, rdb, m, "other")
			release(t, h)
			release(t, within(t, testTimeout, "the other", served[0]))
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, c.FairMutex(name))
			mustBeRemoved(t, rdb, name)
		})
	}
}

// A key that is not a lock, or not a queue, is left as it is.
func TestFairForeignKey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	for _, key := range []string{"f1", "{f2}:queue", "{f3}:waiters"} {
		rdb.Set(ctx, key, "mine", 0)
		name := strings.Trim(strings.Split(key, ":")[0], "{}")
		for what, ask := range map[string]func(context.Context, ...Option) (*FencedHold, error){
			"acquire": c.FairMutex(name).Acquire, "try": c.FairMutex(name).TryAcquire,
		} {
			if _, err := ask(ctx); !errors.Is(err, ErrForeign) || !Definite(err) {
				t.Errorf("%s %s: %v, want a definite ErrForeign", what, name, err)
			}
		}
		if got := rdb.Get(ctx, key).Val(); got != "mine" {
			t.Errorf("%s is %q now", key, got)
		}
	}
	release(t, acquire(t, c.RW("f4").Read()))
	r := acquire(t, c.RW("f4").Read())
	if _, err := c.FairMutex("f4").TryAcquire(ctx); !errors.Is(err, ErrForeign) {
		t.Errorf("fair mutex on a readers-writer lock: %v, want ErrForeign", err)
	}
	release(t, r)
}

// The key layout is documented.
func TestFairLayout(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{PollMax: time.Hour})
	h := acquire(t, c.FairMutex("seen"), WithOwner("me"), WithReentry())
	want := map[string]string{"owner": "me", "count": "1", "token": fmt.Sprint(h.token), "h:" + h.claim.id: "1"}
	if diff := cmp.Diff(want, hashOf(t, rdb, "seen")); diff != "" {
		t.Error(diff)
	}
	served := inTurn(t, rdb, c.FairMutex("seen"), "a", "b")
	if diff := cmp.Diff([]string{"a", "b"}, waitersAtServer(t, rdb, "seen")); diff != "" {
		t.Error(diff)
	}
	for _, key := range []string{"{seen}:queue", "{seen}:waiters"} {
		if ttl := rdb.PTTL(ctx, key).Val(); ttl <= 2*time.Hour || ttl > 3*time.Hour {
			t.Errorf("%s lasts %v, want three heartbeats", key, ttl)
		}
	}
	release(t, h)
	for _, s := range served {
		release(t, within(t, testTimeout, "a waiter", s))
	}
}

// Forty goroutines acquire and release: one is inside at a time, tokens grow, nothing is
// left.
func TestFairStress(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{PollMax: 200 * time.Millisecond})
	var guard sync.Mutex
	var last int64
	grants := 0
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			for range 5 {
				limit := time.Duration(10+i) * 20 * time.Millisecond
				if i%4 == 0 { // these are served, however slow the machine is
					limit = testTimeout
				}
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				h, err := c.FairMutex("stress").Acquire(ctx)
				cancel()
				if err != nil {
					continue // its wait has timed out, and its waiter must be removed
				}
				if !guard.TryLock() {
					t.Error("two owners at once")
					continue
				}
				if h.token <= last {
					t.Errorf("token %d after %d", h.token, last)
				}
				last = h.token
				grants++
				rdb.Ping(context.Background()) // long enough to notice another
				guard.Unlock()
				release(t, h)
			}
		})
	}
	wg.Wait()
	if grants < 50 {
		t.Errorf("%d grants only, want one of each request that waits for long", grants)
	}
	waitersAtServer(t, rdb, "stress")
	eventually(t, testTimeout, "the queue is empty", func() bool { return len(waitersAtServer(t, rdb, "stress")) == 0 })
}
