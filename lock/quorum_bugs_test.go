package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// farMasters are masters behind proxies, and a client of the lock on them.
func farMasters(t *testing.T, o Options) (direct []*redis.Client, proxies []*proxy, c *Client) {
	t.Helper()
	var rdbs []redis.UniversalClient
	for range 3 {
		s := startRedis(t)
		p := startProxy(t, s.addr)
		direct, proxies = append(direct, s.dial(t)), append(proxies, p)
		rdbs = append(rdbs, dialRedis(t, p.addr))
	}
	c = newQuorumClient(t, rdbs, o)
	release(t, acquire(t, c.Mutex("warm"), AcquireOptions{}))
	return direct, proxies, c
}

// Masters that are slower than the lease: each has granted it, and it is over
// by the time a majority has said so. It is not granted, and nothing stays.
func TestB30B53S04S30S33SlowMajorityGrantsNothing(t *testing.T) {
	direct, proxies, c := farMasters(t, Options{NodeTimeout: time.Second})
	for _, p := range proxies {
		p.delay.Store(int64(250 * time.Millisecond))
	}
	o := AcquireOptions{Lease: 200 * time.Millisecond}
	if _, err := c.Mutex("slow").TryAcquire(context.Background(), o); err == nil {
		t.Error("granted after its lease")
	}
	for i, rdb := range direct {
		eventually(t, 5*time.Second, "the claim is withdrawn everywhere", func() bool {
			return rdb.Exists(context.Background(), "slow").Val() == 0
		})
		t.Logf("master %d keeps nothing", i+1)
	}
}

// A claim that fails, and the answer of one master to it is lost: its key is
// taken away all the same, and not left to its lease.
func TestB32S24FailedClaimIsWithdrawnWhereNoAnswerCame(t *testing.T) {
	ctx := context.Background()
	direct, proxies, c := farMasters(t, Options{NodeTimeout: 300 * time.Millisecond})
	for _, rdb := range direct[:2] { // another owner has a majority
		rdb.HSet(ctx, "split", "owner", "another", "count", 1, "token", 0, "h:x", 1)
		rdb.PExpire(ctx, "split", time.Minute)
	}
	proxies[2].loseNext.Store(1)
	_, err := c.Mutex("split").TryAcquire(ctx, AcquireOptions{Lease: time.Minute})
	if err == nil || len(proxies[2].lost) == 0 {
		t.Fatalf("error %v after %d lost answers", err, len(proxies[2].lost))
	}
	eventually(t, 5*time.Second, "the third master keeps nothing", func() bool {
		return direct[2].Exists(ctx, "split").Val() == 0
	})
	for i, rdb := range direct[:2] {
		if owner := rdb.HGet(ctx, "split", "owner").Val(); owner != "another" {
			t.Errorf("master %d: the other owner's hold is now %q's", i+1, owner)
		}
	}
}

// One of the majority restarts empty at its old address. The hold is put back
// there, so that losing one more does not lose the lock.
func TestB54EmptyMasterIsClaimedAgain(t *testing.T) {
	s := newTold()
	m := startMasters(t, 3, s.options(time.Second))
	h := acquire(t, m.client.Mutex("mend"), AcquireOptions{})
	eventually(t, 5*time.Second, "all masters keep it", func() bool { return m.keep("mend") == 3 })
	m.servers[0].kill()
	startRedisAt(t, m.servers[0].addr)
	eventually(t, 10*time.Second, "the new master keeps it, too", func() bool { return m.keep("mend") == 3 })
	m.servers[1].kill()
	within(t, 10*time.Second, "a renewal without the second", s.renewed)
	if err := context.Cause(h.Context()); err != nil {
		t.Errorf("the hold ended: %v", err)
	}
	release(t, h)
}

// A master that does not answer: nobody waits for it, and the renewal of many
// holds goes on in time.
func TestB55S12S25DeafMasterDelaysNothing(t *testing.T) {
	s := newTold()
	o := s.options(1200 * time.Millisecond)
	o.NodeTimeout = time.Second
	m := startMasters(t, 3, o)
	release(t, acquire(t, m.client.Mutex("warm"), AcquireOptions{}))
	m.servers[2].cmd.Process.Signal(stop)
	defer m.servers[2].cmd.Process.Signal(cont)
	var holds []*Hold
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		begun := time.Now()
		holds = append(holds, acquire(t, m.client.Mutex(name), AcquireOptions{}))
		if took := time.Since(begun); took > o.NodeTimeout/2 {
			t.Errorf("an acquire took %v, with a majority at hand", took)
		}
	}
	<-time.After(2 * o.Lease)
	for _, h := range holds {
		if err := context.Cause(h.Context()); err != nil {
			t.Errorf("hold %s ended: %v", h.Name(), err)
		}
		begun := time.Now()
		release(t, h)
		if took := time.Since(begun); took > o.NodeTimeout/2 {
			t.Errorf("a release took %v, with a majority at hand", took)
		}
	}
}

// An even number of masters can split the vote for ever; fewer than three are none.
func TestS29EvenNumbersAreRefused(t *testing.T) {
	for _, n := range []int{0, 1, 2, 4} {
		if c, err := NewQuorum(make([]redis.UniversalClient, n), Options{}); err == nil {
			t.Errorf("%d masters were accepted", n)
			closeClient(t, c)
		}
	}
}

// The answers of all masters to an acquire and to a release are lost: counted once.
func TestB01B05QuorumAnswersLost(t *testing.T) {
	ctx := context.Background()
	direct, proxies, c := farMasters(t, Options{NodeTimeout: 300 * time.Millisecond})
	lose := func() {
		for _, p := range proxies {
			p.loseNext.Store(1)
		}
	}
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	lose()
	h, err := c.Mutex("q").Acquire(wait, AcquireOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if h.Count() != 1 {
		t.Errorf("count %d, want 1", h.Count())
	}
	lose()
	if err := h.Release(ctx); err != nil && !errors.Is(err, ErrUnknown) {
		t.Errorf("release: %v", err)
	}
	for _, rdb := range direct {
		eventually(t, 5*time.Second, "no master keeps it", func() bool { return rdb.Exists(ctx, "q").Val() == 0 })
	}
	for i, p := range proxies {
		if len(p.lost) != 2 {
			t.Errorf("proxy %d lost %d answers, want 2", i+1, len(p.lost))
		}
	}
}
