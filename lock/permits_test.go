package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// leasedPair is a semaphore with leases, and a client of its server.
func leasedPair(t *testing.T, o Options, total int) (*PermitSemaphore, *tested, *redis.Client) {
	t.Helper()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, o)
	s := leasedSem(c, rdb, "pool")
	s.setUp(t, total)
	return c.PermitSemaphore("pool"), s, rdb
}

// The permits of a dead holder go to a waiter when their lease expires; permits without a lease when they are released
// by force (also redisson#4462, #2213).
// Regression: redisson#2045
func TestPermitsOfTheDeadComeBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	srv := startRedis(t)
	rdb := srv.Dial(t)
	for kind, build := range builders() {
		t.Run(kind, func(t *testing.T) {
			dead := newTestClient(t, srv.Dial(t), Options{Lease: watchedLease})
			s := build(newTestClient(t, srv.Dial(t), Options{PollMax: time.Hour}), rdb, kind)
			s.setUp(t, 2)
			p, err := build(dead, rdb, kind).take(ctx, 2)
			mustTake(t, p, err)
			served := s.queue(t, 2)
			closeClient(t, dead) // its watchdog ends; nothing is released
			if kind == "plain" {
				state, err := s.State(ctx)
				if err != nil || len(state.Holds) != 1 || state.Holds[0].Left >= 0 {
					t.Fatalf("%+v, %v: want the hold of the dead, without an end", state, err)
				}
				if n, err := s.force(ctx, state.Holds[0].ID); n != 2 || err != nil {
					t.Fatalf("force: %d, %v", n, err)
				}
			}
			mustGive(t, servedWithin(t, served[0]))
			s.want(t, 2, 2)
		})
	}
}

// The watchdog renews permits for longer than their lease.
func TestPermitsAreRenewed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s, _ := leasedPair(t, Options{Lease: watchedLease}, 2)
	p, err := s.take(ctx, 2)
	mustTake(t, p, err)
	first := p.Deadline()
	eventually(t, testTimeout, "it was renewed for longer than the lease", func() bool {
		return p.Deadline().Sub(first) > watchedLease
	})
	s.want(t, 2, 0)
	mustGive(t, p)
	s.want(t, 2, 2)
}

// Permits are renewed in batches, by a bounded number of goroutines, as locks are.
func TestPermitsAreRenewedInBatches(t *testing.T) {
	ctx := context.Background()
	const holds = 300
	renewals := make(chan *Permits, 10*holds)
	o := Options{Lease: watchedLease, OnPermitsRenewed: func(p *Permits) { renewals <- p }}
	sem, s, rdb := leasedPair(t, o, 2*holds)
	before := runtime.NumGoroutine()
	all := make([]*Permits, holds)
	for i := range all {
		p, err := sem.Acquire(ctx, 2)
		all[i] = mustTake(t, p, err)
	}
	if n := runtime.NumGoroutine() - before; n > 20 {
		t.Errorf("%d goroutines for %d holds", n, holds)
	}
	sent, renewed, received := locktest.Calls(t, rdb, "evalsha"), map[*Permits]bool{}, 0
	for ; len(renewed) < holds; received++ {
		renewed[within(t, testTimeout, "renewal of every hold", renewals)] = true
	}
	if n := locktest.Calls(t, rdb, "evalsha") - sent; n > int64(received)/10+10 {
		t.Errorf("%d requests for %d renewals, want batches", n, received)
	}
	s.want(t, 2*holds, 0)
	for _, p := range all {
		mustGive(t, p)
	}
	s.want(t, 2*holds, 2*holds)
}

// A lease expires under its holder, by its own clock and by the server's.
func TestPermitsRunOut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	sem, s, rdb := leasedPair(t, Options{}, 3)
	p, err := sem.Acquire(ctx, 2, WithLease(100*time.Millisecond))
	mustTake(t, p, err)
	<-p.Context().Done()
	if got := context.Cause(p.Context()); !errors.Is(got, ErrLost) {
		t.Errorf("cause %v, want ErrLost", got)
	}
	if err := p.Renew(ctx); !errors.Is(err, ErrLost) {
		t.Errorf("renew: %v, want ErrLost", err)
	}
	eventually(t, testTimeout, "the server takes them back", func() bool {
		state, err := s.State(ctx)
		return err == nil && state.Free == 3
	})
	if err := p.Release(ctx); !errors.Is(err, ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
	s.want(t, 3, 3)
	// Removed at the server only: the holder learns of it from its renewal.
	q, err := sem.Acquire(ctx, 2, WithLease(time.Hour))
	mustTake(t, q, err)
	rdb.ZAdd(ctx, "{pool}:permits", redis.Z{Score: 1, Member: q.IDs()[1]})
	if err := q.Renew(ctx); !errors.Is(err, ErrLost) || !errors.Is(context.Cause(q.Context()), ErrLost) {
		t.Errorf("renew: %v, want ErrLost", err)
	}
	s.want(t, 3, 2)
}

// A lease may be prolonged, and is never shortened.
func TestPermitsExtend(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	sem, s, _ := leasedPair(t, Options{}, 1)
	p, err := sem.Acquire(ctx, 1, WithLease(time.Minute))
	mustTake(t, p, err)
	for _, tt := range []struct{ ask, atLeast time.Duration }{
		{time.Hour, 59 * time.Minute},
		{5 * time.Second, 58 * time.Minute},
	} {
		if err := p.Extend(ctx, tt.ask); err != nil {
			t.Fatal(err)
		}
		state, err := s.State(ctx)
		if err != nil || len(state.Holds) != 1 || state.Holds[0].Left < tt.atLeast {
			t.Errorf("after %v: %+v, %v, want at least %v", tt.ask, state, err, tt.atLeast)
		}
		if left := time.Until(p.Deadline()); left < tt.atLeast {
			t.Errorf("after %v: valid for %v, want at least %v", tt.ask, left, tt.atLeast)
		}
	}
	if err := p.Extend(ctx, time.Microsecond); err == nil {
		t.Error("a lease of a microsecond was accepted")
	}
}

// A lease expires by the server's clock only: no client whose clock is fast can take back
// permits of others.
// Regression: Redisson's permits (clocks of clients)
func TestLeasesEndByTheServersClock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	sem, _, rdb := leasedPair(t, Options{}, 1)
	before := rdb.Time(ctx).Val()
	p, err := sem.Acquire(ctx, 1, WithLease(time.Minute))
	mustTake(t, p, err)
	after := rdb.Time(ctx).Val()
	score := rdb.ZScore(ctx, "{pool}:permits", p.IDs()[0]).Val()
	over := time.UnixMicro(int64(score * 1000))
	if over.Before(before.Add(time.Minute-time.Millisecond)) || over.After(after.Add(time.Minute+time.Millisecond)) {
		t.Errorf("over at %v, want between %v and %v, a minute later", over, before, after)
	}
	if err := p.Renew(ctx); err != nil {
		t.Fatal(err)
	}
	if again := rdb.ZScore(ctx, "{pool}:permits", p.IDs()[0]).Val(); again < score {
		t.Errorf("expires at %v after the renewal, and at %v before", again, score)
	}
}

// The hash alone is removed: permits that are held still count.
func TestPermitsSurviveTheirTotal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s, rdb := leasedPair(t, Options{}, 3)
	p, err := s.take(ctx, 2)
	mustTake(t, p, err)
	rdb.Del(ctx, "pool")
	s.setUp(t, 3)
	s.want(t, 3, 1)
	mustGive(t, p)
	s.want(t, 3, 3)
}

// Random operations: free and held permits are always the total, and no more are held than
// there are.
func TestPermitsAlwaysAddUp(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	sem, s, _ := leasedPair(t, Options{}, 6)
	r := rand.New(rand.NewPCG(1, 2))
	var held []*Permits
	backsOff := 0
	for range 400 {
		switch r.IntN(4) {
		case 0, 1:
			lease := []time.Duration{10 * time.Millisecond, time.Minute}[r.IntN(2)]
			p, err := sem.TryAcquire(ctx, 1+r.IntN(3), WithLease(lease))
			if err == nil {
				held = append(held, p)
			} else if !errors.Is(err, ErrNoPermits) && Definite(err) && !errors.Is(err, ErrPermits) {
				t.Logf("acquire: %v", err) // a lease of 10 ms may expire before the reply
			}
		case 2:
			if len(held) == 0 {
				continue
			}
			i := r.IntN(len(held))
			if err := held[i].Release(ctx); errors.Is(err, ErrLost) {
				backsOff++
			}
			held = append(held[:i], held[i+1:]...)
		case 3:
			if _, err := sem.AddPermits(ctx, []int{-1, 1}[r.IntN(2)]); err != nil && !errors.Is(err, ErrPermits) {
				t.Fatal(err)
			}
		}
		state, err := s.State(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if state.Free+len(state.Holds) != state.Total {
			t.Fatalf("total %d, free %d, out %d", state.Total, state.Free, len(state.Holds))
		}
	}
	if backsOff == 0 {
		t.Error("no lease ran out: the test tested less than it should")
	}
}
