package sim_test

import (
	"context"
	"fmt"
	"maps"
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
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
)

// servers has the methods of a cluster that the scripts need, simulated or real.
type servers interface {
	cluster.Cluster
	cluster.Killer
	cluster.Witness
	cluster.Promoter
}

// recorder runs a script on simulated or real servers and records its observations.
type recorder struct {
	t    *testing.T
	c    servers
	ctx  context.Context
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	log  []string
}

// stepTimeout bounds every step; the former master is demoted after ten seconds.
const stepTimeout = 40 * time.Second

// until polls done, in the time of the cluster.
func (n *recorder) until(what string, done func() bool) {
	n.t.Helper()
	for end := time.Now().Add(stepTimeout); !done(); {
		if time.Now().After(end) {
			n.t.Errorf("%s did not happen; so far: %s", what, strings.Join(n.log, "; "))
			return
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // polls: servers send no event when their role changes
	}
	n.log = append(n.log, what)
}

func (n *recorder) role(node, role string) {
	n.t.Helper()
	n.until(node+" is "+role, func() bool {
		s := n.c.Sample(n.ctx, node, nil)
		return s.Up && s.Role == role
	})
}

// connect is a client that has one connection to a node.
func (n *recorder) connect(node int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: n.c.Nodes()[node].Addr, Dialer: n.dial, Password: n.c.Endpoints(0).Password, MaxRetries: -1, DialerRetries: 1,
		PoolSize: 1, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
}

// try writes a key with a client once, and records the outcome.
func (n *recorder) try(rdb *redis.Client, key string) {
	n.log = append(n.log, fmt.Sprintf("writing %s: %v", key, rdb.Set(n.ctx, key, key, 0).Err()))
}

// write writes a key at a node and retries until it succeeds.
func (n *recorder) write(node int, key string) {
	n.t.Helper()
	rdb := n.connect(node)
	defer func() { _ = rdb.Close() }()
	n.until("written "+key, func() bool { return rdb.Set(n.ctx, key, key, 0).Err() == nil })
}

// look records roles and keys of all nodes once they have not changed for a second.
func (n *recorder) look(keys ...string) {
	n.t.Helper()
	last := ""
	same := 0
	n.until("stable", func() bool {
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
	n.log = append(n.log, last)
}

// byHand makes a replica that has key a a master, without the Sentinels.
func (n *recorder) byHand(node string) {
	n.t.Helper()
	n.write(0, "a")
	n.look("a")
	_, err := n.c.(cluster.Admin).Do(n.ctx, node, "REPLICAOF", "NO", "ONE")
	n.ok(err)
	n.role(node, "master")
}

func (n *recorder) ok(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Error(err)
	}
}

// script is a sequence of actions on a topology.
type script struct {
	topology cluster.Topology
	run      func(n *recorder)
}

func scripts() map[string]script {
	all := map[string]script{
		"crash with an append-only file": {
			cluster.Topology{Kind: cluster.Single, Options: map[string]string{"appendonly": "yes"}},
			func(n *recorder) {
				n.write(0, "a")
				n.ok(n.c.Kill(n.ctx, "n1"))
				n.look("a")
				n.ok(n.c.Restart(n.ctx, "n1"))
				n.look("a")
			},
		},
		"promotion by hand": {
			cluster.Topology{Kind: cluster.Replicated},
			func(n *recorder) {
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
			func(n *recorder) {
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
		"a replica promoted by hand while Sentinels promote another": {
			cluster.Topology{Kind: cluster.Sentinel},
			func(n *recorder) {
				n.byHand("n3")
				n.write(2, "lost")
				n.ok(n.c.Kill(n.ctx, "n1"))
				n.role("n2", "master")
				n.write(1, "b")
				n.role("n3", "slave")
				n.look("a", "b", "lost")
			},
		},
		"a replica promoted by hand, and then by Sentinels": {
			cluster.Topology{Kind: cluster.Sentinel},
			func(n *recorder) {
				n.byHand("n2")
				n.write(0, "lost")
				n.ok(n.c.Kill(n.ctx, "n1"))
				n.write(1, "b")
				n.until("n3 has b", func() bool { // it follows n2
					_, has := n.c.Sample(n.ctx, "n3", []string{"b"}).Keys["b"]
					return has
				})
				n.look("a", "b", "lost")
			},
		},
	}
	maps.Copy(all, moves())
	return all
}

// TestSimulatedAndRealServersAgree in roles and data.
func TestSimulatedAndRealServersAgree(t *testing.T) {
	if testing.Short() {
		t.Skip("real servers take half a minute")
	}
	if _, err := process.Version(t.Context(), ""); err != nil {
		t.Skipf("no real servers to compare with: %v", err)
	}
	simulated := map[string]string{}
	for name, script := range scripts() { // sequential: go-redis shares timers among bubbles
		simulate(t, sim.Config{Topology: script.topology, Password: "p"}, func(w *world) {
			n := &recorder{t: t, c: w.Cluster, ctx: w.ctx, dial: w.Client(0).Dial}
			script.run(n)
			simulated[name] = strings.Join(n.log, "\n")
		})
	}
	for name, script := range scripts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it is mostly waiting
			for try := 1; ; try++ {
				var observed string
				withReal(t, script.topology, func(c *process.Cluster) {
					dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.Endpoints(0).Source)}}
					n := &recorder{t: t, c: c, ctx: context.Background(), dial: dialer.DialContext}
					script.run(n)
					observed = strings.Join(n.log, "\n")
				})
				if observed == simulated[name] {
					return
				}
				if !promotedAnother(script.topology, observed) ||
					!rerun.Because(t, try, "the Sentinels replaced n2, or promoted n3 instead") {
					t.Fatalf("real:\n%s\n\nsimulated:\n%s", observed, simulated[name])
				}
			}
		})
	}
}

// promotedAnother reports whether real Sentinels, which stalled for a moment, replaced n2, which they had promoted, or
// promoted n3 in its place. In no script do they do that.
func promotedAnother(topology cluster.Topology, observed string) bool {
	last := observed[strings.LastIndex(observed, "\n")+1:]
	return topology.Kind == cluster.Sentinel &&
		(strings.Contains(last, "n2 up true slave") || strings.Contains(last, "n3 up true master"))
}
