package lock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock/internal/inflight"
)

// slowMasters are masters behind proxies, and a client of the lock on them.
func slowMasters(t *testing.T, o Options) (direct []*redis.Client, proxies []*proxy, c *Client) {
	t.Helper()
	var rdbs []redis.UniversalClient
	for range 3 {
		s := startRedis(t)
		p := startProxy(t, s.Addr)
		direct, proxies = append(direct, s.Dial(t)), append(proxies, p)
		rdbs = append(rdbs, dialRedis(t, p.Addr))
	}
	release(t, acquire(t, newQuorumClient(t, rdbs, Options{}).Mutex("warm")))
	return direct, proxies, newQuorumClient(t, rdbs, o)
}

// Masters that are slower than the lease: each has granted it, and it has expired when a
// majority has replied. It is not granted, and nothing is left.
// Regression: redisson#624, redsync#72, Redisson's RedLock (no check of the elapsed time)
// Regression: node-redlock (returns an expired lock), pottery (extends without checking the time)
func TestSlowMajorityGrantsNothing(t *testing.T) {
	t.Parallel()
	direct, proxies, c := slowMasters(t, Options{NodeTimeout: replyTimeout})
	for _, p := range proxies {
		p.Delay(250 * time.Millisecond)
	}
	o := []Option{WithLease(200 * time.Millisecond)}
	if _, err := c.Mutex("slow").TryAcquire(context.Background(), o...); err == nil {
		t.Error("granted after its lease")
	}
	for i, rdb := range direct {
		eventually(t, testTimeout, "the claim is withdrawn everywhere", func() bool {
			return rdb.Exists(context.Background(), "slow").Val() == 0
		})
		t.Logf("master %d keeps nothing", i+1)
	}
}

// A claim fails, and the reply of one master to it is lost: its key is removed all the
// same, and not left to its lease.
// Regression: redisson#1606, redsync (a late SETNX after the release)
func TestFailedClaimIsWithdrawnWithoutReply(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	direct, proxies, c := slowMasters(t, Options{NodeTimeout: 300 * time.Millisecond})
	for _, rdb := range direct[:2] { // another owner has a majority
		rdb.HSet(ctx, "split", "owner", "another", "count", 1, "token", 0, "h:x", 1)
		rdb.PExpire(ctx, "split", time.Minute)
	}
	proxies[2].lose(1)
	_, err := c.Mutex("split").TryAcquire(ctx, WithLease(time.Minute))
	if err == nil {
		t.Fatal("granted, and another owner has a majority")
	}
	within(t, testTimeout, "the reply that is lost", proxies[2].Dropped)
	eventually(t, testTimeout, "the third master keeps nothing", func() bool {
		return direct[2].Exists(ctx, "split").Val() == 0
	})
	for i, rdb := range direct[:2] {
		if owner := rdb.HGet(ctx, "split", "owner").Val(); owner != "another" {
			t.Errorf("master %d: the other owner's hold is now %q's", i+1, owner)
		}
	}
}

// An owner enters its lock again while a master of its majority does not reply, and another owner's claim is left on
// the rest. No other owner can have the lock, and the error does not say so.
func TestOwnLockIsNotRefusedAsAnothers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m := startMasters(t, 5, Options{})
	for _, rdb := range m.direct[:2] {
		rdb.HSet(ctx, "own", "owner", "another", "count", 1, "token", 0, "h:x", 1)
		rdb.PExpire(ctx, "own", time.Minute)
	}
	h := acquire(t, m.client.Mutex("own"), WithLease(time.Minute))
	m.servers[4].Kill()
	_, err := m.client.Mutex("own").TryAcquire(h.Context(), WithReentry())
	if !errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrHeld) {
		t.Errorf("refused with %v, want ErrNoQuorum", err)
	}
}

// One of the majority restarts empty at its old address. The hold is restored there, so
// that the loss of one more does not lose the lock.
// Regression: redsync#186
func TestEmptyMasterIsClaimedAgain(t *testing.T) {
	t.Parallel()
	s := newHooks()
	m := startMasters(t, 3, s.options(watchedLease))
	h := acquire(t, m.client.Mutex("restored"))
	eventually(t, testTimeout, "all masters keep it", func() bool { return m.keep("restored") == 3 })
	m.servers[0].Kill()
	locktest.StartServerAt(t, m.servers[0].Addr)
	eventually(t, testTimeout, "the new master keeps it, too", func() bool { return m.keep("restored") == 3 })
	m.servers[1].Kill()
	for len(s.renewed) > 0 {
		<-s.renewed
	}
	within(t, testTimeout, "a renewal without the second", s.renewed)
	if err := context.Cause(h.Context()); err != nil {
		t.Errorf("the hold ended: %v", err)
	}
	release(t, h)
}

// A master that does not reply delays nothing: many holds are renewed in time, and few requests wait for it.
// Regression: redsync#140, Redisson's watchdog (a dead shard delays the others)
// Regression: redsync over go-redis (a deaf master delays the rest)
func TestSilentMasterDelaysNothing(t *testing.T) {
	t.Parallel()
	s := newHooks()
	o := s.options(watchedLease)
	o.NodeTimeout = time.Hour
	m := startMasters(t, 3, Options{})
	var rdbs []redis.UniversalClient
	for _, s := range m.servers { // only the lock itself ends the wait for a reply
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ReadTimeout: time.Hour})
		t.Cleanup(func() { _ = rdb.Close() })
		rdbs = append(rdbs, rdb)
	}
	c := newQuorumClient(t, rdbs, o)
	release(t, acquire(t, c.Mutex("warm")))
	m.servers[2].Stop(t)
	for range inflight.MaxBehind { // each leaves two requests behind
		release(t, acquire(t, c.Mutex("again")))
	}
	if n := c.quorum.inFlight.Waiting(2); n > inflight.MaxBehind {
		t.Errorf("%d requests wait for the master that does not reply", n)
	}
	var holds []*Hold
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		holds = append(holds, acquire(t, c.Mutex(name)))
	}
	<-time.After(2 * o.Lease) // that they last can be seen only after some time
	for _, h := range holds {
		if err := context.Cause(h.Context()); err != nil {
			t.Errorf("hold %s ended: %v", h.Name(), err)
		}
		release(t, h)
	}
}

// An even number of masters can split the vote forever; fewer than three are no quorum.
// Regression: node-redlock (even numbers of masters hang)
func TestEvenNumbersAreRefused(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 4} {
		if c, err := NewQuorum(Options{}, make([]redis.UniversalClient, n)...); err == nil {
			t.Errorf("%d masters were accepted", n)
			closeClient(t, c)
		}
	}
}

// The replies of all masters to an acquire and to a release are lost: the hold counts
// once.
// Regression: redisson#7367, redisson#4871
func TestQuorumRepliesLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	direct, proxies, c := slowMasters(t, Options{NodeTimeout: 300 * time.Millisecond})
	lose := func() {
		for _, p := range proxies {
			p.lose(1)
		}
	}
	lost := func(n int) {
		t.Helper()
		for i, p := range proxies {
			eventually(t, testTimeout, fmt.Sprintf("proxy %d has lost %d", i+1, n), func() bool { return len(p.Dropped) == n })
		}
	}
	wait, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	lose()
	h, err := c.Mutex("q").Acquire(wait)
	if err != nil {
		t.Fatal(err)
	}
	if h.Count() != 1 {
		t.Errorf("count %d, want 1", h.Count())
	}
	lost(1) // the last reply of the three may be late
	lose()
	if err := h.Release(ctx); err != nil && !errors.Is(err, ErrUnknown) {
		t.Errorf("release: %v", err)
	}
	for _, rdb := range direct {
		eventually(t, testTimeout, "no master keeps it", func() bool { return rdb.Exists(ctx, "q").Val() == 0 })
	}
	lost(2)
}

// A majority says that the owner has the lock: the error is that, and not that too few masters replied.
func TestQuorumOwnerHasItAlready(t *testing.T) {
	t.Parallel()
	_, _, c := slowMasters(t, Options{})
	mine := []Option{WithOwner("x"), WithLease(time.Minute)}
	h := acquire(t, c.Mutex("once"), mine...)
	_, err := c.Mutex("once").TryAcquire(t.Context(), mine...)
	if !errors.Is(err, ErrReentered) || errors.Is(err, ErrNoQuorum) {
		t.Errorf("a second acquire of the owner: %v", err)
	}
	release(t, h)
}

// A claim whose withdrawal did not reach a majority is no hold of its owner: another try by the owner ends with
// ErrHeld or an unknown outcome, not with ErrReentered.
func TestUnconfirmedWithdrawalIsNoHold(t *testing.T) {
	t.Parallel()
	direct, proxies, c := slowMasters(t, Options{NodeTimeout: 300 * time.Millisecond})
	mine := []Option{WithOwner("x"), WithLease(time.Minute)}
	release(t, acquire(t, c.Mutex("q"), mine...))
	scripts := c.quorum.nodes[0].scripts
	first, last := scripts.acquire.Name.(string), scripts.release.Name.(string)
	for i, p := range proxies[:2] {
		eventually(t, testTimeout, "a master knows both scripts", func() bool {
			known := direct[i].ScriptExists(t.Context(), first, last).Val()
			return len(known) == 2 && known[0] && known[1]
		})
		p.DropReplies(1, first)
		p.DropRequests(last)
	}
	for range 2 {
		_, err := c.Mutex("q").TryAcquire(t.Context(), mine...)
		if !errors.Is(err, ErrHeld) && !errors.Is(err, ErrUnknown) || errors.Is(err, ErrReentered) {
			t.Errorf("while a majority may have the claim: %v", err)
		}
	}
}

// A release has reached a majority but not the third master, which keeps the old hold for
// a while. The next hold of the owner counts as its only one all the same, although one of
// the majority that grants it counts two.
func TestQuorumReleaseThatOneMasterDidNotHear(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	direct, proxies, c := slowMasters(t, Options{NodeTimeout: 2 * time.Second})
	mine := []Option{WithOwner("x"), WithReentry(), WithLease(time.Minute)}
	old := acquire(t, c.Mutex("again"), mine...)
	id := "h:" + old.claim.id
	eventually(t, testTimeout, "all masters keep it", func() bool {
		kept := 0
		for _, rdb := range direct {
			if rdb.HExists(ctx, "again", id).Val() {
				kept++
			}
		}
		return kept == len(direct)
	})
	proxies[2].DropRequests(old.claim.id)
	release(t, old)
	proxies[0].hang() // so that the reply of the third is needed
	h := acquire(t, c.Mutex("again"), mine...)
	if !direct[2].HExists(ctx, "again", id).Val() || !direct[2].HExists(ctx, "again", "h:"+h.claim.id).Val() {
		t.Fatal("the third master does not keep both: nothing was tested")
	}
	if h.Count() != 1 {
		t.Errorf("count %d, want 1: the old hold was released", h.Count())
	}
	inner := acquire(t, c.Mutex("again"), mine...)
	if inner.Count() != 2 {
		t.Errorf("count of the inner hold %d, want 2", inner.Count())
	}
	release(t, inner)
	if inner.Count() != 1 {
		t.Errorf("%d left after the release of the inner hold, want 1", inner.Count())
	}
	release(t, h)
	if h.Count() != 0 {
		t.Errorf("%d left after the last release, want 0", h.Count())
	}
}
