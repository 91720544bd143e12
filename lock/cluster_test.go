package lock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// startCluster starts three masters that share the slots.
func startCluster(t *testing.T) ([]*server, *redis.ClusterClient) {
	t.Helper()
	ctx := context.Background()
	var servers []*server
	var addrs []string
	for i := range 3 {
		s := locktest.StartServerAt(t, freeAddr(t), "--cluster-enabled", "yes", "--cluster-node-timeout", "6000",
			"--cluster-config-file", fmt.Sprintf("nodes-%d.conf", i), "--cluster-port", portOf(freeAddr(t)))
		servers, addrs = append(servers, s), append(addrs, s.Addr)
	}
	for i, s := range servers {
		rdb := s.Dial(t)
		if err := rdb.ClusterAddSlotsRange(ctx, i*5462, min(i*5462+5461, 16383)).Err(); err != nil {
			t.Fatal(err)
		}
		// If two masters meet with the same epoch, one takes a new one, and might claim a slot that has just migrated.
		if err := rdb.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			t.Fatal(err)
		}
		host, p, _ := net.SplitHostPort(servers[0].Addr)
		if i > 0 {
			if err := rdb.Do(ctx, "CLUSTER", "MEET", host, p, busOf(t, servers[0])).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range servers {
		rdb := s.Dial(t)
		eventually(t, testTimeout, "the cluster is complete", func() bool {
			info := rdb.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3") &&
				strings.Contains(info, "cluster_current_epoch:3")
		})
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addrs, DialTimeout: replyTimeout, ReadTimeout: replyTimeout,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return servers, rdb
}

func portOf(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

func TestCluster(t *testing.T) {
	t.Parallel()
	servers, rdb := startCluster(t)
	t.Run("renewed-in-all-slots", func(t *testing.T) { clusterRenews(t, rdb) })
	t.Run("waiter-is-woken", func(t *testing.T) { clusterWakes(t, rdb) })
	t.Run("messages-stay-with-the-slot", func(t *testing.T) { clusterShards(t, rdb, servers) })
	t.Run("subscribed-after-a-pause", func(t *testing.T) { clusterShardsAfterPause(t, rdb, servers) })
	t.Run("forced-release-wakes", func(t *testing.T) { clusterForces(t, rdb) })
	t.Run("slot-moves-under-the-waiter", func(t *testing.T) { clusterWaiterMoves(t, rdb, servers) })
	t.Run("slot-moves-with-replicas", func(t *testing.T) { clusterMovesWithReplicas(t, rdb, servers) })
	t.Run("slot-moves-under-the-holder", func(t *testing.T) { clusterMoves(t, rdb, servers) })
	t.Run("replicas-none-connected", func(t *testing.T) {
		c := newTestClient(t, rdb, Options{Replicas: AllReplicas})
		if _, err := c.Mutex("alone").TryAcquire(context.Background()); !errors.Is(err, ErrTooFewReplicas) {
			t.Errorf("error %v, want ErrTooFewReplicas", err)
		}
		if n := rdb.Exists(context.Background(), "alone").Val(); n != 0 {
			t.Error("the grant was not taken back")
		}
	})
}

// Holds in many slots are renewed, each slot's in a request of their own.
func clusterRenews(t *testing.T, rdb *redis.ClusterClient) {
	s := newHooks()
	c := newTestClient(t, rdb, s.options(watchedLease))
	holds := make(map[*Hold]bool)
	for i := range 60 {
		holds[acquire(t, c.Mutex(fmt.Sprintf("spread-%d", i)))] = true
	}
	renewed := make(map[*Hold]bool)
	for len(renewed) < len(holds) && len(s.lost) == 0 {
		renewed[within(t, testTimeout, "renewal of every hold", s.renewed)] = true
	}
	for h := range holds {
		release(t, h)
	}
	if len(s.lost) != 0 {
		t.Errorf("%d holds were lost", len(s.lost))
	}
}

// A client whose first requests met servers that did not reply subscribes its waiters at the node of the slot like any.
func clusterShardsAfterPause(t *testing.T, rdb *redis.ClusterClient, servers []*server) {
	ctx, c := context.Background(), newTestClient(t, rdb, Options{PollMax: time.Hour})
	for _, s := range servers {
		if err := s.Dial(t).ClientPause(ctx, 1500*time.Millisecond).Err(); err != nil { // longer than a probe waits
			t.Fatal(err)
		}
	}
	h := acquire(t, c.FairMutex("paused"))
	served := acquireLater(ctx, t, c.FairMutex("paused"))
	master, err := rdb.MasterForKey(ctx, "paused")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, testTimeout, "a subscription at the node of the slot", func() bool {
		return len(master.PubSubShardChannels(ctx, "{paused}*").Val()) > 0
	})
	release(t, h)
	release(t, within(t, testTimeout, "the waiter", served))
}

// Where servers have no SSUBSCRIBE, as before Redis 7.0, messages go to all nodes.
func TestClusterWithoutShardChannels(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := locktest.StartServerAt(t, freeAddr(t), "--cluster-enabled", "yes", "--cluster-port", portOf(freeAddr(t)),
		"--rename-command", "SSUBSCRIBE", "", "--rename-command", "SPUBLISH", "")
	admin := s.Dial(t)
	if err := admin.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, testTimeout, "the cluster is complete", func() bool {
		return strings.Contains(admin.ClusterInfo(ctx).Val(), "cluster_state:ok")
	})
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr}})
	defer rdb.Close()
	o := Options{PollMax: time.Hour, Observe: func(e Event) {
		if e.Kind == Polling {
			t.Errorf("waiters poll: %v", e.Err)
		}
	}}
	here := newTestClient(t, rdb, o)
	for _, there := range []*Client{newTestClient(t, rdb, o), here} {
		for name, acquire := range map[string]func(c *Client) (releaser, error){
			"plain": func(c *Client) (releaser, error) { return taken(c.Mutex("plain").Acquire(ctx)) },
			"fair":  func(c *Client) (releaser, error) { return taken(c.FairMutex("fair").Acquire(ctx)) },
		} {
			h, err := acquire(here)
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() {
				h, err := acquire(there)
				if err == nil {
					err = h.Release(ctx)
				}
				served <- err
			}()
			channel := map[string]string{"plain": "{plain}:free", "fair": "{fair}:grant"}[name]
			eventually(t, testTimeout, "a waiter and a subscription of "+name, func() bool {
				return there.queues.Waiting(channel) > 0 && len(admin.PubSubChannels(ctx, channel).Val()) > 0
			})
			if err := h.Release(ctx); err != nil {
				t.Error(err)
			}
			if err := within(t, testTimeout, "the waiter of "+name, served); err != nil {
				t.Error(err)
			}
		}
	}
}

// The message of one node reaches subscribers at another.
func clusterWakes(t *testing.T, rdb *redis.ClusterClient) {
	holder := newTestClient(t, rdb, Options{})
	for i := range 4 {
		name := fmt.Sprintf("wake-%d", i)
		waiter := newTestClient(t, rdb, Options{PollMax: time.Hour})
		h := acquire(t, holder.Mutex(name))
		served := make(chan *Hold, 1)
		go func() {
			h, err := waiter.Mutex(name).Acquire(context.Background())
			if err != nil {
				t.Error(err)
			}
			served <- h
		}()
		waitSubscribed(t, waiter, "{"+name+"}:free")
		release(t, h)
		release(t, within(t, testTimeout, "the waiter", served))
	}
}

// shardListeners is how many connections are subscribed at rdb's server to a channel of
// one of its slots.
func shardListeners(t *testing.T, rdb *redis.Client, channel string) int {
	t.Helper()
	got, err := rdb.PubSubShardNumSub(context.Background(), channel).Result()
	if err != nil {
		t.Fatal(err)
	}
	return int(got[channel])
}

// releaser is a hold of any kind.
type releaser interface {
	Release(ctx context.Context) error
}

// taken makes a hold of any kind a releaser.
func taken[H releaser](hold H, err error) (releaser, error) { return hold, err }

// Messages for waiters go to the nodes of the slot only, for locks of all kinds (redisson#3349: PUBLISH saturated the
// network of twenty nodes).
func clusterShards(t *testing.T, rdb *redis.ClusterClient, servers []*server) {
	ctx := context.Background()
	c := newTestClient(t, rdb, patient)
	c.maxHeartbeat = time.Hour
	before := make([]int64, len(servers))
	for i, s := range servers {
		before[i] = locktest.Calls(t, s.Dial(t), "publish")
	}
	rw := c.RW("near-rw")
	for channel, take := range map[string]func() (releaser, error){
		"{near}:free":     func() (releaser, error) { return taken(c.Mutex("near").Acquire(ctx)) },
		"{near-q}:grant":  func() (releaser, error) { return taken(c.FairMutex("near-q").Acquire(ctx)) },
		"{near-rw}:write": func() (releaser, error) { return taken(rw.Write().Acquire(ctx)) },
		"{near-s}:free":   func() (releaser, error) { return taken(c.Semaphore("near-s", WithTotal(1)).Acquire(ctx, 1)) },
		"{near-p}:free":   func() (releaser, error) { return taken(c.PermitSemaphore("near-p", WithTotal(1)).Acquire(ctx, 1)) },
		"{near-f}:free":   func() (releaser, error) { return taken(c.FairSemaphore("near-f", WithTotal(1)).Acquire(ctx, 1)) },
		"{near-all}:free": func() (releaser, error) {
			return taken(multi(t, c.Mutex("near-all"), c.Mutex("{near-all}:too")).Acquire(ctx))
		},
		"{near-read}:read": func() (releaser, error) { return taken(readBehindWriter(ctx, c.RW("near-read"))) },
	} {
		wokenInSlot(t, c, channel, take)
	}
	latch := c.Latch("near-latch")
	arm(t, latch, 1)
	opened := waitIn(t, latch, 0)
	asleep(t, c, "{near-latch}:open", 1)
	count(t, latch, CountDownOptions{})
	if err := within(t, testTimeout, "the waiter for the latch", opened); err != nil {
		t.Error(err)
	}
	for i, s := range servers {
		if now := locktest.Calls(t, s.Dial(t), "publish"); now != before[i] {
			t.Errorf("%d times PUBLISH at master %d", now-before[i], i+1)
		}
	}
}

// readBehindWriter acquires a free lock for writing, and a held one for reading.
func readBehindWriter(ctx context.Context, l *RW) (*FencedHold, error) {
	if hold, err := l.Write().TryAcquire(ctx); err == nil {
		return hold, nil
	}
	return l.Read().Acquire(ctx)
}

// wokenInSlot takes a lock twice: the second waits, subscribed at the master of the slot, until the first is released.
func wokenInSlot(t *testing.T, c *Client, channel string, take func() (releaser, error)) {
	t.Helper()
	first, err := take()
	if err != nil {
		t.Fatalf("%s: %v", channel, err)
	}
	served := make(chan releaser, 1)
	go func() {
		second, err := take()
		if err != nil {
			t.Errorf("%s: %v", channel, err)
		}
		served <- second
	}()
	asleep(t, c, channel, 1)
	release(t, first)
	release(t, within(t, testTimeout, "the waiter of "+channel, served))
}

// The hold of one of two waiters of a client is released by force: the other, which has
// left no mark in that hold, is woken.
func clusterForces(t *testing.T, rdb *redis.ClusterClient) {
	ctx := context.Background()
	c := newTestClient(t, rdb, Options{PollMax: time.Hour, Lease: time.Hour})
	m := c.Mutex("forced")
	h := acquire(t, m)
	first := acquireLater(ctx, t, m)
	waitSubscribed(t, c, "{forced}:free")
	asleep(t, c, "{forced}:free", 1)
	second := acquireLater(ctx, t, m)
	asleep(t, c, "{forced}:free", 2)
	release(t, h)
	var next <-chan *Hold
	select {
	case <-first:
		next = second
	case <-second:
		next = first
	case <-time.After(testTimeout):
		t.Fatal("no waiter was served")
	}
	if _, err := m.ForceRelease(ctx); err != nil {
		t.Fatal(err)
	}
	release(t, within(t, testTimeout, "the other waiter", next))
}

// The slot moves to another master while a client waits for the lock: its subscription
// follows, and the release there wakes it.
func clusterWaiterMoves(t *testing.T, rdb *redis.ClusterClient, servers []*server) {
	ctx := context.Background()
	c := newTestClient(t, rdb, Options{PollMax: time.Hour})
	h := acquire(t, c.Mutex("travels"))
	served := acquireLater(ctx, t, c.Mutex("travels"))
	eventually(t, testTimeout, "the waiter is subscribed", func() bool {
		return shardListeners(t, servers[wire.SlotOf("travels")/5462].Dial(t), "{travels}:free") == 1
	})
	m := startMove(t, servers, "travels")
	m.finish()
	eventually(t, testTimeout, "the waiter is subscribed at the new master", func() bool {
		return shardListeners(t, m.to, "{travels}:free") == 1
	})
	release(t, h)
	release(t, within(t, testTimeout, "the waiter", served))
}

// A client that asks for replicas follows an ASK redirection with its own connection: here the grant by the importing
// master is taken back, because that has no replica. Without the redirection, no lock of the slot could be acquired.
func clusterMovesWithReplicas(t *testing.T, rdb *redis.ClusterClient, servers []*server) {
	c := newTestClient(t, rdb, Options{Replicas: 1, ReplicaTimeout: briefly})
	m := startMove(t, servers, "copied")
	for _, owner := range []string{"the first script", "a script that is known"} {
		if _, err := c.Mutex("copied").TryAcquire(context.Background()); !errors.Is(err, ErrTooFewReplicas) {
			t.Errorf("%s: error %v, want ErrTooFewReplicas", owner, err)
		}
	}
	const more = 10
	connections := func() int {
		n, err := strconv.Atoi(m.to.InfoMap(t.Context(), "stats").Item("Stats", "total_connections_received"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := connections()
	for range more {
		_, _ = c.Mutex("copied").TryAcquire(context.Background())
	}
	if n := connections() - before; n >= more {
		t.Errorf("%d connections for %d redirected requests", n, more)
	}
	m.finish()
}

// The slot of a held lock moves to another master: first half (ASK, TRYAGAIN), then
// completely (MOVED). The hold is renewed and released all the same.
func clusterMoves(t *testing.T, rdb *redis.ClusterClient, servers []*server) {
	ctx := context.Background()
	c := newTestClient(t, rdb, Options{})
	h := acquire(t, c.Mutex("moving"))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	m := startMove(t, servers, "moving")
	m.moveKeys("moving")
	done := make(chan error, 1)
	go func() { done <- h.Renew(ctx) }() // one key, which has moved: ASK
	must(within(t, testTimeout, "the renewal", done))
	inner := make(chan error, 1)
	go func() { // several keys, of which some have moved: TRYAGAIN, until all have
		second, err := c.Mutex("moving").Acquire(h.Context(), WithReentry())
		if err == nil {
			err = second.Release(ctx)
		}
		inner <- err
	}()
	m.finish()
	must(within(t, testTimeout, "the re-entry", inner))
	release(t, h)
	if n := rdb.Exists(ctx, "moving").Val(); n != 0 {
		t.Error("the lock is still there")
	}
}
