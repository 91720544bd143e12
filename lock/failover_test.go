package lock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// movable are the kinds of lock that must survive the loss of their master, and the
// channels that wake their waiters.
func movable() map[string]struct {
	of      func(c *Client, name string) fencedTaker
	channel string
} {
	return map[string]struct {
		of      func(c *Client, name string) fencedTaker
		channel string
	}{
		"mutex": {func(c *Client, name string) fencedTaker { return c.FencedMutex(name) }, "free"},
		"fair":  {func(c *Client, name string) fencedTaker { return c.FairMutex(name) }, "grant"},
		"write": {func(c *Client, name string) fencedTaker { return c.RW(name).Write() }, "write"},
	}
}

// startSentinel starts a master, a replica that is in sync, and a Sentinel that knows
// both.
func startSentinel(t *testing.T) (master, replica *server, rdb *redis.Client) {
	t.Helper()
	master = startRedis(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica = startRedis(t, "--replicaof", host+" "+port, "--repl-diskless-sync-delay", "0")
	direct := replica.Dial(t)
	eventually(t, testTimeout, "the replica is in sync", func() bool { return replicaReady(direct) })
	addr := locktest.StartSentinel(t, master.Addr, "down-after-milliseconds m 500", "failover-timeout m 3000").Addr
	rdb = redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "m", SentinelAddrs: []string{addr}, ReadTimeout: replyTimeout, DialTimeout: replyTimeout,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: addr})
	defer sentinel.Close()
	eventually(t, testTimeout, "Sentinel knows the replica", func() bool {
		list, err := sentinel.Replicas(context.Background(), "m").Result()
		return err == nil && len(list) == 1 && list[0]["master-link-status"] == "ok"
	})
	return master, replica, rdb
}

// Behind Sentinel the master dies while each kind of lock is held and waited for. The
// waiters are granted the lock at the new master, without an error, when the lease of the
// old hold has expired; and tokens grow.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	master, replica, rdb := startSentinel(t)
	c := newTestClient(t, rdb, Options{})
	direct := replica.Dial(t)
	held, served := map[string]*Hold{}, map[string]<-chan *Hold{}
	for kind, tt := range movable() {
		held[kind] = acquire(t, tt.of(c, kind), WithLease(10*time.Second))
		served[kind] = acquireLater(context.Background(), t, tt.of(c, kind))
		waitSubscribed(t, c, tagged(kind, tt.channel))
		eventually(t, testTimeout, "the lock is on the replica", func() bool {
			return direct.Exists(context.Background(), kind).Val() == 1
		})
	}
	master.Kill()
	start := time.Now()
	for kind := range movable() {
		next := within(t, time.Minute, kind+" at the new master", served[kind])
		if next.token <= held[kind].token {
			t.Errorf("%s: token %d after %d", kind, next.token, held[kind].token)
		}
		if err := held[kind].Release(context.Background()); !errors.Is(err, ErrLost) {
			t.Errorf("%s: release of the old hold: %v, want ErrLost", kind, err)
		}
		release(t, next)
	}
	t.Logf("served %v after the master died", time.Since(start))
}

// In a cluster, a replica is promoted on demand (CLUSTER FAILOVER loses no write) while
// each kind of lock is held with a renewed lease and waited for: the hold continues, and
// its release wakes the waiter.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers, rdb := startCluster(t)
	host, port, _ := net.SplitHostPort(servers[0].Addr)
	spare := startRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
		"--cluster-config-file", "nodes-spare.conf", "--cluster-port", portOf(freeAddr(t)))
	s := spare.Dial(t)
	if err := s.Do(ctx, "CLUSTER", "MEET", host, port, busOf(t, servers[0])).Err(); err != nil {
		t.Fatal(err)
	}
	id := servers[0].Dial(t).Do(ctx, "CLUSTER", "MYID").Val()
	eventually(t, testTimeout, "the spare node is a replica", func() bool {
		return s.Do(ctx, "CLUSTER", "REPLICATE", id).Err() == nil
	})
	eventually(t, testTimeout, "the replica is in sync", func() bool { return replicaReady(s) })
	hooks := newHooks()
	o := hooks.options(30 * time.Second) // a failover takes long on a busy machine
	o.PollMax = 2 * testTimeout          // only a message serves a waiter in time
	c := newTestClient(t, rdb, o)
	held, served := map[string]*Hold{}, map[string]<-chan *Hold{}
	for kind, tt := range movable() {
		name := nameAt(kind, 0)
		held[kind] = acquire(t, tt.of(c, name))
		served[kind] = acquireLater(ctx, t, tt.of(c, name))
		waitSubscribed(t, c, tagged(name, tt.channel))
	}
	accepted := time.Time{}
	eventually(t, testTimeout, "the spare node is the master", func() bool {
		if time.Since(accepted) > 6*time.Second && s.Do(ctx, "CLUSTER", "FAILOVER").Err() == nil {
			accepted = time.Now() // a replica gives up a failover that takes longer than five seconds
		}
		role, err := s.Do(ctx, "ROLE").Slice()
		return err == nil && role[0] == "master"
	})
	for len(hooks.renewed) > 0 {
		<-hooks.renewed
	}
	renewed := map[*Hold]bool{}
	for len(renewed) < len(held) && len(hooks.lost) == 0 { // each at the new master
		renewed[within(t, testTimeout, "renewal of every hold", hooks.renewed)] = true
	}
	for kind, h := range held {
		if s.Exists(ctx, h.Name()).Val() != 1 {
			t.Errorf("%s: the new master does not have it", kind)
		}
		release(t, h)
		next := within(t, testTimeout, kind+" after the release", served[kind])
		if next.token <= h.token {
			t.Errorf("%s: token %d after %d", kind, next.token, h.token)
		}
		release(t, next)
	}
	if n := len(hooks.lost); n != 0 {
		t.Errorf("%d holds were lost", n)
	}
}

// nameAt is a name of a lock in the slots of the given third of the cluster.
func nameAt(kind string, third int) string {
	for i := 0; ; i++ {
		if name := fmt.Sprint(kind, "-", i); wire.SlotOf(name)/5462 == third {
			return name
		}
	}
}

// busOf is the cluster bus port of s.
func busOf(t *testing.T, s *server) string {
	t.Helper()
	for _, line := range strings.Split(s.Dial(t).ClusterNodes(context.Background()).Val(), "\n") {
		if strings.Contains(line, "myself") {
			bus := strings.Split(line, "@")[1]
			return strings.FieldsFunc(bus, func(r rune) bool { return r == ' ' || r == ',' })[0]
		}
	}
	t.Fatal("the node does not know itself")
	return ""
}
