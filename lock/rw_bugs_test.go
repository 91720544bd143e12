package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// patient clients are woken by messages only.
var patient = Options{PollMax: time.Hour}

func readers(t *testing.T, rdb *redis.Client, name string) string {
	t.Helper()
	return rdb.HGet(context.Background(), name, "reads").Val()
}

// A live client renewed the holds of a dead one, and a writer waited forever (also
// redisson#1458).
// Regression: redisson#7098
func TestDeadReaderIsNotKeptAliveByAnother(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	s := newHooks()
	live := newTestClient(t, rdb, s.options(watchedLease))
	dead := claim{key: "dead", owner: "dead", id: "1", lease: 400}
	if g, err := live.readers.acquire(ctx, dead); err != nil || !g.ok { // it is not renewed
		t.Fatalf("acquire: %+v, %v", g, err)
	}
	h := acquire(t, live.RW("dead").Read())
	for range 2 { // each takes more than twice as long as the lease of the dead reader
		within(t, testTimeout, "a renewal", s.renewed)
	}
	release(t, h)
	start := time.Now()
	w, err := live.RW("dead").Write().TryAcquire(ctx)
	if err != nil {
		t.Fatalf("write after the live reader left: %v (%v)", err, time.Since(start))
	}
	release(t, w)
}

// readBeforeAndInMigration acquires "moved" for two readers: one that dies, with a short lease, before a migration of
// the slot, and one that lives, during the migration.
func readBeforeAndInMigration(t *testing.T, c *Client) (dead, live claim) {
	t.Helper()
	dead = claim{key: "moved", owner: "dead", id: "1", lease: 300}
	if g, err := c.readers.acquire(t.Context(), dead); err != nil || !g.ok {
		t.Fatalf("the first read: %+v, %v", g, err)
	}
	live = claim{key: "moved", owner: "live", id: "2", lease: time.Hour.Milliseconds()}
	if g, err := c.readers.acquireMigrating(t.Context(), live); err != nil || !g.ok {
		t.Fatalf("the second read: %+v, %v", g, err)
	}
	return dead, live
}

// TestReaderThatDiesBeforeASlotHasMoved: the set of leases expires with the lease of a dead reader, while the hash has
// the deadline of a later one, which was granted the lock in a migration. The dead one does not keep writers out.
func TestReaderThatDiesBeforeASlotHasMoved(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, patient)
	dead, live := readBeforeAndInMigration(t, c)
	eventually(t, testTimeout, "the end of the leases", func() bool { return rdb.Exists(ctx, leasesKey(dead)).Val() == 0 })
	if left, err := c.readers.release(ctx, live); err != nil || left != 0 {
		t.Fatalf("release: %d, %v", left, err)
	}
	w, err := c.RW("moved").Write().TryAcquire(ctx)
	if err != nil {
		t.Fatalf("write after both reads: %v", err)
	}
	release(t, w)
}

// TestReaderThatDiesBesideOneThatLeaves: as in TestReaderThatDiesBeforeASlotHasMoved, but the later reader has released
// the lock before the slot has moved, so that the hash has no deadline at all.
func TestReaderThatDiesBesideOneThatLeaves(t *testing.T) {
	t.Parallel()
	c := newTestClient(t, startRedis(t).Dial(t), patient)
	_, live := readBeforeAndInMigration(t, c)
	if _, err := c.readers.releaseMigrating(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	release(t, acquire(t, c.RW("moved").Write())) // when the lease of the dead reader has ended
}

// TestDeadWriterWhoseReadMoved: the set of leases expires with the lease of a write, while the hash has the deadline of
// a longer read of the same owner, which was granted in a migration. The write does not keep readers out.
func TestDeadWriterWhoseReadMoved(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, patient)
	write := claim{key: "downgraded", owner: "a", id: "1", lease: watchedLease.Milliseconds()}
	if g, err := c.writers.acquire(ctx, write); err != nil || !g.ok {
		t.Fatalf("the write: %+v, %v", g, err)
	}
	read := claim{key: "downgraded", owner: "a", id: "2", lease: time.Hour.Milliseconds()}
	if g, err := c.readers.acquireMigrating(ctx, read); err != nil || !g.ok {
		t.Fatalf("the read of the same owner: %+v, %v", g, err)
	}
	other := claim{key: "downgraded", owner: "b", id: "3", lease: time.Hour.Milliseconds()}
	if g, err := c.readers.acquireMigrating(ctx, other); err != nil || g.ok {
		t.Fatalf("another reader during the write: %+v, %v", g, err)
	}
	eventually(t, testTimeout, "the end of the leases", func() bool { return rdb.Exists(ctx, leasesKey(write)).Val() == 0 })
	if g, err := c.readers.acquireMigrating(ctx, other); err != nil || !g.ok {
		t.Errorf("another reader after the write: %+v, %v", g, err)
	}
	third := claim{key: "downgraded", owner: "c", id: "4", lease: 1000}
	if g, err := c.writers.acquireMigrating(ctx, third); err != nil || g.ok {
		t.Errorf("a writer beside two readers: %+v, %v", g, err)
	}
}

// TestReaderWaitsForAWriteInsideALongerRead: the lease of a dead writer ends before the lease of a read of its owner,
// and a reader need not wait for the latter.
func TestReaderWaitsForAWriteInsideALongerRead(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := newTestClient(t, startRedis(t).Dial(t), patient)
	write := claim{key: "inside", owner: "dead", id: "1", lease: 400}
	read := claim{key: "inside", owner: "dead", id: "2", lease: time.Hour.Milliseconds()}
	if g, err := c.writers.acquire(ctx, write); err != nil || !g.ok {
		t.Fatalf("write: %+v, %v", g, err)
	}
	if g, err := c.readers.acquire(ctx, read); err != nil || !g.ok {
		t.Fatalf("read: %+v, %v", g, err)
	}
	release(t, acquire(t, c.RW("inside").Read()))
}

// A read hold that was taken N times stayed with the watchdog.
// Regression: redisson#7251
func TestReadReentryLeavesNothingToRenew(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	s := newHooks()
	c := newTestClient(t, rdb, s.options(30*time.Second))
	var holds []*Hold
	for i := range 5 {
		h := acquire(t, c.RW("many").Read(), WithOwner("x"), WithReentry())
		if h.Count() != i+1 {
			t.Errorf("count %d, want %d", h.Count(), i+1)
		}
		holds = append(holds, h)
	}
	for _, h := range holds {
		release(t, h)
	}
	c.dog.mu.Lock()
	left := len(c.dog.holds)
	c.dog.mu.Unlock()
	if left != 0 {
		t.Errorf("the watchdog still has %d holds", left)
	}
	mustBeRemoved(t, rdb, "many")
}

// After a write release readers were let in one at a time, or not woken. Here they are
// inside together, and only messages wake them.
// Regression: redisson#4744, redisson#1542
func TestWriteReleaseWakesAllReaders(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	clients := []*Client{newTestClient(t, rdb, patient), newTestClient(t, rdb, patient)}
	w := acquire(t, clients[0].RW("all").Write())
	var served []<-chan *Hold
	for i := range 20 {
		served = append(served, acquireLater(context.Background(), t, clients[i%2].RW("all").Read()))
	}
	for _, c := range clients {
		asleep(t, c, "{all}:read", 10)
	}
	start := time.Now()
	release(t, w)
	var inside []*Hold
	for _, s := range served { // none releases before all hold it
		inside = append(inside, within(t, testTimeout, "a reader", s))
	}
	t.Logf("20 readers inside %v after the release", time.Since(start))
	if got := readers(t, rdb, "all"); got != "20" {
		t.Errorf("%s read holds, want 20", got)
	}
	for _, h := range inside {
		release(t, h)
	}
}

// The release of the write hold under a read hold failed, and the waiting readers were not
// woken (Redisson does not publish then).
// Regression: redisson#4217, Redisson's write lock (the downgrade publishes nothing)
func TestDowngradeAdmitsReaders(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, patient)
	w := acquire(t, c.RW("down").Write())
	r, err := c.RW("down").Read().Acquire(w.Context(), WithReentry())
	if err != nil {
		t.Fatal(err)
	}
	served := acquireLater(ctx, t, c.RW("down").Read())
	asleep(t, c, "{down}:read", 1)
	release(t, w)
	other := within(t, testTimeout, "the reader", served)
	if _, err := c.RW("down").Write().TryAcquire(ctx); !errors.Is(err, ErrHeld) {
		t.Errorf("write after the downgrade: %v, want ErrHeld", err)
	}
	if other.token != w.token || r.token != w.token {
		t.Errorf("readers have tokens %d and %d, want the writer's, %d", r.token, other.token, w.token)
	}
	release(t, r)
	release(t, other)
	mustBeRemoved(t, rdb, "down")
}

// The release of a read hold inside a write hold deleted the lock.
// Regression: redisson#891
func TestReadReleaseInsideWriteKeepsTheLock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	w := acquire(t, c.RW("in").Write())
	r, err := c.RW("in").Read().Acquire(w.Context(), WithReentry())
	if err != nil {
		t.Fatal(err)
	}
	release(t, r)
	for _, side := range []*RWSide{c.RW("in").Read(), c.RW("in").Write()} {
		if _, err := side.TryAcquire(ctx); !errors.Is(err, ErrHeld) {
			t.Errorf("try: %v, want ErrHeld", err)
		}
	}
	release(t, w)
}

// A second write hold with a shorter lease ended the first. Redisson also adds leases up on re-entry, and shortens the
// writer's lease to a reader's when a read hold is released.
// Regression: redisson#1110, Redisson's write lock (leases add up)
// Regression: Redisson's read lock (its release shortens the write lease)
func TestLeasesAreNeitherShortenedNorAddedUp(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	ttl := func(t *testing.T, name string, want time.Duration) {
		t.Helper()
		if got := rdb.PTTL(ctx, name).Val(); got > want || got < want-20*time.Second {
			t.Errorf("the lock lasts %v, want just under %v", got, want)
		}
	}
	t.Run("B20", func(t *testing.T) {
		acquire(t, c.RW("b20").Write(), WithOwner("x"), WithReentry(), WithLease(time.Minute))
		inner := acquire(t, c.RW("b20").Write(), WithOwner("x"), WithReentry(), WithLease(50*time.Millisecond))
		ttl(t, "b20", time.Minute)
		<-inner.Context().Done()
		if _, err := c.RW("b20").Write().TryAcquire(ctx); !errors.Is(err, ErrHeld) {
			t.Errorf("after the inner lease: %v, want ErrHeld", err)
		}
	})
	t.Run("S09", func(t *testing.T) {
		for range 6 {
			acquire(t, c.RW("s09").Write(), WithOwner("x"), WithReentry(), WithLease(time.Minute))
		}
		ttl(t, "s09", time.Minute)
	})
	t.Run("S10", func(t *testing.T) {
		acquire(t, c.RW("s10").Write(), WithOwner("x"), WithReentry(), WithLease(time.Minute))
		acquire(t, c.RW("s10").Read(), WithOwner("x"), WithReentry(), WithLease(20*time.Second))
		release(t, acquire(t, c.RW("s10").Read(), WithOwner("x"), WithReentry(), WithLease(20*time.Second)))
		ttl(t, "s10", time.Minute)
	})
}

// The watchdog renewed the hash and not the holds, so readers ended under it. Each client
// renews its own holds only.
// Regression: redisson#1604
func TestWatchdogRenewsTheHoldsThemselves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	s := newHooks()
	c := newTestClient(t, rdb, s.options(watchedLease))
	short := acquire(t, newTestClient(t, rdb, Options{}).RW("dog").Read(), WithLease(time.Minute))
	first := rdb.ZScore(ctx, "{dog}:leases", short.claim.id).Val()
	h := acquire(t, c.RW("dog").Read())
	begin := rdb.ZScore(ctx, "{dog}:leases", h.claim.id).Val()
	for range 2 + len(s.renewed) { // there may have been renewals before the deadline was read
		within(t, testTimeout, "a renewal", s.renewed)
	}
	if got := rdb.ZScore(ctx, "{dog}:leases", h.claim.id).Val(); got < begin+1500 {
		t.Errorf("its own deadline moved by %v ms in two renewals", got-begin)
	}
	if got := rdb.ZScore(ctx, "{dog}:leases", short.claim.id).Val(); got != first {
		t.Errorf("the deadline of another hold moved by %v ms", got-first)
	}
	if h.Context().Err() != nil {
		t.Error("the hold was lost under the watchdog")
	}
	release(t, short)
	release(t, h)
}
