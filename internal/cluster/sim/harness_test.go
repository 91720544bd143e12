package sim

import (
	"context"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/bubble"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// TestKeyStatesAreThoseOfTheServer: the harness remembers the states of keys that it would read, regardless of commands
// and clock changes meanwhile, also on a replica, which hides expired keys, and of a node's knowledge of slots in a
// Redis Cluster.
func TestKeyStatesAreThoseOfTheServer(t *testing.T) {
	for _, topology := range []cluster.Topology{
		{Kind: cluster.Replicated, Replicas: 1}, {Kind: cluster.Sharded, Masters: 3, Replicas: 1},
	} {
		t.Run(topology.Kind, func(t *testing.T) { keyStates(t, topology) })
	}
}

func keyStates(t *testing.T, topology cluster.Topology) {
	commands := strings.Split(`HSET a owner one count 1
HSET a count 2
HINCRBY a count 1
PEXPIRE a 50
PERSIST a
DEL a
SET a h:two PX 30
SET a three
GET a
SETEX b 1 four
HSET b total 3 free 1 kind permits
SADD b member
SREM b member
RENAME b a
EVAL return(redis.call('hset','a','owner','five')) 0
EVAL return(redis.call('pexpire',KEYS[1],20)) 1 a
PING
FLUSHALL
ACL SETUSER default -pttl
ACL SETUSER default +pttl
CONFIG SET maxmemory 1048700
CONFIG SET maxmemory-policy allkeys-lru
CONFIG SET maxmemory 0
CLUSTER FAILOVER TAKEOVER
HSET b owner six`, "\n")
	keys := []string{"a", "b", "c"}
	remembered, samples := 0, 0
	compare := func(n *node, last string) {
		ask := func(commands ...[]string) ([]any, error) { return n.harness.ask(commands...), nil }
		want, _ := cluster.ReadKeys(ask, keys, n.harness.ask(cluster.KeyCommands(keys)...)) // first: it may evict keys
		got, _ := n.harness.keyStates(keys)
		if samples++; n.harness.read.valid {
			remembered++
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s after %s: remembered %v, the server has %v", n.Name, last, got, want)
		}
	}
	inCluster(t, topology, func(ctx context.Context, c *Cluster) {
		dice := rand.New(rand.NewPCG(1, 2))
		for range 3000 {
			text := commands[dice.IntN(len(commands))]
			node := c.nodes[dice.IntN(len(c.nodes))].Name
			if topology.Kind == cluster.Replicated {
				node = "n1"
			}
			if _, err := c.Do(ctx, node, words(text)...); err != nil && strings.Contains(text, "ACL") {
				t.Fatal(err)
			}
			if dice.IntN(10) == 0 {
				node := c.nodes[dice.IntN(len(c.nodes))].Name
				offset := time.Duration(dice.Int64N(int64(100 * time.Millisecond)))
				if err := c.SetClock(ctx, node, cluster.Clock{Offset: offset}); err != nil {
					t.Fatal(err)
				}
				text += " and a jump of the clock of " + node
			}
			time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond) //nolint:forbidigo // virtual time
			c.world.Act(ctx)
			for _, n := range c.nodes {
				compare(n, text)
			}
			c.world.Mu.Unlock()
		}
	})
	if remembered < samples/6 {
		t.Errorf("only %d of %d samples could be remembered", remembered, samples)
	}
}

func words(text string) (all []any) {
	for _, w := range strings.Fields(text) {
		all = append(all, w)
	}
	return all
}

// inCluster runs f with a cluster, in a bubble.
func inCluster(t *testing.T, topology cluster.Topology, f func(ctx context.Context, c *Cluster)) {
	t.Helper()
	err := bubble.Run(func() {
		c, err := Start(context.Background(), Config{Seed: 1, Topology: topology, Actors: 1})
		if err != nil {
			t.Error(err)
			return
		}
		ctx := network.With(context.Background(), c.Actor("test"))
		f(ctx, c)
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPermitsOfAFullServer: permits whose lease has ended do not count either while a server has no memory for writes,
// and none for a transaction.
func TestPermitsOfAFullServer(t *testing.T) {
	inCluster(t, cluster.Topology{Kind: cluster.Single}, func(ctx context.Context, c *Cluster) {
		for _, text := range []string{
			"HSET k kind permits total 3 free 1", "ZADD {k}:permits 1 a.1 99999999999999 b.1", "CONFIG SET maxmemory 1",
		} {
			if _, err := c.Do(ctx, "n1", words(text)...); err != nil {
				t.Fatal(err)
			}
		}
		c.world.Act(ctx)
		defer c.world.Mu.Unlock()
		seen, err := c.nodes[0].harness.keyStates([]string{"k"})
		if err != nil || seen["k"].Permits != 1 {
			t.Errorf("%v, %v; want one permit", seen, err)
		}
	})
}
