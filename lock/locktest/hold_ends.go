package locktest

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

// short is a lease that expires within a test.
const short = 250 * time.Millisecond

// slack is how late a timer may fire on a busy machine.
const slack = 2 * time.Second

// holdEnds is how a hold ends.
func holdEnds() []behavior {
	return []behavior{
		{"lease-expires", leased, leaseExpires},
		{"release-after-lease-fails", leased, releaseAfterLeaseFails},
		{"lease-is-renewed", renews, leaseIsRenewed},
		{"renewal-ends-with-close", renews, renewalEndsWithClose},
		{"loss-is-reported", reportsLoss, lossIsReported},
		{"loss-is-reported-without-servers", reportsLoss, lossIsReportedWithoutServers},
		{"second-release-fails", nil, secondReleaseFails},
		{"release-with-an-ended-context", nil, releaseWithAnEndedContext},
		{"close-leaves-nothing", nil, closeLeavesNothing},
		{"no-acquire-after-close", nil, noAcquireAfterClose},
	}
}

func leaseExpires(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, AcquireOptions{Lease: short})
	next := s.acquire(t, s.b, s.longLease()) // without a release
	if err := h.Release(context.Background()); !errors.Is(err, s.spec.ErrLost) {
		t.Errorf("release after the lease: %v, want %v", err, s.spec.ErrLost)
	}
	s.mustBeHeld(t, s.a) // the release of the old hold did not end the new one
	s.release(t, next)
}

func releaseAfterLeaseFails(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, AcquireOptions{Lease: short})
	<-time.After(2 * short) // only time ends a lease
	if err := h.Release(context.Background()); !errors.Is(err, s.spec.ErrLost) {
		t.Errorf("release after the lease, without another holder: %v, want %v", err, s.spec.ErrLost)
	}
	s.mustBeFree(t, s.b)
}

func leaseIsRenewed(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, AcquireOptions{})
	ended := time.After(2 * s.spec.Lease)
	ctx := context.Background()
	if s.spec.ReportsLoss {
		ctx = h.Context()
	}
	select {
	case <-ctx.Done():
		t.Fatalf("the hold ended: %v", context.Cause(ctx))
	case <-ended:
	}
	s.mustBeHeld(t, s.b)
	s.release(t, h)
	s.mustBeFree(t, s.b)
}

func renewalEndsWithClose(t *testing.T, s *fixture) {
	one := s.servers.open(t)
	s.acquire(t, one, AcquireOptions{})
	closeLocker(t, one)
	s.release(t, s.acquire(t, s.b, s.longLease())) // after the lease
}

func lossIsReported(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, AcquireOptions{})
	s.servers.flush()
	select {
	case <-h.Context().Done():
	case <-time.After(s.spec.Lease + prompt):
		t.Fatal("the hold was lost but its context has not ended")
	}
	if err := h.Release(context.Background()); !errors.Is(err, s.spec.ErrLost) {
		t.Errorf("release of a lost hold: %v, want %v", err, s.spec.ErrLost)
	}
	s.mustBeFree(t, s.b)
}

func lossIsReportedWithoutServers(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, AcquireOptions{Lease: short})
	for _, p := range s.servers.proxies {
		p.HoldReplies("e") // every request
	}
	select {
	case <-h.Context().Done():
	case <-time.After(short + slack):
		if h.Context().Err() == nil {
			t.Error("the lease has expired but the context of the hold has not ended")
		}
	}
}

func secondReleaseFails(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, s.longLease())
	s.release(t, h)
	next := s.acquire(t, s.b, s.longLease())
	if err := h.Release(context.Background()); err == nil {
		t.Error("a second release did not fail")
	}
	s.mustBeHeld(t, s.a)
	s.release(t, next)
}

func releaseWithAnEndedContext(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, s.longLease())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := h.Release(ctx); err != nil {
		t.Errorf("release: %v", err)
	}
	s.mustBeFree(t, s.b)
}

func noAcquireAfterClose(t *testing.T, s *fixture) {
	one := s.servers.open(t)
	closeLocker(t, one)
	if h, err := one.TryAcquire(context.Background(), s.name, s.longLease()); err == nil {
		_ = h.Release(context.Background())
		t.Error("a closed client acquired the lock")
	}
	s.mustBeFree(t, s.b)
}

// clean returns a function that reports whether the servers have only LeftKeys.
func (s *fixture) clean(t *testing.T) func() bool {
	return func() bool { return len(s.leftovers(t)) == 0 }
}

func closeLeavesNothing(t *testing.T, s *fixture) {
	before, conns := runtime.NumGoroutine(), s.servers.conns()
	one := s.servers.spec.Open(t, s.servers.addrs)
	h := s.acquire(t, one, s.longLease())
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	waiting := s.acquireAsync(ctx, one, s.longLease())
	if o := await(t, timeout, waiting); o.err == nil {
		t.Fatal("the lock was granted while it is held")
	}
	s.release(t, h)
	closeLocker(t, one)
	Eventually(t, timeout, "a closed client has no goroutine", func() bool {
		return runtime.NumGoroutine() <= before || s.spec.Parallel
	})
	Eventually(t, timeout, "a closed client has no connection", func() bool {
		return s.servers.conns() <= conns
	})
	Eventually(t, timeout, "only LeftKeys are left at the servers", s.clean(t))
}
