package lock

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// replica is a server that replicates through a proxy of its own.
type replica struct {
	*server
	link *proxy
}

// hold holds back all that the master sends from now on; the master counts the replica as
// connected for a long time.
func (r replica) hold() { r.link.Delay(time.Hour) }

// startReplicas starts a master and n replicas of it that are in sync.
func startReplicas(t *testing.T, n int) (master *server, copies []replica) {
	t.Helper()
	master = startRedis(t, "--repl-diskless-sync-delay", "0", "--repl-timeout", "60")
	for range n {
		link := startProxy(t, master.Addr)
		host, port, _ := net.SplitHostPort(link.Addr)
		s := replica{locktest.StartServerAt(t, freeAddr(t), "--replicaof", host+" "+port), link}
		copies = append(copies, s)
		eventually(t, testTimeout, "the replica is in step", func() bool { return replicaReady(s.Dial(t)) })
	}
	// A replica reports its link as up before its master counts it, at its first ACK.
	direct := master.Dial(t)
	eventually(t, testTimeout, "the master counts its replicas", func() bool {
		role, err := direct.Do(context.Background(), "ROLE").Slice()
		if err != nil {
			return false
		}
		counted, _ := role[len(role)-1].([]any)
		return len(counted) == n
	})
	return master, copies
}

// promote makes a replica a master, as a failover does.
func promote(t *testing.T, s replica) *redis.Client {
	t.Helper()
	rdb := s.Dial(t)
	if err := rdb.ReplicaOf(context.Background(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	return rdb
}

// patiently and briefly are timeouts for replicas that reply, and for silent ones.
const (
	patiently = testTimeout
	briefly   = 150 * time.Millisecond
)

func copied(t *testing.T, s *server, need int, limit time.Duration) *Client {
	return newTestClient(t, s.Dial(t), Options{Replicas: need, ReplicaTimeout: limit})
}

// Too few replicas reply: the grant is taken back, the hold count does not grow with each
// try, and nothing is left that only its owner could remove (also redisson#4621; its
// documentation says "the acquisition fails").
// Regression: redisson#4822, redisson#4706
func TestGrantWithoutReplicasIsTakenBack(t *testing.T) {
	t.Parallel()
	master, copies := startReplicas(t, 1)
	direct := master.Dial(t)
	for _, need := range []int{1, AllReplicas, 2} {
		c := copied(t, master, need, briefly)
		if need < 2 {
			h := acquire(t, copied(t, master, need, patiently).Mutex("acked"))
			if copies[0].Dial(t).Exists(context.Background(), "acked").Val() != 1 {
				t.Errorf("need %d: granted, and the replica has not got it", need)
			}
			release(t, h)
		}
		copies[0].Stop(t)
		for range 3 {
			_, err := c.Mutex("short").TryAcquire(context.Background(), WithOwner("same"), WithReentry())
			if !errors.Is(err, ErrTooFewReplicas) || !Definite(err) {
				t.Errorf("need %d: error %v, want a definite ErrTooFewReplicas", need, err)
			}
			mustExist(t, direct, "short", false)
		}
		copies[0].Continue()
		c2 := newTestClient(t, master.Dial(t), Options{})
		release(t, acquire(t, c2.Mutex("short"))) // by another owner
	}
}

// One of two replicas has the grant, and the other is promoted: if one is enough, the lock
// is granted twice; if all are needed, it is not granted at all. That is the limit of
// WAIT, so both are shown.
// Regression: redisson#5256
func TestOneReplicaOfTwoIsNotEnough(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		need  int
		twice bool
	}{{1, true}, {AllReplicas, false}} {
		master, copies := startReplicas(t, 2)
		copies[1].hold()
		limit := briefly
		if tt.twice {
			limit = patiently
		}
		_, err := copied(t, master, tt.need, limit).Mutex("split").TryAcquire(context.Background())
		if granted := err == nil; granted != tt.twice {
			t.Errorf("need %d: first grant: %v", tt.need, err)
		}
		master.Kill()
		next := newTestClient(t, promote(t, copies[1]), Options{})
		if _, err := next.Mutex("split").TryAcquire(context.Background()); err != nil {
			t.Errorf("need %d: the promoted replica knows of a lock: %v", tt.need, err)
		}
	}
}

// WAIT, and not WAITAOF: a server that syncs nothing to disk acknowledges all the same.
// Regression: redisson#6920
func TestNoSyncToDiskIsNoReasonToRefuse(t *testing.T) {
	t.Parallel()
	master, _ := startReplicas(t, 1)
	if err := master.Dial(t).ConfigSet(context.Background(), "appendfsync", "no").Err(); err != nil {
		t.Fatal(err)
	}
	c := newTestClient(t, master.Dial(t), Options{Replicas: AllReplicas, ReplicaTimeout: patiently})
	for range 20 {
		release(t, acquire(t, c.Mutex("fsync")))
	}
}

// Every kind takes back a grant that too few replicas have, with tokens or without
// (RedissonFencedLock has no undo on that path).
// Regression: Redisson's fenced lock (not undone without replicas)
func TestTokenPathIsUndoneToo(t *testing.T) {
	t.Parallel()
	master, copies := startReplicas(t, 1)
	c := copied(t, master, 1, briefly)
	copies[0].Stop(t)
	ctx := context.Background()
	several, err := c.Multi("a", "b")
	if err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"mutex":  func() error { _, err := c.Mutex("m").Acquire(ctx); return err },
		"fenced": func() error { _, err := c.FencedMutex("n").Acquire(ctx); return err },
		"fair":   func() error { _, err := c.FairMutex("f").TryAcquire(ctx); return err },
		"writer": func() error { _, err := c.RW("w").Write().TryAcquire(ctx); return err },
		"multi":  func() error { _, err := several.TryAcquire(ctx); return err },
	} {
		if err := try(); !errors.Is(err, ErrTooFewReplicas) || !Definite(err) {
			t.Errorf("%s: error %v, want a definite ErrTooFewReplicas", name, err)
		}
	}
	for _, name := range []string{"m", "n", "f", "w", "a", "b"} {
		mustExist(t, master.Dial(t), name, false)
	}
}

// Permits that too few replicas have are released at once. A count cannot be taken back:
// it is retried until replicas have it.
// Regression: redisson#4706
func TestCountedKindsWaitForReplicas(t *testing.T) {
	t.Parallel()
	master, copies := startReplicas(t, 1)
	direct, ctx := master.Dial(t), context.Background()
	sure := copied(t, master, 1, patiently)
	for kind, build := range builders() {
		t.Run(kind, func(t *testing.T) {
			build(sure, direct, kind).setUp(t, 2)
			if copies[0].Dial(t).HGet(ctx, kind, "total").Val() != "2" {
				t.Error("set up, and the replica has not got it")
			}
			copies[0].Stop(t)
			s := build(copied(t, master, 1, briefly), direct, kind)
			if _, err := s.take(ctx, 2); !errors.Is(err, ErrTooFewReplicas) || !Definite(err) {
				t.Errorf("error %v, want a definite ErrTooFewReplicas", err)
			}
			build(newTestClient(t, master.Dial(t), Options{}), direct, kind).want(t, 2, 2)
		})
	}
	gen := arm(t, sure.Latch("latch"), 2)
	copies[0].Stop(t)
	c := newTestClient(t, master.Dial(t), Options{Replicas: 1, ReplicaTimeout: briefly, Timeout: waitTimeout})
	o := CountDownOptions{Participant: "me", Generation: gen}
	_, err := c.Latch("latch").CountDown(ctx, o)
	if !errors.Is(err, ErrTooFewReplicas) || !errors.Is(err, ErrUnknown) {
		t.Errorf("count: %v, want ErrTooFewReplicas and ErrUnknown", err)
	}
	copies[0].Continue()
	if got := count(t, sure.Latch("latch"), o); got.Count != 1 {
		t.Errorf("%d left after one participant has counted twice, want 1", got.Count)
	}
	if n := copies[0].Dial(t).HGet(ctx, "latch", "count").Val(); n != "1" {
		t.Errorf("the replica has a count of %q, want 1", n)
	}
}

// A replica that missed the last grants is promoted: the next token is still greater
// (Redisson's counter repeats; Kleppmann 2016).
// Regression: Redisson's fenced lock (tokens repeat after a failover)
func TestTokenDoesNotGoBackAtFailover(t *testing.T) {
	t.Parallel()
	master, copies := startReplicas(t, 1)
	old := newTestClient(t, master.Dial(t), Options{})
	release(t, acquire(t, old.FencedMutex("fence")))
	// Without the release, the promoted replica would keep the lock held for a whole lease.
	direct := copies[0].Dial(t)
	eventually(t, testTimeout, "the replica has the token and the release", func() bool {
		ctx := context.Background()
		token, err := direct.Exists(ctx, "{fence}:token").Result()
		if err != nil || token == 0 {
			return false
		}
		held, err := direct.Exists(ctx, "fence").Result()
		return err == nil && held == 0
	})
	copies[0].hold()
	var last int64
	for range 10 {
		h := acquire(t, old.FencedMutex("fence"))
		last = h.token
		release(t, h)
	}
	master.Kill()
	next := newTestClient(t, promote(t, copies[0]), Options{})
	if known, _ := direct.Get(context.Background(), "{fence}:token").Int64(); known >= last {
		t.Fatalf("the replica has token %d: the test tests nothing", known)
	}
	if h := acquire(t, next.FencedMutex("fence")); h.token <= last {
		t.Errorf("token %d after %d", h.token, last)
	}
}

// The clock of the server is behind the last token: the counter continues from the token.
func TestTokenWithClockBehind(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	const ahead = 4_000_000_000_000_000 // in the year 2096
	rdb.Set(context.Background(), "{late}:token", ahead, 0)
	for want := int64(ahead + 1); want < ahead+4; want++ {
		h := acquire(t, c.FencedMutex("late"))
		if h.token != want {
			t.Errorf("token %d, want %d", h.token, want)
		}
		release(t, h)
	}
	if ttl := rdb.PTTL(context.Background(), "{late}:token").Val(); ttl < 23*time.Hour {
		t.Errorf("the counter is forgotten in %v, want a day", ttl)
	}
}
