package locktest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// short is a lease of one lock that expires within a test.
const short = 250 * time.Millisecond

// shortLease is a lease that expires within a test. Several locks may be taken one after the other, each within an
// equal part of half of it, in which a busy machine must get a reply.
func (s *fixture) shortLease() time.Duration {
	if s.spec.Parts < 2 {
		return short
	}
	return 2 * short * time.Duration(s.spec.Parts)
}

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
		{
			"close-repeats-releases", func(s Spec) bool { return s.Topology == Quorum && s.IsolatesMasters },
			closeRepeatsReleases,
		},
		{"no-acquire-after-close", nil, noAcquireAfterClose},
	}
}

func leaseExpires(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, AcquireOptions{Lease: s.shortLease()})
	next := s.acquire(t, s.b, s.longLease()) // without a release
	if err := h.Release(context.Background()); !errors.Is(err, s.spec.ErrLost) {
		t.Errorf("release after the lease: %v, want %v", err, s.spec.ErrLost)
	}
	s.mustBeHeld(t, s.a) // the release of the old hold did not end the new one
	s.release(t, next)
}

func releaseAfterLeaseFails(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, AcquireOptions{Lease: s.shortLease()})
	<-time.After(2 * s.shortLease()) // only time ends a lease
	if err := h.Release(context.Background()); !errors.Is(err, s.spec.ErrLost) {
		t.Errorf("release after the lease, without another holder: %v, want %v", err, s.spec.ErrLost)
	}
	s.mustBeFree(t, s.b)
}

// leaseIsRenewed: the lock is still held after two leases.
func leaseIsRenewed(t *testing.T, s *fixture) {
	s.outlasts(t, 2*s.spec.Lease, s.a, func() {}, func() {})
}

// outlastsLease: a hold of l that starts before begin and ends after end is renewed, and lasts for longer than a lease.
func (s *fixture) outlastsLease(t *testing.T, l Locker, begin, end func()) {
	t.Helper()
	s.outlasts(t, s.spec.Lease*5/4, l, begin, end)
}

func (s *fixture) outlasts(t *testing.T, limit time.Duration, l Locker, begin, end func()) {
	t.Helper()
	s.unlessStalled(t, func() error {
		h := s.acquire(t, l, AcquireOptions{})
		begin()
		err := s.staysHeld(h, limit)
		end()
		if err != nil {
			_ = h.Release(context.Background()) // most likely lost
			return err
		}
		if err := h.Release(context.Background()); err != nil {
			return err
		}
		s.mustBeFree(t, s.b)
		return nil
	})
}

// ends waits until ctx ends, for limit at most. Time in which this process did not run does not count.
func ends(ctx context.Context, limit time.Duration) bool {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	last := time.Now()
	for waited := time.Duration(0); waited < limit; last = time.Now() {
		select {
		case <-ctx.Done():
			return true
		case <-tick.C:
			waited += min(time.Since(last), 2*tickEvery)
		}
	}
	return ctx.Err() != nil
}

// staysHeld waits for limit. The error is that the hold was lost before, at the latest when another client is
// granted the lock.
func (s *fixture) staysHeld(h Hold, limit time.Duration) error {
	ctx := context.Background()
	if s.spec.ReportsLoss {
		ctx = h.Context()
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(limit):
	}
	if taken, err := s.b.TryAcquire(context.Background(), s.name, s.longLease()); err == nil {
		_ = taken.Release(context.Background())
		return errors.New("another client was granted the lock")
	} else if !errors.Is(err, s.spec.ErrHeld) {
		return err
	}
	return nil
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
	if !ends(h.Context(), s.spec.Lease+prompt) {
		t.Fatal("the hold was lost but its context has not ended")
	}
	if err := h.Release(context.Background()); !errors.Is(err, s.spec.ErrLost) {
		t.Errorf("release of a lost hold: %v, want %v", err, s.spec.ErrLost)
	}
	s.mustBeFree(t, s.b)
}

func lossIsReportedWithoutServers(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, AcquireOptions{Lease: s.shortLease()})
	for _, p := range s.servers.proxies {
		p.HoldReplies("e") // every request
	}
	if !ends(h.Context(), s.shortLease()+slack) {
		t.Error("the lease has expired but the context of the hold has not ended")
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

// awaitClean waits until the servers have only LeftKeys. A minority of masters that did not answer in time may keep a
// lock until its lease ends, so a limit is longer than long.
func (s *fixture) awaitClean(t *testing.T, limit time.Duration, what string) {
	t.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			t.Logf("left at the servers: %v", left)
		}
	}()
	Eventually(t, limit, what, func() bool {
		left = s.leftovers(t)
		return len(left) == 0
	})
}

func closeLeavesNothing(t *testing.T, s *fixture) {
	s.servers.labeled(t, func(running func() int) { s.closeAll(t, running) })
}

func (s *fixture) closeAll(t *testing.T, running func() int) {
	before, conns := running(), s.servers.conns()
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
		return running() <= before
	})
	Eventually(t, timeout, "a closed client has no connection", func() bool {
		return s.servers.conns() <= conns
	})
	s.awaitClean(t, long+timeout, "only LeftKeys are left at the servers")
}

// closeRepeatsReleases: a master does not get a release, and the client is closed before it has sent it again.
func closeRepeatsReleases(t *testing.T, s *fixture) {
	one := s.servers.open(t)
	h := s.acquire(t, one, s.longLease())
	Eventually(t, timeout, "every master keeps the hold", func() bool { return s.holders(t) == len(s.servers.direct) })
	p := s.servers.proxies[0]
	p.DropRequests("e") // every request
	s.release(t, h)
	select {
	case <-p.Dropped:
	case <-time.After(timeout):
		t.Fatal("no request was dropped")
	}
	p.DropRequests("")
	closeLocker(t, one)
	if left := s.leftovers(t); len(left) > 0 {
		t.Errorf("left at the servers: %v", left)
	}
}

// holders is how many masters keep the key of the lock.
func (s *fixture) holders(t *testing.T) int {
	t.Helper()
	n := 0
	for _, rdb := range s.servers.direct {
		kept, err := rdb.Exists(context.Background(), s.name).Result()
		if err != nil {
			t.Fatal(err)
		}
		n += int(kept)
	}
	return n
}
