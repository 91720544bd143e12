package locktest

import (
	"context"
	"testing"
	"time"
)

// trouble is what fits of chaos into a unit test.
var trouble = []behaviour{
	{"acquire-sent-again-counts-once", idempotent, func(t *testing.T, s *scene) {
		s.free(t, s.a) // its scripts are known to the servers
		s.lose(t, func() {
			h := s.acquire(t, s.a, s.long())
			s.refused(t, s.b)
			s.release(t, h)
		})
		s.free(t, s.b) // one release was enough
	}},
	{"release-sent-again-is-no-error", idempotent, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, s.long())
		s.lose(t, func() { s.release(t, h) })
		s.free(t, s.b)
	}},
	{"cancelled-in-flight", idempotent, func(t *testing.T, s *scene) {
		s.free(t, s.a)
		for _, p := range s.bench.proxies {
			p.Hold(s.spec.requests())
		}
		before := s.bench.losses()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		asked := s.later(ctx, s.a, s.long())
		Eventually(t, patience, "the request was executed", func() bool { return s.bench.losses() > before })
		cancel()
		for _, p := range s.bench.proxies {
			p.Lose(0, "")
		}
		if o := soon(t, patience, asked); o.err == nil {
			s.release(t, o.hold) // the grant had been there
		}
		Eventually(t, patience, "what was asked for is given back, long before its lease ends", func() bool {
			h, err := s.b.TryAcquire(context.Background(), s.name, s.long())
			return err == nil && h.Release(context.Background()) == nil
		})
	}},
	{"woken-although-connections-were-cut", nil, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, s.long())
		next := s.later(context.Background(), s.b, s.long())
		s.asleep(t)
		for _, p := range s.bench.proxies {
			p.Cut()
		}
		s.release(t, h)
		s.release(t, served(t, s.spec.wakes()+5*time.Second, next))
	}},
	{"scripts-forgotten", nil, func(t *testing.T, s *scene) {
		h := s.acquire(t, s.a, s.long())
		s.bench.each(t, "flush scripts", "SCRIPT", "FLUSH")
		s.release(t, h)
		s.bench.each(t, "flush scripts", "SCRIPT", "FLUSH")
		s.free(t, s.b)
	}},
	{"foreign-key-is-left-alone", nil, func(t *testing.T, s *scene) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, rdb := range s.bench.direct {
			rdb.Set(ctx, s.name, "not a lock", 0)
		}
		if h, err := s.a.Acquire(ctx, s.name, s.long()); err == nil {
			_ = h.Release(ctx)
			t.Error("a key that is no lock was taken for a free one")
		}
		for _, rdb := range s.bench.direct {
			if got := rdb.Get(ctx, s.name).Val(); got != "not a lock" {
				t.Errorf("the foreign key is now %q", got)
			}
		}
	}},
}

// lose has the answers to the next script of each master lost while do runs,
// and checks that they were.
func (s *scene) lose(t *testing.T, do func()) {
	t.Helper()
	before := s.bench.losses()
	for _, p := range s.bench.proxies {
		p.Lose(1, s.spec.requests())
	}
	do()
	if s.bench.losses() == before {
		t.Error("no answer was lost: the test tested nothing")
	}
}
