package process

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/topology"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestKeysOfAFollowerBehind: the list of a follower that is behind has all earlier commits, or fails.
func TestKeysOfAFollowerBehind(t *testing.T) {
	skipEnsemble(t)
	c, ctx := ensembleUp(t, cluster.Topology{Kind: cluster.ZooKeeper}), t.Context()
	var leaders, followers []string
	waitFor(t, "a leader and two followers", func() bool {
		leaders, followers = inRole(ctx, c, "master"), inRole(ctx, c, "slave")
		return len(leaders) == 1 && len(followers) == 2
	})
	leader, err := c.server(leaders[0])
	if err != nil {
		t.Fatal(err)
	}
	follower := followers[0]
	conn, _, err := zk.Connect([]string{leader.location.target()}, 10*time.Second,
		zk.WithLogInfo(false), zk.WithDialer(net.DialTimeout))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	create := func(path string) {
		t.Helper()
		waitFor(t, "a node to be created", func() bool {
			_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
			return err == nil || errors.Is(err, zk.ErrNodeExists)
		})
	}
	create(topology.ZooKeeperRoot)
	create(topology.ZooKeeperRoot + "/orders")
	create(topology.ZooKeeperRoot + "/orders/a-lock-0000000001")
	has := func(name string) func() bool {
		return func() bool {
			keys, err := c.Keys(ctx, follower)
			_, found := keys[name]
			return err == nil && found
		}
	}
	waitFor(t, "the follower to have the first node", has("orders/a-lock-0000000001"))
	setPeers(t, c, follower, cluster.Rule{Mode: cluster.Hold})
	create(topology.ZooKeeperRoot + "/orders/b-lock-0000000002")
	keys, err := c.Keys(ctx, follower)
	if c.Sample(ctx, leader.name, nil).Role != "master" {
		t.Skip("NOT RUN: another member became leader meanwhile, as on a busy machine")
	}
	if _, found := keys["orders/b-lock-0000000002"]; err == nil && !found {
		t.Errorf("a follower that is behind lists %v", keys)
	}
	setPeers(t, c, follower, cluster.Rule{})
	waitFor(t, "the follower to have the second node", has("orders/b-lock-0000000002"))
}
