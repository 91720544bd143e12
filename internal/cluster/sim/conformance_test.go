package sim_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

// servers is what the story needs of a cluster, simulated or real.
type servers interface {
	cluster.Cluster
	cluster.Killer
	cluster.Witness
	cluster.Promoter
}

// narrator tells the same story to simulated and to real servers.
type narrator struct {
	t    *testing.T
	c    servers
	ctx  context.Context
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	told []string
}

// storyWait bounds every step; the former master is demoted after ten seconds.
const storyWait = 40 * time.Second

// until asks again and again, in the time of the cluster.
func (n *narrator) until(what string, done func() bool) {
	n.t.Helper()
	for end := time.Now().Add(storyWait); !done(); {
		if time.Now().After(end) {
			n.t.Errorf("%s did not come about; so far: %s", what, strings.Join(n.told, "; "))
			return
		}
		// not a wait for a fixed time but polling, with an end: servers send no event when their role changes
		time.Sleep(20 * time.Millisecond)
	}
	n.told = append(n.told, what)
}

func (n *narrator) role(node, role string) {
	n.t.Helper()
	n.until(node+" is "+role, func() bool {
		s := n.c.Sample(n.ctx, node, nil)
		return s.Up && s.Role == role
	})
}

// write writes a key at a node, as often as it takes.
func (n *narrator) write(node int, key string) {
	n.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: n.c.Nodes()[node].Addr, Dialer: n.dial, MaxRetries: -1, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
	defer func() { _ = rdb.Close() }()
	n.until("written "+key, func() bool { return rdb.Set(n.ctx, key, key, 0).Err() == nil })
}

// look tells roles and keys of all nodes, when every replica has what its master has.
func (n *narrator) look(keys ...string) {
	n.t.Helper()
	last := ""
	same := 0
	n.until("quiet", func() bool {
		var all []string
		for _, node := range n.c.Nodes() {
			s := n.c.Sample(n.ctx, node.Name, keys)
			var names []string
			for key := range s.Keys {
				names = append(names, key)
			}
			slices.Sort(names)
			all = append(all, fmt.Sprintf("%s up %v %s has %v", node.Name, s.Up, s.Role, names))
		}
		if now := strings.Join(all, ", "); now == last {
			same++
		} else {
			last, same = now, 0
		}
		return same > 50 // for a second
	})
	n.told = append(n.told, last)
}

func (n *narrator) ok(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Error(err)
	}
}

func stories() map[string]struct {
	topology cluster.Topology
	tell     func(n *narrator)
} {
	return map[string]struct {
		topology cluster.Topology
		tell     func(n *narrator)
	}{
		"crash with an append-only file": {
			cluster.Topology{Kind: cluster.Single, Options: map[string]string{"appendonly": "yes"}},
			func(n *narrator) {
				n.write(0, "a")
				n.ok(n.c.Kill(n.ctx, "n1"))
				n.look("a")
				n.ok(n.c.Restart(n.ctx, "n1"))
				n.look("a")
			},
		},
		"promotion by hand": {
			cluster.Topology{Kind: cluster.Replicated},
			func(n *narrator) {
				n.write(0, "a")
				n.look("a")
				n.ok(n.c.Kill(n.ctx, "n3"))
				n.ok(n.c.Kill(n.ctx, "n1"))
				n.ok(n.c.Promote(n.ctx))
				n.role("n2", "master")
				n.write(0, "b")
				n.ok(n.c.Restart(n.ctx, "n3"))
				n.role("n3", "slave")
				n.look("a", "b")
			},
		},
		"failover, and the old master comes back": {
			cluster.Topology{Kind: cluster.Sentinel},
			func(n *narrator) {
				n.write(0, "a")
				n.look("a")
				n.ok(n.c.Kill(n.ctx, "n1"))
				n.role("n2", "master")
				n.write(1, "b")
				n.look("a", "b")
				n.ok(n.c.Restart(n.ctx, "n1"))
				n.role("n1", "slave")
				n.look("a", "b")
			},
		},
	}
}

// TestSimulatedAndRealServersTellTheSameStory, in roles and data.
func TestSimulatedAndRealServersTellTheSameStory(t *testing.T) {
	if testing.Short() {
		t.Skip("real servers take half a minute: left out with -short")
	}
	if _, err := process.Version(t.Context(), ""); err != nil {
		t.Skipf("no real servers to compare with: %v", err)
	}
	live := map[string]*narrator{}
	t.Run("real", func(t *testing.T) {
		for name, story := range stories() {
			n := &narrator{ctx: context.Background()}
			live[name] = n
			t.Run(name, func(t *testing.T) {
				t.Parallel() // it is mostly waiting
				c, err := process.Start(t.Context(), process.Config{Topology: story.topology})
				if err != nil {
					t.Fatal(err)
				}
				var dialer net.Dialer
				n.t, n.c, n.dial = t, c, dialer.DialContext
				story.tell(n)
				if err := c.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
	})
	for name, story := range stories() { // one after the other: go-redis shares timers among bubbles
		simulate(t, sim.Config{Topology: story.topology}, func(w *world) {
			virtual := &narrator{t: t, c: w.Cluster, ctx: w.ctx, dial: w.Client(0).Dial}
			story.tell(virtual)
			if a, b := strings.Join(live[name].told, "\n"), strings.Join(virtual.told, "\n"); a != b {
				t.Errorf("%s, real:\n%s\n\nsimulated:\n%s", name, a, b)
			}
		})
	}
}
