package lock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

func multi(t testing.TB, mutexes ...AnyLock) *MultiLock {
	t.Helper()
	m, err := Multi(mutexes...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func acquireAll(t testing.TB, m *MultiLock, opts ...Option) *MultiHold {
	t.Helper()
	h, err := m.Acquire(context.Background(), append(opts, WithWait(testTimeout))...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// tokenOf is the token of one of the locks; 0: none.
func tokenOf(h *MultiHold, name string) int64 {
	token, _ := h.Token(name)
	return token
}

func releaseAll(t testing.TB, h *MultiHold) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// trio is the names of three locks of one test.
type trio struct {
	rdb       *redis.Client
	c, theirs *Client
	a, b, d   string
}

func eachTrio(t *testing.T, cases map[string]func(t *testing.T, x trio)) {
	t.Helper()
	rdb := startRedis(t).Dial(t)
	c, other := newTestClient(t, rdb, Options{}), newTestClient(t, rdb, Options{})
	for name, run := range cases {
		t.Run(name, func(t *testing.T) { run(t, trio{rdb, c, other, name + "-a", name + "-b", name + "-d"}) })
	}
}

func (x trio) all(t testing.TB) *MultiLock {
	return multi(t, x.c.FencedMutex(x.a), x.c.FencedMutex(x.b), x.c.FencedMutex(x.d))
}

// want checks which of the locks are held.
func (x trio) want(t testing.TB, a, b, d bool) {
	t.Helper()
	mustExist(t, x.rdb, x.a, a)
	mustExist(t, x.rdb, x.b, b)
	mustExist(t, x.rdb, x.d, d)
}

// The basic operations of several locks as one.
func TestMulti(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	eachTrio(t, map[string]func(t *testing.T, x trio){
		"acquired-and-released": func(t *testing.T, x trio) {
			h := acquireAll(t, x.all(t), WithAtomic())
			for _, name := range []string{x.a, x.b, x.d} {
				if _, err := x.theirs.Mutex(name).TryAcquire(ctx); !errors.Is(err, ErrHeld) {
					t.Errorf("a mutex of the same name: %v, want ErrHeld", err)
				}
				if token, fenced := h.Token(name); token == 0 || !fenced {
					t.Errorf("no token for %s", name)
				}
			}
			if left := time.Until(h.Deadline()); left < 10*time.Second || left > 30*time.Second {
				t.Errorf("valid for %v, want a little less than 30 s", left)
			}
			releaseAll(t, h)
			x.want(t, false, false, false)
			if got := context.Cause(h.Context()); !errors.Is(got, ErrReleased) {
				t.Errorf("cause %v, want ErrReleased", got)
			}
			if err := h.Release(ctx); !errors.Is(err, ErrReleased) {
				t.Errorf("second release: %v, want ErrReleased", err)
			}
		},
		"all-or-none": func(t *testing.T, x trio) {
			h := acquire(t, x.theirs.Mutex(x.b))
			if _, err := x.all(t).TryAcquire(ctx); !errors.Is(err, ErrHeld) || !Definite(err) {
				t.Errorf("error %v, want a definite ErrHeld", err)
			}
			x.want(t, false, true, false)
			release(t, h)
		},
		"reentered-by-context": func(t *testing.T, x trio) {
			h := acquireAll(t, x.all(t))
			inner, err := x.c.FencedMutex(x.b).TryAcquire(h.Context(), WithReentry())
			if err != nil || inner.Count() != 2 || inner.token != tokenOf(h, x.b) {
				t.Fatalf("inner %+v, %v", inner, err)
			}
			again, err := multi(t, x.c.Mutex(x.a), x.c.Mutex(x.b)).TryAcquire(h.Context(), WithReentry())
			if err != nil {
				t.Fatal(err)
			}
			releaseAll(t, again)
			release(t, inner)
			releaseAll(t, h)
			x.want(t, false, false, false)
		},
	})
}

// Fenced mutexes have their tokens as parts of a multi-lock too, whether one script
// acquires them or one each; plain ones have none.
func TestMultiOfFenced(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c, other := newTestClient(t, rdb, Options{}), newTestClient(t, rdb, Options{})
	for name, m := range map[string]*MultiLock{
		"one":               multi(t, c.FencedMutex("a")),
		"two by one script": multi(t, c.FencedMutex("a"), c.Mutex("b")),
		"a script for each": multi(t, c.FencedMutex("a"), other.Mutex("b")),
	} {
		h := acquireAll(t, m)
		if tokenOf(h, "a") == 0 {
			t.Errorf("%s: the fenced mutex has no token", name)
		}
		releaseAll(t, h)
	}
	h := acquireAll(t, multi(t, c.Mutex("c"), c.Mutex("d")))
	if token, fenced := h.Token("c"); token != 0 || fenced {
		t.Errorf("token %d of a plain mutex", token)
	}
	releaseAll(t, h)
}

// A fenced mutex on several masters is refused: it would have no token.
func TestFencedOnSeveralMasters(t *testing.T) {
	t.Parallel()
	x := startMasters(t, 3, Options{})
	m := x.client.FencedMutex("job")
	if _, err := m.TryAcquire(context.Background()); !errors.Is(err, ErrOneMaster) || !Definite(err) {
		t.Errorf("try: %v, want a definite ErrOneMaster", err)
	}
	if _, err := Multi(m); !errors.Is(err, ErrOneMaster) {
		t.Errorf("as one of several: %v, want ErrOneMaster", err)
	}
}

func TestMultiPartBad(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	eachTrio(t, map[string]func(t *testing.T, x trio){
		"foreign-key-among-them": func(t *testing.T, x trio) {
			x.rdb.Set(ctx, x.b, "x", 0)
			if _, err := x.all(t).TryAcquire(ctx); !errors.Is(err, ErrForeign) || !Definite(err) {
				t.Errorf("error %v, want a definite ErrForeign", err)
			}
			x.want(t, false, true, false)
		},
		"unusable-counter-among-them": func(t *testing.T, x trio) {
			x.rdb.LPush(ctx, tagged(x.d, "token"), "x")
			if _, err := x.all(t).TryAcquire(ctx); err == nil {
				t.Error("taken")
			}
			x.want(t, false, false, false)
		},
		"part-lost": func(t *testing.T, x trio) {
			h := acquireAll(t, x.all(t), WithLease(time.Hour))
			x.rdb.Del(ctx, x.b)
			if err := h.Renew(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("renew: %v, want ErrLost", err)
			}
			<-h.Context().Done()
			if got := context.Cause(h.Context()); !errors.Is(got, ErrLost) {
				t.Errorf("cause %v, want ErrLost", got)
			}
			if err := h.Release(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("release: %v, want ErrLost", err)
			}
			x.want(t, false, false, false)
		},
	})
}

func TestMultiBadInput(t *testing.T) {
	t.Parallel()
	c := newTestClient(t, startRedis(t).Dial(t), Options{})
	for name, list := range map[string][]AnyLock{
		"none":         nil,
		"nil":          {c.Mutex("a"), nil},
		"typed nil":    {c.Mutex("a"), (*Mutex)(nil)},
		"options":      {c.Mutex("a", WithLease(time.Second))},
		"twice":        {c.Mutex("a"), c.Mutex("b"), c.Mutex("a")},
		"empty-name":   {c.Mutex("a"), c.Mutex("")},
		"stray-brace":  {c.Mutex("a}")},
		"two kinds":    {c.FairMutex("a"), c.Mutex("a")},
		"both sides":   {c.RW("a").Read(), c.RW("a").Write()},
		"side options": {c.RW("a", WithReentry()).Read()},
	} {
		if _, err := Multi(list...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	m, err := c.Multi("a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.TryAcquire(context.Background(), WithLease(time.Microsecond)); err == nil {
		t.Error("a lease of a microsecond was accepted")
	}
}

// The order in which locks are acquired does not depend on the order in which they are
// named.
func TestMultiOrder(t *testing.T) {
	t.Parallel()
	one := newTestClient(t, startRedis(t).Dial(t), Options{})
	two := newTestClient(t, startRedis(t).Dial(t), Options{})
	x := multi(t, one.Mutex("x"), two.Mutex("y"), one.Mutex("z"))
	y := multi(t, one.Mutex("z"), two.Mutex("y"), one.Mutex("x"))
	if diff := cmp.Diff(x.names(), y.names()); diff != "" || len(x.groups) != 2 {
		t.Errorf("%d groups, %s", len(x.groups), diff)
	}
}

// A waiter is woken by messages only, whichever of the locks is held: first one, then
// another.
func TestMultiWakeUp(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	holder := newTestClient(t, s.Dial(t), Options{})
	waiter := newTestClient(t, s.Dial(t), Options{PollMax: time.Hour})
	first := acquire(t, holder.Mutex("a"), WithLease(time.Hour))
	second := acquire(t, holder.Mutex("b"), WithLease(time.Hour))
	served := make(chan *MultiHold, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { served <- acquireAll(t, multi(t, waiter.Mutex("a"), waiter.Mutex("b"))) })
	busy, then := first, second
	if wire.SlotOf("b") < wire.SlotOf("a") {
		busy, then = second, first
	}
	waitSubscribed(t, waiter, tagged(busy.Name(), "free"))
	release(t, busy)
	waitSubscribed(t, waiter, tagged(then.Name(), "free"))
	release(t, then)
	select {
	case h := <-served:
		releaseAll(t, h)
	case <-time.After(testTimeout):
		t.Fatal("the waiter sleeps on")
	}
}

// Slots are as Redis computes them.
func TestSlotOf(t *testing.T) {
	t.Parallel()
	rdb := clusterOfOne(t).Dial(t)
	for _, key := range []string{"123456789", "orders", "{orders}:token", "a{b}c", "a{}b", "{}", "{{x}}", "{", "日本"} {
		want, err := rdb.ClusterKeySlot(context.Background(), key).Result()
		if err != nil || int64(wire.SlotOf(key)) != want {
			t.Errorf("slot of %q: %d, Redis says %d, %v", key, wire.SlotOf(key), want, err)
		}
	}
}
