package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// twoMasters are masters that no script can reach together, sorted as a multi-lock sorts
// them: low is locked first.
type twoMasters struct{ low, high *server }

func startTwoMasters(t *testing.T) twoMasters {
	t.Helper()
	a, b := startRedis(t), startRedis(t)
	if wire.Addresses(a.Dial(t)) > wire.Addresses(b.Dial(t)) {
		a, b = b, a
	}
	return twoMasters{a, b}
}

// mutexes are the locks first, at the low master, and second, at the other, of a client of
// their own.
func (x twoMasters) mutexes(t *testing.T, o Options) (first, second *Mutex) {
	t.Helper()
	return newTestClient(t, x.low.Dial(t), o).Mutex("first"), newTestClient(t, x.high.Dial(t), o).Mutex("second")
}

// critical counts overlapping holders.
type critical struct{ inside, overlaps, entered atomic.Int32 }

func (g *critical) enter() {
	if g.inside.Add(1) > 1 {
		g.overlaps.Add(1)
	}
	g.entered.Add(1)
	g.inside.Add(-1)
}

// Programs that name locks in opposite orders do not deadlock (also redisson#1160, #631,
// #4050).
// Regression: redisson#467, Curator's multi-lock (opposite orders deadlock)
func TestOppositeOrdersMakeNoDeadlock(t *testing.T) {
	t.Parallel()
	x := startTwoMasters(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var g critical
	var wg sync.WaitGroup
	for i := range 4 {
		low := newTestClient(t, x.low.Dial(t), Options{})
		high := newTestClient(t, x.high.Dial(t), Options{})
		list := []AnyLock{low.Mutex("a"), high.Mutex("b"), low.Mutex("c")}
		if i%2 == 1 {
			list[0], list[2] = list[2], list[0]
			list[1], list[0] = list[0], list[1]
		}
		m := multi(t, list...)
		wg.Go(func() {
			for range 10 {
				h, err := m.Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				g.enter()
				if err := h.Release(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if g.overlaps.Load() > 0 || g.entered.Load() != 40 {
		t.Errorf("%d holds, want 40; %d overlap", g.entered.Load(), g.overlaps.Load())
	}
}

// A program that ignores the order holds the second lock and waits for the first. It gets
// it, because no multi-lock waits without a limit while it holds a lock.
// Regression: redisson#467
func TestStubbornRivalMakesNoDeadlock(t *testing.T) {
	t.Parallel()
	x := startTwoMasters(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	first, second := x.mutexes(t, Options{PollMax: 50 * time.Millisecond})
	hisFirst, hisSecond := x.mutexes(t, Options{})
	his := acquire(t, hisSecond)
	done := make(chan *MultiHold, 1)
	go func() {
		h, err := multi(t, first, second).Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		done <- h
	}()
	direct := x.low.Dial(t)
	eventually(t, testTimeout, "the first is taken", func() bool {
		return direct.Exists(ctx, "first").Val() == 1
	})
	both, err := hisFirst.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	release(t, both)
	release(t, his)
	releaseAll(t, <-done)
}

// Many try at once, with a lease: one of them gets all locks.
// Regression: redisson#2172
func TestMultiIsGrantedToOneOwner(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, build := range map[string]func(t *testing.T, x twoMasters) *MultiLock{
		"one-script": func(t *testing.T, x twoMasters) *MultiLock {
			c := newTestClient(t, x.low.Dial(t), Options{})
			return multi(t, c.Mutex("a"), c.Mutex("b"), c.Mutex("c"))
		},
		"two-masters": func(t *testing.T, x twoMasters) *MultiLock {
			first, second := x.mutexes(t, Options{})
			return multi(t, first, second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := startTwoMasters(t)
			m := build(t, x)
			var got atomic.Int32
			var wg sync.WaitGroup
			for range 30 {
				wg.Go(func() {
					switch _, err := m.TryAcquire(ctx, WithLease(time.Hour)); {
					case err == nil:
						got.Add(1)
					case !errors.Is(err, ErrHeld):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if got.Load() != 1 {
				t.Errorf("%d got it, want 1", got.Load())
			}
		})
	}
}

// acquiredTwice waits until a lock has been granted two times.
func acquiredTwice(t *testing.T, rdb *redis.Client, name string) {
	t.Helper()
	first := ""
	eventually(t, testTimeout, name+" was released and acquired again", func() bool {
		hold := ""
		for _, field := range rdb.HKeys(context.Background(), name).Val() {
			if strings.HasPrefix(field, "h:") {
				hold = field
			}
		}
		if first == "" {
			first = hold
		}
		return hold != "" && hold != first
	})
}

// The lease is shorter than the wait for the second lock: the final grant is complete, and
// valid for no longer than each of its locks.
// Regression: redisson#624
func TestLeaseShorterThanTheWait(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	x := startTwoMasters(t)
	first, second := x.mutexes(t, Options{})
	_, busy := x.mutexes(t, Options{})
	h := acquire(t, busy)
	const lease = 400 * time.Millisecond
	done := make(chan *MultiHold, 1)
	go func() { done <- acquireAll(t, multi(t, first, second), WithLease(lease)) }()
	low, high := x.low.Dial(t), x.high.Dial(t)
	acquiredTwice(t, low, "first")
	release(t, h)
	got := <-done
	for rdb, name := range map[*redis.Client]string{low: "first", high: "second"} {
		ttl := rdb.PTTL(ctx, name).Val()
		if left := time.Until(got.Deadline()); left > 0 && ttl < left {
			t.Errorf("%s lasts %v at its server, promised %v", name, ttl, left)
		}
	}
	_ = got.Release(ctx) // its lease may have expired
}

// The first lock is lost to another owner while the second is waited for: the loss is
// noticed, and the other owner's lease is left alone. Redisson reports success and sets
// its lease.
// Regression: Redisson's multi-lock (an expired lock is extended)
func TestLockLostWhileCollecting(t *testing.T) {
	t.Parallel()
	x := startTwoMasters(t)
	first, second := x.mutexes(t, Options{PollMax: 10 * time.Second})
	hisFirst, hisSecond := x.mutexes(t, Options{})
	h := acquire(t, hisSecond)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := multi(t, first, second).Acquire(ctx, WithLease(time.Hour))
		failed <- err
	}()
	asleep(t, second.client, "{second}:free", 1)
	low := x.low.Dial(t)
	low.Del(ctx, "first")
	thief := acquire(t, hisFirst, WithLease(time.Minute))
	release(t, h)
	asleep(t, first.client, "{first}:free", 1) // it was noticed: a new round has started
	if ttl := low.PTTL(ctx, "first").Val(); ttl > time.Minute {
		t.Errorf("the other owner's lease is now %v, want the 1m it asked for", ttl)
	}
	mustExist(t, x.high.Dial(t), "second", false)
	cancel()
	if err := <-failed; !errors.Is(err, ErrHeld) || !Definite(err) {
		t.Errorf("error %v, want a definite ErrHeld", err)
	}
	release(t, thief)
}

// A wait does not change the lease: Redisson multiplies it by a thousand in each round.
// Regression: Redisson's multi-lock (lease multiplied on a retry)
func TestLeaseIsWhatWasAsked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	x := startTwoMasters(t)
	first, second := x.mutexes(t, Options{PollMax: 20 * time.Millisecond})
	_, busy := x.mutexes(t, Options{})
	h := acquire(t, busy)
	done := make(chan *MultiHold, 1)
	go func() { done <- acquireAll(t, multi(t, first, second), WithLease(time.Hour)) }()
	low := x.low.Dial(t)
	acquiredTwice(t, low, "first")
	release(t, h)
	got := <-done
	for rdb, name := range map[*redis.Client]string{low: "first", x.high.Dial(t): "second"} {
		if ttl := rdb.PTTL(ctx, name).Val(); ttl > time.Hour || ttl < 50*time.Minute {
			t.Errorf("%s has %v, want 1h", name, ttl)
		}
	}
	releaseAll(t, got)
}

// One master stops replying while the locks are released: the other's are released all the same, and the error reports
// the first.
func TestMultiReleaseIsBestEffort(t *testing.T) {
	t.Parallel()
	x := startTwoMasters(t)
	first, second := x.mutexes(t, Options{Timeout: waitTimeout}) // within which the other master replies
	h := acquireAll(t, multi(t, first, second))
	x.high.Kill()
	if err := h.Release(context.Background()); err == nil {
		t.Error("no error")
	}
	mustExist(t, x.low.Dial(t), "first", false)
}

// Quorum locks and locks of one master can be combined.
func TestMultiOfQuorums(t *testing.T) {
	t.Parallel()
	m := startMasters(t, 3, Options{})
	c := newTestClient(t, startRedis(t).Dial(t), Options{})
	h := acquireAll(t, multi(t, m.client.Mutex("q1"), c.Mutex("s"), m.client.Mutex("q2")))
	if got := fmt.Sprint(len(h.Names()), m.keep("q1") > 1, m.keep("q2") > 1); got != "3 true true" {
		t.Errorf("got %s", got)
	}
	releaseAll(t, h)
	eventually(t, testTimeout, "all keys are removed", func() bool { return m.keep("q1")+m.keep("q2") == 0 })
}
