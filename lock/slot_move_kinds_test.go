package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// movingHold is a hold of any kind.
type movingHold interface {
	Context() context.Context
	Release(ctx context.Context) error
}

// movingKind is a kind of lock whose slot migrates.
type movingKind struct {
	name    string
	options Options
	acquire func(ctx context.Context, c *Client, key string, wait bool) (movingHold, error)
	key     string // that decides who holds the lock, as a part of its name; empty: the name itself
}

func movingKinds() []movingKind {
	either := func(wait bool, acquire, try func() (movingHold, error)) (movingHold, error) {
		if wait {
			return acquire()
		}
		return try()
	}
	side := func(write bool) func(ctx context.Context, c *Client, key string, wait bool) (movingHold, error) {
		return func(ctx context.Context, c *Client, key string, wait bool) (movingHold, error) {
			s := c.RW(key).PreferWriters().Read()
			if write {
				s = c.RW(key).PreferWriters().Write()
			}
			return either(wait, func() (movingHold, error) { return s.Acquire(ctx) },
				func() (movingHold, error) { return s.TryAcquire(ctx) })
		}
	}
	return []movingKind{
		{name: "fair", acquire: func(ctx context.Context, c *Client, key string, wait bool) (movingHold, error) {
			m := c.FairMutex(key)
			return either(wait, func() (movingHold, error) { return m.Acquire(ctx) },
				func() (movingHold, error) { return m.TryAcquire(ctx) })
		}},
		{name: "writer", acquire: side(true)},
		{name: "permits", key: "permits", acquire: func(ctx context.Context, c *Client, key string,
			wait bool) (movingHold, error) {
			s := c.PermitSemaphore(key, WithTotal(1))
			return either(wait, func() (movingHold, error) { return s.Acquire(ctx, 1) },
				func() (movingHold, error) { return s.TryAcquire(ctx, 1) })
		}},
		{name: "fair-permits", key: "permits", acquire: func(ctx context.Context, c *Client, key string,
			wait bool) (movingHold, error) {
			s := c.FairSemaphore(key, WithTotal(1))
			return either(wait, func() (movingHold, error) { return s.Acquire(ctx, 1) },
				func() (movingHold, error) { return s.TryAcquire(ctx, 1) })
		}},
		{name: "multi", acquire: func(ctx context.Context, c *Client, key string, wait bool) (movingHold, error) {
			m, err := c.Multi(key, tagged(key, "second"))
			if err != nil {
				return nil, err
			}
			return either(wait, func() (movingHold, error) { return m.Acquire(ctx) },
				func() (movingHold, error) { return m.TryAcquire(ctx) })
		}},
		{name: "redisson", options: Options{Layout: Redisson}, acquire: func(ctx context.Context, c *Client, key string,
			wait bool) (movingHold, error) {
			m := c.FencedMutex(key)
			return either(wait, func() (movingHold, error) { return m.Acquire(ctx) },
				func() (movingHold, error) { return m.TryAcquire(ctx) })
		}},
	}
}

// TestKindsWhileSlotMigrates: a lock of any kind is acquired, renewed and released while its slot migrates, whichever
// of its keys have moved, and after that.
func TestKindsWhileSlotMigrates(t *testing.T) {
	t.Parallel()
	servers, rdb := startCluster(t)
	for _, kind := range movingKinds() {
		kind.options.Lease, kind.options.PollMax = watchedLease, time.Second
		a, b := newTestClient(t, rdb, kind.options), newTestClient(t, rdb, kind.options)
		for split, moves := range map[string]func(decides bool) bool{
			"no-key-moved":     func(bool) bool { return false },
			"lock-moved":       func(decides bool) bool { return decides },
			"other-keys-moved": func(decides bool) bool { return !decides },
			"all-keys-moved":   func(bool) bool { return true },
		} {
			t.Run(kind.name+"-"+split, func(t *testing.T) {
				t.Parallel()
				f := &movingFixture{t: t, kind: kind, a: a, b: b, key: kind.name + "-" + split}
				f.migrate(servers, moves)
			})
		}
	}
}

// movingFixture is a lock of one kind whose slot migrates, and two clients.
type movingFixture struct {
	t    *testing.T
	kind movingKind
	a, b *Client
	key  string
}

func (f *movingFixture) take(c *Client, wait bool) movingHold {
	f.t.Helper()
	h, err := f.kind.acquire(context.Background(), c, f.key, wait)
	if err != nil {
		f.t.Fatal(err)
	}
	return h
}

// held checks that h has not ended, and that nobody else is granted the lock.
func (f *movingFixture) held(h movingHold) {
	f.t.Helper()
	_, err := f.kind.acquire(context.Background(), f.b, f.key, false)
	if !errors.Is(err, ErrHeld) && !errors.Is(err, ErrNoPermits) {
		f.t.Fatalf("a try while it is held: %v", err)
	}
	if err := h.Context().Err(); err != nil {
		f.t.Fatalf("the hold has ended: %v", context.Cause(h.Context()))
	}
}

// heldForLong is held for longer than a lease.
func (f *movingFixture) heldForLong(h movingHold) {
	f.t.Helper()
	f.held(h)
	<-time.After(f.kind.options.Lease * 21 / 20) // only time makes a renewal necessary
	f.held(h)
}

// waiter requests the lock, for [movingFixture.served].
func (f *movingFixture) waiter() <-chan acquired {
	served := make(chan acquired, 1)
	go func() { // it may outlive the test
		h, err := f.kind.acquire(context.Background(), f.b, f.key, true)
		served <- acquired{h, err}
	}()
	return served
}

type acquired struct {
	hold movingHold
	err  error
}

// served is the hold of a waiter.
func (f *movingFixture) served(what string, waiter <-chan acquired) movingHold {
	f.t.Helper()
	a := within(f.t, testTimeout, what, waiter)
	if a.err != nil {
		f.t.Fatalf("%s: %v", what, a.err)
	}
	return a.hold
}

// migrate uses the lock before, while and after its slot migrates. moves says which keys move at first.
func (f *movingFixture) migrate(servers []*server, moves func(decides bool) bool) {
	decides := f.key
	if f.kind.key != "" {
		decides = tagged(f.key, f.kind.key)
	}
	h := f.take(f.a, true)
	next := f.waiter()
	m := startMove(f.t, servers, f.key)
	for _, k := range m.from.ClusterGetKeysInSlot(context.Background(), m.slot, 100).Val() {
		if moves(k == decides) {
			m.moveKeys(k)
		}
	}
	f.heldForLong(h)
	release(f.t, h)
	h = f.served("the waiter", next)
	f.held(h)
	release(f.t, h)
	for range 3 {
		release(f.t, f.take(f.a, false))
		release(f.t, f.take(f.b, true))
	}
	h = f.take(f.a, true)
	next = f.waiter()
	f.heldForLong(h)
	m.finish()
	f.heldForLong(h)
	release(f.t, h)
	release(f.t, f.served("the waiter after the migration", next))
	release(f.t, f.take(f.a, false))
}

// TestFairOrderWhileSlotMigrates: waiters that came before the migration, and during it, are served in their order.
func TestFairOrderWhileSlotMigrates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers, rdb := startCluster(t)
	c := newTestClient(t, rdb, Options{PollMax: maxHeartbeat}) // a waiter keeps its place for three
	h, err := c.FairMutex("line").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	type served struct {
		i int
		h *FencedHold
	}
	all := make(chan served, 6)
	join := func(i int, rdbKeys func() int64) {
		t.Helper()
		go func() {
			h, err := c.FairMutex("line").Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			all <- served{i, h}
		}()
		eventually(t, testTimeout, "the waiter is queued", func() bool { return rdbKeys() == int64(i) })
	}
	queue := tagged("line", "queue")
	length := func() int64 { return rdb.LLen(ctx, queue).Val() }
	for i := 1; i <= 3; i++ {
		join(i, length)
	}
	m := startMove(t, servers, "line")
	for i := 4; i <= 6; i++ {
		join(i, length)
	}
	var order []int
	last := h.Token()
	for i := range 6 {
		if err := h.Release(ctx); err != nil {
			t.Fatal(err)
		}
		s := within(t, testTimeout, "the next waiter", all)
		order, h = append(order, s.i), s.h
		if h.Token() <= last {
			t.Errorf("token %d after %d", h.Token(), last)
		}
		last = h.Token()
		if i == 4 {
			m.finish()
		}
	}
	if err := h.Release(ctx); err != nil {
		t.Error(err)
	}
	if !slices.IsSorted(order) {
		t.Errorf("served in the order %v", order)
	}
}

// TestRequestsArriveAgainWhileSlotMigrates: a release that is sent again has no second effect, and an acquire that is
// sent after its release is refused, while the slot migrates and afterwards.
func TestRequestsArriveAgainWhileSlotMigrates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers, rdb := startCluster(t)
	c := newTestClient(t, rdb, Options{Timeout: testTimeout}) // tombstones last for two of them
	pool := c.PermitSemaphore("pool", WithTotal(1))
	permits, err := pool.Acquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	fair, write := acquire(t, c.FairMutex("queue")), acquire(t, c.RW("table").Write())
	for _, row := range []struct {
		hold  movingHold
		claim claim
		other func() (movingHold, error) // by the next owner
	}{
		{permits, permits.claim, func() (movingHold, error) { return pool.TryAcquire(ctx, 1) }},
		{fair, fair.claim, func() (movingHold, error) { return c.FairMutex("queue").TryAcquire(ctx) }},
		{write, write.claim, func() (movingHold, error) { return c.RW("table").Write().TryAcquire(ctx) }},
	} {
		t.Run(row.claim.key, func(t *testing.T) {
			m := startMove(t, servers, row.claim.key)
			if err := row.hold.Release(ctx); err != nil {
				t.Fatal(err)
			}
			next, err := row.other()
			if err != nil {
				t.Fatal(err)
			}
			again := func(when string) {
				t.Helper()
				if left, err := row.claim.store.release(ctx, row.claim); left != 0 || err != nil {
					t.Errorf("%s, the release again: %d, %v", when, left, err)
				}
				if _, err := row.claim.store.acquire(ctx, row.claim); !errors.Is(err, ErrReleased) {
					t.Errorf("%s, the acquire after its release: %v", when, err)
				}
				if h, err := row.other(); err == nil {
					t.Errorf("%s, it is held twice: %v", when, h.Release(ctx))
				}
			}
			again("while the slot migrates")
			m.finish()
			again("after the migration")
			if err := next.Release(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTokenOfAnInterruptedAcquire: an acquire was granted the lock while its slot migrated, and got no further; it is
// sent again after the migration, and has a fencing token then. If it gets none, the outcome is not certain.
func TestTokenOfAnInterruptedAcquire(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	fenced, fair := acquire(t, c.FencedMutex("orders")), acquire(t, c.FairMutex("queue"))
	write := acquire(t, c.RW("table").Write())
	for _, claim := range []claim{fenced.claim, fair.claim, write.claim} {
		if n, err := rdb.HSet(ctx, claim.key, "token", 0).Result(); n != 0 || err != nil {
			t.Fatalf("%s: the hash had no token (%v)", claim.key, err)
		}
		g, err := claim.store.acquire(ctx, claim)
		if err != nil || !g.ok || g.token == 0 {
			t.Errorf("%s: %+v, %v", claim.key, g, err)
		}
		if kept := rdb.HGet(ctx, claim.key, "token").Val(); kept != fmt.Sprint(g.token) {
			t.Errorf("%s: the server has token %q, not %d", claim.key, kept, g.token)
		}
		rdb.HSet(ctx, claim.key, "token", 0)
		rdb.Del(ctx, claim.tokenKey())
		rdb.LPush(ctx, claim.tokenKey(), "no counter")
		if _, err := claim.store.acquire(ctx, claim); err == nil || Definite(err) {
			t.Errorf("%s: %v without a token, though the lock is held", claim.key, err)
		}
	}
}

// TestReadersShareATokenWhileSlotMigrates: readers that come together have one token, also before the first writer.
func TestReadersShareATokenWhileSlotMigrates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers, rdb := startCluster(t)
	c := newTestClient(t, rdb, Options{})
	h := acquire(t, c.RW("table").Read()) // connects
	rdb.Del(ctx, h.claim.tokenKey())
	m := startMove(t, servers, "table")
	tokens := make(chan int64, 16)
	for range cap(tokens) {
		go func() {
			h, err := c.RW("table").Read().Acquire(ctx)
			if err != nil {
				t.Error(err)
				tokens <- 0
				return
			}
			tokens <- h.Token()
		}()
	}
	first := within(t, testTimeout, "a grant", tokens)
	for range cap(tokens) - 1 {
		if token := within(t, testTimeout, "a grant", tokens); token != first || token == 0 {
			t.Errorf("readers have the tokens %d and %d", first, token)
		}
	}
	m.finish()
}
