package locktest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// timeout is for actions that a correct lock does sooner or later, on a busy machine.
const timeout = 30 * time.Second

// prompt is for actions that a correct lock does at once, on a busy machine.
const prompt = 10 * time.Second

// long is a lease that does not expire within a test.
const long = time.Minute

// longLease is a lease that does not expire within a test, if the lock has leases.
func (s *fixture) longLease() AcquireOptions {
	if s.spec.Lease == 0 {
		return AcquireOptions{}
	}
	return AcquireOptions{Lease: long}
}

func (s *fixture) acquire(t *testing.T, l Locker, o AcquireOptions) Hold {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel) // the context of the hold may be a child of it
	limit := time.AfterFunc(timeout, cancel)
	defer limit.Stop()
	h, err := l.Acquire(ctx, s.name, o)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return h
}

func (s *fixture) release(t *testing.T, h Hold) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Fatalf("release: %v", err)
	}
}

// mustBeHeld checks that l cannot acquire the lock, and learns it at once.
func (s *fixture) mustBeHeld(t *testing.T, l Locker) {
	t.Helper()
	start := time.Now()
	h, err := l.TryAcquire(context.Background(), s.name, s.longLease())
	if err == nil {
		_ = h.Release(context.Background())
		t.Fatal("the lock was granted while it is held")
	}
	if !errors.Is(err, s.spec.ErrHeld) {
		t.Errorf("try: %v, want %v", err, s.spec.ErrHeld)
	}
	if took := time.Since(start); took > prompt {
		t.Errorf("a try took %v", took)
	}
}

// awaitReleased waits until the lock is free at every master. A release on several masters returns when a majority has
// confirmed it; the others may keep the lock or a refused claim for a little longer.
func (s *fixture) awaitReleased(t *testing.T) {
	t.Helper()
	if s.spec.Topology == Quorum {
		Eventually(t, timeout, "no master keeps the lock", func() bool { return s.holders(t) == 0 })
	}
}

// mustBeFree checks that l can acquire the lock at once.
func (s *fixture) mustBeFree(t *testing.T, l Locker) {
	t.Helper()
	s.awaitReleased(t)
	h, err := l.TryAcquire(context.Background(), s.name, s.longLease())
	if err != nil {
		t.Fatalf("the lock is not free: %v", err)
	}
	s.release(t, h)
}

// outcome is the result of an acquire in the background.
type outcome struct {
	hold Hold
	err  error
}

// acquireAsync calls Acquire in the background.
func (s *fixture) acquireAsync(ctx context.Context, l Locker, o AcquireOptions) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		h, err := l.Acquire(ctx, s.name, o)
		out <- outcome{h, err}
	}()
	return out
}

// await receives the result from ch within limit.
func await(t *testing.T, limit time.Duration, ch <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-ch:
		return o
	case <-time.After(limit):
		t.Fatalf("acquire did not return within %v", limit)
	}
	return outcome{}
}

// awaitGrant receives a hold from ch within limit.
func awaitGrant(t *testing.T, limit time.Duration, ch <-chan outcome) Hold {
	t.Helper()
	o := await(t, limit, ch)
	if o.err != nil {
		t.Fatalf("a waiter failed: %v", o.err)
	}
	return o.hold
}

// handOver releases h, which a waiter on l is granted, and releases that too.
func (s *fixture) handOver(t *testing.T, h Hold, l Locker) {
	t.Helper()
	next := s.acquireAsync(context.Background(), l, s.longLease())
	s.awaitWaiting(t)
	s.release(t, h)
	s.release(t, awaitGrant(t, s.spec.wakeWithin(), next))
}

// awaitWaiting gives an acquire time to fail its first attempt and wait: until the servers have seen no request for ten
// samples, or for half a second, for a lock that polls. If it returns too early, the test is easier but still valid.
func (s *fixture) awaitWaiting(t *testing.T) {
	t.Helper()
	quiet, last, start := 0, int64(-1), time.Now()
	Eventually(t, timeout, "the acquire has sent a request", func() bool {
		now := s.requestCount(t)
		if quiet++; now != last {
			quiet = 0
		}
		last = now
		return now > 0 && (quiet >= 10 || time.Since(start) > 500*time.Millisecond)
	})
}

// sumOfInfo adds up a counter that a reply of each master, to INFO or CLUSTER INFO, has in a line of its own.
func (s *fixture) sumOfInfo(t *testing.T, counter string, read func(*redis.Client) *redis.StringCmd) (sum int) {
	t.Helper()
	for _, rdb := range s.servers.direct {
		info, err := read(rdb).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(info, "\r\n") {
			if n, found := strings.CutPrefix(line, counter+":"); found {
				count, _ := strconv.Atoi(n)
				sum += count
			}
		}
	}
	return sum
}

// requestCount is how many commands that locks use the first master, or all masters of a cluster, have executed.
func (s *fixture) requestCount(t *testing.T) int64 {
	t.Helper()
	if s.servers.other != nil {
		return s.servers.other.Requests()
	}
	if s.spec.Topology != Cluster {
		return requestsAt(t, s.servers.direct[0])
	}
	var sum int64
	for _, rdb := range s.servers.direct {
		sum += requestsAt(t, rdb)
	}
	return sum
}

func requestsAt(t *testing.T, rdb *redis.Client) int64 {
	t.Helper()
	return Calls(t, rdb, "eval", "evalsha", "set", "setnx", "subscribe", "ssubscribe")
}

// Calls is how often the server of rdb has executed these commands, in scripts too.
func Calls(t testing.TB, rdb *redis.Client, commands ...string) int64 {
	t.Helper()
	info, err := rdb.InfoMap(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, command := range commands {
		stats := info["Commandstats"]["cmdstat_"+command] // calls=7,usec=…
		count, _, _ := strings.Cut(strings.TrimPrefix(stats, "calls="), ",")
		n, _ := strconv.ParseInt(count, 10, 64)
		sum += n
	}
	return sum
}
