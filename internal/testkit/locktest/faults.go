package locktest

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// faults are the faults that a lock tolerates.
func faults() []behavior {
	return []behavior{
		{"repeated-acquire-counts-once", idempotent, func(t *testing.T, s *fixture) {
			s.mustBeFree(t, s.a) // loads its scripts
			s.dropReplies(t, func() {
				h := s.acquire(t, s.a, s.longLease())
				s.mustBeHeld(t, s.b)
				s.release(t, h)
			})
			s.mustBeFree(t, s.b) // one release sufficed
		}},
		{"repeated-release-succeeds", idempotent, func(t *testing.T, s *fixture) {
			h := s.acquire(t, s.a, s.longLease())
			s.dropReplies(t, func() { s.release(t, h) })
			s.mustBeFree(t, s.b)
		}},
		{"canceled-in-flight", idempotent, func(t *testing.T, s *fixture) {
			s.mustBeFree(t, s.a)
			for _, p := range s.servers.proxies {
				p.HoldReplies(s.spec.requestWord())
			}
			before := s.servers.dropped()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			acquired := s.acquireAsync(ctx, s.a, s.longLease())
			Eventually(t, timeout, "the request was executed", func() bool { return s.servers.dropped() > before })
			cancel()
			for _, p := range s.servers.proxies {
				p.DropReplies(0)
			}
			if o := await(t, timeout, acquired); o.err == nil {
				s.release(t, o.hold) // the grant came before the cancellation
			}
			Eventually(t, timeout, "the lock was released, long before its lease ends", func() bool {
				h, err := s.b.TryAcquire(context.Background(), s.name, s.longLease())
				return err == nil && h.Release(context.Background()) == nil
			})
		}},
		{"woken-after-broken-connections", nil, func(t *testing.T, s *fixture) {
			h := s.acquire(t, s.a, s.longLease())
			next := s.acquireAsync(context.Background(), s.b, s.longLease())
			s.awaitWaiting(t)
			for _, p := range s.servers.proxies {
				p.CutConnections()
			}
			s.release(t, h)
			s.release(t, awaitGrant(t, s.spec.wakeWithin()+5*time.Second, next))
		}},
		{"one-master-is-deaf", func(s Spec) bool { return s.Topology == Quorum && s.IsolatesMasters }, oneMasterDeaf},
		{"held-by-another-library", func(s Spec) bool { return s.HeldByOthers }, heldByOthers},
		{"large-foreign-hash", func(s Spec) bool { return s.HeldByOthers && s.Topology == Single }, largeForeignHash},
		{"served-after-others-left", fenced, servedAfterOthersLeft},
		{"scripts-flushed", nil, func(t *testing.T, s *fixture) {
			h := s.acquire(t, s.a, s.longLease())
			s.servers.doAll(t, "flush scripts", "SCRIPT", "FLUSH")
			s.release(t, h)
			s.servers.doAll(t, "flush scripts", "SCRIPT", "FLUSH")
			s.mustBeFree(t, s.b)
		}},
		{"foreign-key-is-unchanged", nil, foreignKeyUnchanged},
	}
}

// dropReplies drops the reply of each master to its next request while do runs, and checks
// that one was dropped.
func (s *fixture) dropReplies(t *testing.T, do func()) {
	t.Helper()
	before := s.servers.dropped()
	for _, p := range s.servers.proxies {
		p.DropReplies(1, s.spec.requestWord())
	}
	do()
	if s.servers.dropped() == before {
		t.Error("no reply was dropped: the test tested nothing")
	}
}

// servedAfterOthersLeft: a waiter that has become the first of its client sleeps no longer than a first one does. The
// lock becomes free without a message.
func servedAfterOthersLeft(t *testing.T, s *fixture) {
	s.acquire(t, s.a, s.longLease())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var leaving []<-chan outcome
	before := s.requestCount(t)
	for range 40 {
		leaving = append(leaving, s.acquireAsync(ctx, s.b, s.longLease()))
	}
	Eventually(t, timeout, "as many requests as waiters", func() bool { return s.requestCount(t) >= before+40 })
	s.awaitWaiting(t)
	last := s.longLease()
	last.Owner = "last-in-line" // a waiter with a new owner would rely on the others, and send its first request later
	next := s.acquireAsync(context.Background(), s.b, last)
	s.awaitWaiting(t)
	cancel()
	for _, ch := range leaving {
		if o := await(t, timeout, ch); o.err == nil {
			t.Fatal("the lock was granted while it is held")
		}
	}
	s.servers.removeLocks(t)
	s.release(t, awaitGrant(t, s.spec.wakeWithin(), next))
}

// heldByOthers: programs that use another library hold the lock for a while, as in a rolling migration.
func heldByOthers(t *testing.T, s *fixture) {
	hash := []any{"HSET", s.name, "23aed3a8-5a0c-4f5b-9f3a-0c3c1c2b7a11:1", "1"}
	for _, set := range [][]any{{"SET", s.name, "value of redsync"}, hash} {
		s.awaitReleased(t)
		s.servers.doAll(t, "hold the lock", set...)
		s.servers.doAll(t, "give it a lease", "PEXPIRE", s.name, long.Milliseconds())
		s.mustBeHeld(t, s.a)
		s.servers.doAll(t, "end its lease soon", "PEXPIRE", s.name, 1500)
		s.release(t, awaitGrant(t, s.spec.wakeWithin(), s.acquireAsync(context.Background(), s.a, s.longLease())))
	}
}

// largeForeignHash: to see that a large hash is no lock, a server does not read all of it while other clients wait.
func largeForeignHash(t *testing.T, s *fixture) {
	ctx, rdb := context.Background(), s.servers.direct[0]
	fields := make(map[string]any)
	for i := range 10000 {
		fields[strconv.Itoa(i)] = "a customer"
	}
	if err := errors.Join(rdb.HSet(ctx, s.name, fields).Err(), rdb.PExpire(ctx, s.name, long).Err()); err != nil {
		t.Fatal(err)
	}
	before := Calls(t, rdb, "hscan")
	all := Calls(t, rdb, "hkeys", "hvals", "hgetall")
	h, err := s.a.TryAcquire(ctx, s.name, s.longLease())
	if err == nil {
		_ = h.Release(ctx)
		t.Error("a hash that is not a lock was acquired")
	}
	if n := Calls(t, rdb, "hscan") - before; n > 10 { // batches
		t.Errorf("%d batches of its fields were read", n)
	}
	if n := Calls(t, rdb, "hkeys", "hvals", "hgetall") - all; n > 0 {
		t.Errorf("all of its fields were read %d times", n)
	}
}

// oneMasterDeaf: one of three masters does not reply. A try whose result is certain without it does not wait for it:
// forty of them would take longer than the limit if each waited for one node's timeout of half a second or more.
func oneMasterDeaf(t *testing.T, s *fixture) {
	s.mustBeFree(t, s.b)
	s.servers.proxies[0].HoldReplies("e") // every request
	h := s.acquire(t, s.a, s.longLease())
	over := time.After(2 * prompt)
	for i := range 40 {
		s.mustBeHeld(t, s.b)
		select {
		case <-over:
			t.Fatalf("%d refused tries took %v", i+1, 2*prompt)
		default:
		}
	}
	s.release(t, h)
	s.release(t, s.acquire(t, s.b, s.longLease()))
	s.servers.proxies[0].DropReplies(0)
}

// foreignKeyUnchanged: a key that is no lock stays as it is.
func foreignKeyUnchanged(t *testing.T, s *fixture) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for _, rdb := range s.servers.direct {
		rdb.Set(ctx, s.name, "not a lock", 0)
	}
	if h, err := s.a.Acquire(ctx, s.name, s.longLease()); err == nil {
		_ = h.Release(ctx)
		t.Error("a key that is not a lock was acquired")
	}
	for _, rdb := range s.servers.direct {
		got, err := rdb.Get(ctx, s.name).Result()
		if got != "not a lock" && !redis.HasErrorPrefix(err, "MOVED") {
			t.Errorf("the foreign key is now %q", got)
		}
	}
}
