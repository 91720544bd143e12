package locktest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// clusters are the faults that a lock tolerates in a Redis Cluster only.
func clusters() []behavior {
	return []behavior{
		{"one-master-hangs", func(s Spec) bool { return s.Topology == Cluster && s.IsolatesMasters }, oneMasterHangs},
		{"slot-migrates", func(s Spec) bool { return s.Topology == Cluster && s.OutlastsMigration }, slotMigrates},
		{"slot-migration-ends", func(s Spec) bool { return s.Topology == Cluster && !s.OutlastsMigration }, migrationEnds},
	}
}

// on is the same behavior for a lock whose slot the master with this index has.
func (s *fixture) on(t *testing.T, master int) *fixture {
	t.Helper()
	other := *s
	for i := 0; ; i++ {
		other.name = s.name + "-" + strconv.Itoa(i)
		slot, err := s.servers.direct[0].ClusterKeySlot(context.Background(), other.name).Result()
		if err != nil {
			t.Fatal(err)
		}
		if int(slot)*len(s.servers.direct)/slots == master {
			return &other
		}
	}
}

// pairEvery is how often oneMasterHangs takes a lock of a healthy master.
const pairEvery = 10 * time.Millisecond

// oneMasterHangs: the locks of one master hang with it. Those of the others are acquired, released and renewed as
// before. It hangs for less than its cluster-node-timeout of 15 s, so that the cluster stays up.
func oneMasterHangs(t *testing.T, s *fixture) {
	s.unlessStalled(t, func() error { return s.oneMasterHangs(t) })
}

// The error of the method is that a renewed hold at a healthy master has ended.
func (s *fixture) oneMasterHangs(t *testing.T) error {
	sick, healthy, watched := s.on(t, 0), s.on(t, 1), s.on(t, 2)
	sick.mustBeFree(t, s.a)
	healthy.mustBeFree(t, s.a)
	var holds []Hold
	if s.spec.Renews {
		holds = append(holds, watched.acquire(t, s.a, AcquireOptions{}))
	}
	s.servers.masters[0].Stop(t)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	stopped := make(chan outcome, 20)
	for range cap(stopped) { // requests at the master that hangs, all the time
		go func() {
			h, err := s.a.Acquire(ctx, sick.name, s.longLease())
			stopped <- outcome{h, err}
		}()
	}
	defer func() {
		s.servers.masters[0].Continue()
		cancel()
		for range cap(stopped) {
			if o := <-stopped; o.err == nil {
				_ = o.hold.Release(context.Background())
			}
		}
	}()
	ended := time.After(s.spec.Lease * 3 / 2)
	tick := time.NewTicker(pairEvery) // as fast as they can, pairs would take a processor from all other tests
	defer tick.Stop()
	for pairs, over := 0, false; !over; pairs++ {
		start := time.Now()
		healthy.release(t, healthy.acquire(t, s.a, s.longLease()))
		if took := time.Since(start); took > prompt/2 {
			t.Errorf("pair %d at a healthy master took %v", pairs, took)
		}
		select {
		case <-ended:
			over = true
		case <-tick.C:
		}
	}
	for _, h := range holds {
		if s.spec.ReportsLoss && h.Context().Err() != nil {
			return fmt.Errorf("at a healthy master: %w", context.Cause(h.Context()))
		}
		if err := h.Release(context.Background()); err != nil {
			return fmt.Errorf("at a healthy master: %w", err)
		}
	}
	return nil
}

// slotMigrates: the slot of the lock is open on two masters. A key that is at neither is redirected, and a script that
// names one key that is there and another that is not is refused (TRYAGAIN), for as long as the migration lasts.
func slotMigrates(t *testing.T, s *fixture) {
	s = s.on(t, 0)
	last := int64(0)
	pair := func(l Locker) {
		t.Helper()
		h := s.acquire(t, l, s.longLease())
		s.mustBeHeld(t, s.b)
		if s.spec.Fenced && h.Token() <= last {
			t.Errorf("token %d after %d", h.Token(), last)
		}
		last = h.Token()
		s.release(t, h)
		if err := h.Release(context.Background()); err == nil {
			t.Error("a second release did not fail")
		}
	}
	pair(s.a)
	held := s.acquire(t, s.a, s.longLease())
	last = held.Token()
	next := s.acquireAsync(context.Background(), s.b, s.longLease())
	s.awaitWaiting(t)
	finish := s.openSlot(t, 0, 1)
	s.release(t, held)
	h := awaitGrant(t, s.spec.wakeWithin(), next)
	last = h.Token()
	s.release(t, h)
	for range 3 {
		pair(s.a)
		pair(s.b)
	}
	if s.spec.Reentrant {
		reentry(t, s)
	}
	if s.spec.Renews {
		s.outlastsLease(t, s.a, func() {}, func() {})
	}
	moved := s.acquire(t, s.a, s.longLease())
	last = moved.Token()
	finish()
	s.mustBeHeld(t, s.b)
	s.release(t, moved)
	pair(s.a)
	pair(s.b)
	s.openSlot(t, 1, 0)()
	pair(s.a)
}

// migrationEnds: the slot of the lock is open on two masters, and the lock is not available meanwhile. Nobody is
// granted it twice, and requests are executed when the slot has moved.
func migrationEnds(t *testing.T, s *fixture) {
	s = s.on(t, 0)
	s.release(t, s.acquire(t, s.a, s.longLease())) // some of its keys exist, and others do not
	held := s.acquire(t, s.a, s.longLease())
	next := s.acquireAsync(context.Background(), s.b, s.longLease())
	s.awaitWaiting(t)
	finish := s.openSlot(t, 0, 1)
	if h, err := s.b.TryAcquire(context.Background(), s.name, s.longLease()); err == nil {
		_ = h.Release(context.Background())
		t.Error("the lock was granted while it is held")
	}
	released := make(chan error, 1)
	go func() { released <- held.Release(context.Background()) }()
	finish()
	if err := <-released; err != nil {
		t.Errorf("release: %v", err)
	}
	h := awaitGrant(t, s.spec.wakeWithin(), next)
	if s.spec.Fenced && h.Token() <= held.Token() {
		t.Errorf("token %d after %d", h.Token(), held.Token())
	}
	s.mustBeHeld(t, s.a)
	s.release(t, h)
	s.mustBeFree(t, s.a)
	s.mustBeFree(t, s.b)
	if err := held.Release(context.Background()); err == nil {
		t.Error("a second release did not fail")
	}
}

// openSlot begins the migration of the lock's slot. What it returns ends it.
func (s *fixture) openSlot(t *testing.T, from, to int) (finish func()) {
	t.Helper()
	ctx := context.Background()
	source, target := s.servers.direct[from], s.servers.direct[to]
	do := func(rdb *redis.Client, args ...any) any {
		t.Helper()
		value, err := rdb.Do(ctx, args...).Result()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return value
	}
	slot := do(source, "CLUSTER", "KEYSLOT", s.name)
	sourceID, targetID := do(source, "CLUSTER", "MYID"), do(target, "CLUSTER", "MYID")
	do(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", sourceID)
	do(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", targetID)
	return func() {
		t.Helper()
		host, port, _ := net.SplitHostPort(s.servers.masters[to].Addr)
		keys, _ := do(source, "CLUSTER", "GETKEYSINSLOT", slot, 100).([]any)
		if len(keys) > 0 {
			do(source, append([]any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}, keys...)...)
		}
		for _, rdb := range []*redis.Client{target, source} {
			do(rdb, "CLUSTER", "SETSLOT", slot, "NODE", targetID)
		}
	}
}
