package lock

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// slotMove is the migration of the slot of a key from the master that had it first to the next one.
type slotMove struct {
	t               *testing.T
	slot            int
	from, to, third *redis.Client
	fromID, toID    any
}

// startMove begins a migration; no key has moved yet.
func startMove(t *testing.T, servers []*server, key string) *slotMove {
	t.Helper()
	ctx := context.Background()
	slot := wire.SlotOf(key)
	m := &slotMove{t: t, slot: slot, from: servers[slot/5462].Dial(t), to: servers[(slot/5462+1)%3].Dial(t),
		third: servers[(slot/5462+2)%3].Dial(t)}
	m.fromID, m.toID = m.from.Do(ctx, "CLUSTER", "MYID").Val(), m.to.Do(ctx, "CLUSTER", "MYID").Val()
	m.must(m.to.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", m.fromID))
	m.must(m.from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", m.toID))
	return m
}

func (m *slotMove) must(cmd *redis.Cmd) {
	m.t.Helper()
	if err := cmd.Err(); err != nil {
		m.t.Fatal(err)
	}
}

// oneMigration is held by a migration that moves keys or ends. Both servers of a MIGRATE serve nobody meanwhile, so
// masters that send keys to each other at the same time, or in a circle, wait for each other until it times out. And a
// master that has lost a slot claims it until it has heard of that: if it takes over another slot in this time, its
// claim has the greatest epoch, and the masters do not agree any more.
var oneMigration sync.Mutex

// moveKeys moves keys that are still at the first master.
func (m *slotMove) moveKeys(keys ...string) {
	m.t.Helper()
	oneMigration.Lock()
	defer oneMigration.Unlock()
	m.migrateKeys(keys)
}

func (m *slotMove) migrateKeys(keys []string) {
	m.t.Helper()
	host, p, _ := net.SplitHostPort(m.to.Options().Addr)
	for _, key := range keys {
		m.must(m.from.Do(context.Background(), "MIGRATE", host, p, key, 0, 10000))
	}
}

// finish moves the rest of the keys and ends the migration at every master, as redis-cli does.
func (m *slotMove) finish() {
	m.t.Helper()
	ctx := context.Background()
	oneMigration.Lock()
	defer oneMigration.Unlock()
	m.migrateKeys(m.from.ClusterGetKeysInSlot(ctx, m.slot, 1000).Val())
	masters := []*redis.Client{m.to, m.from, m.third}
	for _, master := range masters {
		m.must(master.Do(ctx, "CLUSTER", "SETSLOT", m.slot, "NODE", m.toID))
	}
	eventually(m.t, testTimeout, "every master knows the new owner and its epoch", func() bool {
		return !slices.ContainsFunc(masters, func(master *redis.Client) bool {
			return m.owner(master) != m.toID || currentEpoch(master) != currentEpoch(m.to)
		})
	})
}

// currentEpoch is the greatest epoch that a master knows. One that takes over a slot adds one to it; if another had
// done that too, and it had not heard of it, both would have the same epoch, and the one that then chooses a greater
// one may claim the slot again.
func currentEpoch(master *redis.Client) string {
	info := master.ClusterInfo(context.Background()).Val()
	_, rest, _ := strings.Cut(info, "cluster_current_epoch:")
	epoch, _, _ := strings.Cut(rest, "\r")
	return epoch
}

// owner is the id of the owner of the slot according to a master.
func (m *slotMove) owner(master *redis.Client) any {
	for _, shard := range master.ClusterShards(context.Background()).Val() {
		for _, r := range shard.Slots {
			if r.Start <= int64(m.slot) && int64(m.slot) <= r.End {
				return shard.Nodes[0].ID // no master has a replica
			}
		}
	}
	return nil
}

// TestCountedWhileSlotMigrates: semaphores without leases and latches are available while their slot migrates, whether
// their hash has moved or not, and a request that arrives again then, or after that, has no second effect.
func TestCountedWhileSlotMigrates(t *testing.T) {
	t.Parallel()
	servers, rdb := startCluster(t)
	c := newTestClient(t, rdb, Options{})
	for name, moved := range map[string]bool{"hash-stays": false, "hash-moved": true} {
		start := func(t *testing.T, key string) *slotMove {
			m := startMove(t, servers, key)
			if moved {
				m.moveKeys(key)
			}
			return m
		}
		t.Run("semaphore-"+name, func(t *testing.T) {
			semaphoreMoves(t, c, c.Semaphore("pool-"+name), func(key string) *slotMove { return start(t, key) })
		})
		t.Run("earlier-tombstone-"+name, func(t *testing.T) {
			tombstoneStays(t, c, c.Semaphore("early-"+name), func(key string) *slotMove { return start(t, key) })
		})
		t.Run("latch-"+name, func(t *testing.T) {
			latchMoves(t, c, c.Latch("start-"+name), func(key string) *slotMove { return start(t, key) })
		})
		t.Run("latch-is-deleted-"+name, func(t *testing.T) {
			latchIsDeleted(t, c, c.Latch("gone-"+name), func(key string) *slotMove { return start(t, key) })
		})
	}
	t.Run("semaphore-is-set-up", func(t *testing.T) {
		s := c.Semaphore("new")
		m := startMove(t, servers, s.key)
		if set, err := s.TrySetPermits(context.Background(), 1); err != nil || !set {
			t.Fatalf("set up: %v, %v", set, err)
		}
		m.finish()
		expectFree(t, s, 1, 1)
	})
}

func expectFree(t *testing.T, s *Semaphore, total, free int) {
	t.Helper()
	if got, err := s.State(context.Background()); err != nil || got.Total != total || got.Free != free {
		t.Errorf("state %+v, %v, want %d of %d free", got, err, free, total)
	}
}

func semaphoreMoves(t *testing.T, c *Client, s *Semaphore, start func(string) *slotMove) {
	ctx := context.Background()
	if err := s.SetPermits(ctx, 2); err != nil {
		t.Fatal(err)
	}
	m := start(s.key)
	p, err := s.Acquire(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.TryAcquire(ctx, 1); !errors.Is(err, ErrNoPermits) {
		t.Errorf("a third permit of two: %v", err)
	}
	if total, err := s.AddPermits(ctx, 1); err != nil || total != 3 {
		t.Errorf("add a permit: %d, %v", total, err)
	}
	if err := p.Release(ctx); err != nil {
		t.Error(err)
	}
	again := func(when string) {
		t.Helper()
		if left, err := c.semaphores.release(ctx, p.claim); left != 0 || err != nil {
			t.Errorf("%s, the release again: %d, %v", when, left, err)
		}
		if _, err := c.semaphores.acquire(ctx, p.claim); !errors.Is(err, ErrReleased) {
			t.Errorf("%s, an acquire after its release: %v", when, err)
		}
		expectFree(t, s, 3, 3)
	}
	again("while the slot migrates")
	m.finish()
	again("after the migration")
}

// tombstoneStays: a request that was executed before the migration arrives again when its tombstone may be at another
// master than the hash.
func tombstoneStays(t *testing.T, c *Client, s *Semaphore, start func(string) *slotMove) {
	ctx := context.Background()
	if err := s.SetPermits(ctx, 1); err != nil {
		t.Fatal(err)
	}
	p, err := s.Acquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Release(ctx); err != nil {
		t.Fatal(err)
	}
	start(s.key)
	if left, err := c.semaphores.release(ctx, p.claim); left != 0 || err != nil {
		t.Errorf("the release again: %d, %v", left, err)
	}
	if _, err := c.semaphores.acquire(ctx, p.claim); !errors.Is(err, ErrReleased) {
		t.Errorf("an acquire after its release: %v", err)
	}
	expectFree(t, s, 1, 1)
}

func latchMoves(t *testing.T, c *Client, l *Latch, start func(string) *slotMove) {
	ctx := context.Background()
	arm(t, l, 1)
	m := start(l.key)
	kinds := c.node.kinds
	request := wire.Call{Script: kinds.latch.count, Keys: []string{l.key, tombstoneKey(l.key, "r")},
		Args: []any{int64(60000), "r", 0, openChannel(l.key)}, Counted: true}
	again := func(when string) {
		t.Helper()
		if r, err := c.request(ctx, request, 2, true); err != nil || r.Code != wire.CodeOK || r.Int(0) != 0 {
			t.Errorf("%s, a count that opens the latch: %+v, %v", when, r, err)
		}
	}
	again("while the slot migrates")
	if err := l.Wait(ctx); err != nil {
		t.Error(err)
	}
	arm(t, l, 2)
	again("after the latch was armed again")
	m.finish()
	again("after the migration")
	if s, err := l.State(ctx); err != nil || s.Count != 2 {
		t.Errorf("state %+v, %v, want 2 to count: an earlier count was repeated", s, err)
	}
}

// latchIsDeleted: while the slot migrates, a latch is not deleted, since there is no place that would keep the request
// from deleting the next one, if it arrives again.
func latchIsDeleted(t *testing.T, c *Client, l *Latch, start func(string) *slotMove) {
	ctx := context.Background()
	gen := arm(t, l, 1)
	m := start(l.key)
	_, _, err := doCounted(ctx, c.node.Do, wire.Call{Script: c.node.kinds.latch.remove,
		Keys: []string{l.key, tombstoneKey(l.key, "d")}, Args: []any{int64(60000), openChannel(l.key)}, Counted: true})
	if !isMigrating(err) {
		t.Errorf("deletion: %v, want it to wait for the migration", err)
	}
	if s, err := l.State(ctx); err != nil || s != (LatchState{1, gen}) {
		t.Errorf("state %+v, %v, want the latch as it was", s, err)
	}
	deleted := make(chan error, 1)
	go func() { deleted <- l.Delete(ctx) }()
	m.finish()
	if err := within(t, testTimeout, "the deletion", deleted); err != nil {
		t.Error(err)
	}
	if _, err := l.State(ctx); !errors.Is(err, ErrAbsent) {
		t.Errorf("after the deletion: %v", err)
	}
}

// TestRecordsInTheHashExpire: records of requests in the hash while its slot migrated are removed by later ones.
func TestRecordsInTheHashExpire(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	s := c.Semaphore("pool")
	if err := s.SetPermits(ctx, 1); err != nil {
		t.Fatal(err)
	}
	before := rdb.HLen(ctx, "pool").Val()
	for range 20 {
		id := c.random.ID()
		_, err := c.node.Do(ctx, wire.Call{Script: c.node.kinds.semaphore.release, Keys: []string{"pool"},
			Args: []any{1, "{pool}:free", id, tombstoneKey("pool", id)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, testTimeout, "the records are gone", func() bool {
		if err := s.SetPermits(ctx, 1); err != nil {
			t.Fatal(err)
		}
		for _, field := range rdb.HKeys(ctx, "pool").Val() {
			if strings.HasPrefix(field, "r:") || strings.HasPrefix(field, "q:") {
				return false
			}
		}
		return true
	})
	if now := rdb.HLen(ctx, "pool").Val(); now > before+2 {
		t.Errorf("%d fields, %d before, want two counters more at most", now, before)
	}
}

// TestWaiterWhileSlotMigrates: a release at the new master frees permits for a waiter that has subscribed at the old
// one.
func TestWaiterWhileSlotMigrates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers, rdb := startCluster(t)
	c := newTestClient(t, rdb, Options{PollMax: time.Second})
	s := c.Semaphore("moving")
	if err := s.SetPermits(ctx, 1); err != nil {
		t.Fatal(err)
	}
	p, err := s.Acquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan *Permits, 1)
	go func() {
		next, err := s.Acquire(ctx, 1)
		if err != nil {
			t.Error(err)
		}
		served <- next
	}()
	asleep(t, c, "{moving}:free", 1)
	m := startMove(t, servers, s.key)
	m.moveKeys(s.key)
	if err := p.Release(ctx); err != nil {
		t.Fatal(err)
	}
	next := within(t, testTimeout, "the waiter", served)
	m.finish()
	if err := next.Release(ctx); err != nil {
		t.Error(err)
	}
}

// TestDeletedLatchKeepsRecords: a latch whose hash has kept the reply to a count can be armed again after it was
// deleted, and that request does not count the new one when it arrives again.
func TestDeletedLatchKeepsRecords(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	l := c.Latch("start")
	arm(t, l, 1)
	count := func(keys []string, more ...any) {
		t.Helper()
		args := append([]any{60000, "r", 0, openChannel(l.key)}, more...)
		if _, err := c.node.Do(ctx, wire.Call{Script: c.node.kinds.latch.count, Keys: keys, Args: args}); err != nil {
			t.Fatal(err)
		}
	}
	request := tombstoneKey(l.key, "r")
	count([]string{l.key}, request) // as while the slot migrates
	if err := l.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	arm(t, l, 1)
	count([]string{l.key, request})
	if s, err := l.State(ctx); err != nil || s.Count != 1 {
		t.Errorf("state %+v, %v, want 1 to count: an earlier count was repeated", s, err)
	}
	if ttl := rdb.PTTL(ctx, request).Val(); ttl <= 0 || ttl > time.Minute {
		t.Errorf("the record lasts %v, want what was left of a minute", ttl)
	}
}

// TestAbsentWaitsForSlot: while the slot migrates, a request that finds no hash is not answered, since nothing would
// refuse it if it arrived again after the latch or semaphore had been made.
func TestAbsentWaitsForSlot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers, rdb := startCluster(t)
	c := newTestClient(t, rdb, Options{})
	m := startMove(t, servers, "none")
	kinds := c.node.kinds
	for name, what := range map[string]wire.Call{
		"a count of a latch":     {Script: kinds.latch.count, Args: []any{60000, "r", 0, openChannel("none")}},
		"a deletion":             {Script: kinds.latch.remove, Args: []any{60000, openChannel("none")}},
		"an addition of permits": {Script: kinds.semaphore.set, Args: []any{60000, "semaphore", "add", 1, "{none}:free"}},
	} {
		what.Keys, what.Counted = []string{"none", tombstoneKey("none", "r")}, true
		if _, _, err := doCounted(ctx, c.node.Do, what); !isMigrating(err) {
			t.Errorf("%s: %v, want it to wait for the migration", name, err)
		}
	}
	counted := make(chan error, 1)
	go func() {
		_, err := c.Latch("none").CountDown(ctx, CountDownOptions{})
		counted <- err
	}()
	m.finish()
	if err := within(t, testTimeout, "the count", counted); !errors.Is(err, ErrAbsent) {
		t.Errorf("after the migration: %v", err)
	}
}
