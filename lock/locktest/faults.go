package locktest

import (
	"context"
	"testing"
	"time"
)

// faults is what a lock tolerates.
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
				p.DropReplies(0, "")
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
		{"scripts-flushed", nil, func(t *testing.T, s *fixture) {
			h := s.acquire(t, s.a, s.longLease())
			s.servers.doAll(t, "flush scripts", "SCRIPT", "FLUSH")
			s.release(t, h)
			s.servers.doAll(t, "flush scripts", "SCRIPT", "FLUSH")
			s.mustBeFree(t, s.b)
		}},
		{"foreign-key-is-unchanged", nil, func(t *testing.T, s *fixture) {
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
				if got := rdb.Get(ctx, s.name).Val(); got != "not a lock" {
					t.Errorf("the foreign key is now %q", got)
				}
			}
		}},
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
