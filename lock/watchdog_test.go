package lock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hooks collects the calls of the hooks.
type hooks struct {
	renewed, lost chan *Hold
}

func newHooks() *hooks { return &hooks{make(chan *Hold, 1000), make(chan *Hold, 1000)} }

func (s *hooks) options(lease time.Duration) Options {
	return Options{
		Lease:     lease,
		OnRenewed: func(h *Hold) { s.renewed <- h },
		OnLost:    func(h *Hold) { s.lost <- h },
	}
}

func within[T any](t *testing.T, limit time.Duration, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(limit):
		t.Fatalf("not within %v: %s", limit, what)
	}
	panic("unreachable")
}

// TestErrAfterPause: the error of a hold whose deadline has passed says so before its timer runs, as after a pause of
// the process.
func TestErrAfterPause(t *testing.T) {
	t.Parallel()
	s := newHooks()
	c := newTestClient(t, startRedis(t).Dial(t), s.options(time.Minute))
	h := acquire(t, c.Mutex("paused"), WithLease(time.Hour))
	if err := h.Err(); err != nil {
		t.Errorf("error %v while the hold lasts", err)
	}
	h.mu.Lock()
	h.deadline = time.Now()
	h.mu.Unlock()
	if err := h.Err(); !errors.Is(err, ErrLost) || !errors.Is(context.Cause(h.Context()), ErrLost) || !isClosed(h.Done()) {
		t.Errorf("error %v, cause %v, want ErrLost", err, context.Cause(h.Context()))
	}
	within(t, testTimeout, "the call of OnLost", s.lost)
}

func TestWatchdogRenewsUntilReleased(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	s := newHooks()
	c := newTestClient(t, rdb, s.options(watchedLease))
	h := acquire(t, c.Mutex("dog"))
	first := h.Deadline()
	for range 4 { // for longer than the lease
		if got := within(t, testTimeout, "a renewal", s.renewed); got != h {
			t.Fatalf("renewed %v, want the hold", got)
		}
	}
	if h.Context().Err() != nil || !h.Deadline().After(first.Add(watchedLease)) {
		t.Errorf("context %v, deadline %v after the first, want it alive and later",
			h.Context().Err(), h.Deadline().Sub(first))
	}
	mustExist(t, rdb, "dog", true)
	release(t, h)
	for len(s.renewed) > 0 {
		<-s.renewed
	}
	// Another owner may hold it now: its lease must not be renewed.
	other := acquire(t, c.Mutex("dog"), WithLease(400*time.Millisecond))
	if got := within(t, testTimeout, "the end of an explicit lease", s.lost); got != other {
		t.Errorf("lost %v, want the second hold", got)
	}
	if len(s.renewed) != 0 {
		t.Errorf("%d renewals after the release", len(s.renewed))
	}
}

// More holds than fit in one request, one of which was overwritten by another key: the
// others are renewed all the same.
func TestWatchdogManyHolds(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	s := newHooks()
	c := newTestClient(t, rdb, s.options(watchedLease))
	holds := make(map[*Hold]bool)
	for i := range 250 {
		holds[acquire(t, c.Mutex(fmt.Sprintf("many-%d", i)))] = true
	}
	rdb.Set(context.Background(), "many-7", "foreign", 0)
	if got := within(t, testTimeout, "the loss of the overwritten lock", s.lost); got.Name() != "many-7" {
		t.Errorf("lost %s, want many-7", got.Name())
	}
	renewed := make(map[*Hold]bool)
	for len(renewed) < 249 {
		select {
		case h := <-s.renewed:
			renewed[h] = true
		case h := <-s.lost:
			t.Fatalf("lost %s, too", h.Name())
		case <-time.After(testTimeout):
			t.Fatalf("%d holds were renewed, want 249", len(renewed))
		}
	}
	if got := rdb.Get(context.Background(), "many-7").Val(); got != "foreign" {
		t.Errorf("the foreign key is %q now", got)
	}
	for h := range holds {
		_ = h.Release(context.Background())
	}
}

func TestLossIsReported(t *testing.T) {
	t.Parallel()
	srv := startRedis(t)
	rdb := srv.Dial(t)
	s := newHooks()
	c := newTestClient(t, rdb, s.options(300*time.Millisecond))
	h := acquire(t, c.Mutex("gone"))
	rdb.Del(context.Background(), "gone")
	if got := within(t, testTimeout, "loss of a deleted lock", s.lost); got != h {
		t.Fatalf("lost %v, want the hold", got)
	}
	if got := context.Cause(h.Context()); !errors.Is(got, ErrLost) {
		t.Errorf("cause %v, want ErrLost", got)
	}

	// The server is stopped: no reply says that the lock is lost, so the clock ends it, before
	// another owner could have it.
	h = acquire(t, c.Mutex("still"))
	srv.Stop(t)
	within(t, testTimeout, "loss by the clock", s.lost)
	if early := time.Until(h.Deadline()); early > 0 {
		t.Errorf("lost %v before the deadline", early)
	}
}

// Lost replies of the server do not lose the lock.
func TestRenewalSurvivesLostReplies(t *testing.T) {
	t.Parallel()
	srv := startRedis(t)
	p := startProxy(t, srv.Addr)
	s := newHooks()
	c := newTestClient(t, dialRedis(t, p.Addr), s.options(watchedLease))
	h := acquire(t, c.Mutex("bumpy"))
	p.lose(2)
	for range 3 {
		within(t, testTimeout, "a renewal", s.renewed)
	}
	if len(p.Dropped) != 2 || len(s.lost) != 0 {
		t.Errorf("%d replies lost, want 2; %d losses reported, want none", len(p.Dropped), len(s.lost))
	}
	release(t, h)
}

// Close ends everything: holds, waiters, renewals, the subscription, goroutines.
func TestClose(t *testing.T) {
	srv := startRedis(t)
	rdb := srv.Dial(t)
	s := newHooks()
	c, err := New(rdb, s.options(watchedLease)) // the holder keeps the lock until the end
	if err != nil {
		t.Fatal(err)
	}
	h := acquire(t, c.Mutex("close"))
	explicit := acquire(t, c.Mutex("explicit"), WithLease(time.Hour))
	failed := make(chan error, 1)
	go func() {
		_, err := c.Mutex("close").Acquire(context.Background())
		failed <- err
	}()
	waitSubscribed(t, c, "{close}:free")
	closeClient(t, c)
	if err := within(t, testTimeout, "the waiter's end", failed); !errors.Is(err, ErrClosed) {
		t.Errorf("waiter: %v, want ErrClosed", err)
	}
	for _, h := range []*Hold{h, explicit} {
		if got := context.Cause(h.Context()); !errors.Is(got, ErrClosed) {
			t.Errorf("cause %v, want ErrClosed", got)
		}
	}
	if _, err := c.Mutex("more").TryAcquire(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("acquire after close: %v, want ErrClosed", err)
	}
	eventually(t, testTimeout, "no goroutine is left behind", func() bool { return ours() == "" })
	eventually(t, testTimeout, "the lock runs out", func() bool {
		return rdb.Exists(context.Background(), "close").Val() == 0
	})
	eventually(t, testTimeout, "no subscription is left behind", func() bool {
		list, err := rdb.ClientList(context.Background()).Result()
		return err == nil && !strings.Contains(list, "cmd=subscribe")
	})
	closeClient(t, c) // it may be called twice
}

// ours are the goroutines that run code of this package, except the tests' own.
func ours() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var out []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "lock.(*") && !strings.Contains(g, "testing.") {
			out = append(out, g)
		}
	}
	return strings.Join(out, "\n\n")
}

// The error of a Close that runs out of time names the requests in flight.
func TestCloseInTime(t *testing.T) {
	t.Parallel()
	_, p, c := behindProxy(t, Options{})
	p.hang()
	ctx, cancel := context.WithCancel(context.Background())
	go c.Mutex("hang").Acquire(ctx)
	<-p.Dropped
	cancel()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Close(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v, want Canceled", err)
	}
}

// A holder that is alive but stuck does not keep the lock for good if it was acquired with
// MaxHold: the hold is renewed for that long, and then lost with its lease.
func TestMaxHold(t *testing.T) {
	t.Parallel()
	type run struct {
		hooks    *hooks
		bound, h *Hold
	}
	runs := map[string]run{}
	for name, open := range map[string]func(o Options) *Client{
		"one master":    func(o Options) *Client { return newTestClient(t, startRedis(t).Dial(t), o) },
		"three masters": func(o Options) *Client { return startMasters(t, 3, o).client },
	} {
		hooks := newHooks()
		c := open(hooks.options(watchedLease))
		runs[name] = run{
			hooks,
			acquire(t, c.Mutex("stuck"), WithMaxHold(watchedLease)), acquire(t, c.Mutex("kept")),
		}
	}
	for name, s := range runs {
		if got := within(t, testTimeout, name+": the loss", s.hooks.lost); got != s.bound {
			t.Errorf("%s: lost %q, want the hold with MaxHold", name, got.Name())
		}
		if s.h.Context().Err() != nil {
			t.Errorf("%s: the hold without a bound has ended", name)
		}
		if early := time.Until(s.bound.Deadline()); early > 0 {
			t.Errorf("%s: lost %v before its deadline", name, early)
		}
		renewals := 0
		for len(s.hooks.renewed) > 0 {
			if got := <-s.hooks.renewed; got == s.bound {
				renewals++
			}
		}
		if renewals == 0 {
			t.Errorf("%s: it was never renewed", name)
		}
		release(t, s.h)
	}
}

// A hold whose grant took so long that its renewal is due already is renewed at once, also by a watchdog that was idle:
// a third of a lease later it may be over.
func TestLateGrantIsRenewedAtOnce(t *testing.T) {
	t.Parallel()
	renewed := make(chan *Hold, 1)
	c := newTestClient(t, startRedis(t).Dial(t), Options{Lease: time.Hour, OnRenewed: func(h *Hold) { renewed <- h }})
	h := acquire(t, c.Mutex("dog"))
	c.dog.remove(&h.leaseKeeper)
	c.dog = newWatchdog(c) // an idle one; the loop of the first ends with the client
	c.dog.add(&h.leaseKeeper, time.Now().Add(-30*time.Minute))
	within(t, testTimeout, "the renewal", renewed)
	release(t, h)
}
