package process

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/installed"
)

// etcdUp is up for three etcd members.
func etcdUp(t *testing.T) *Cluster {
	t.Helper()
	if _, err := installed.Etcd(t.Context()); err != nil {
		t.Skip("NOT RUN: ", err)
	}
	return up(t, cluster.Topology{Kind: cluster.Etcd})
}

// TestEtcd: a cluster has one leader. When it is killed, another member leads; the old one comes back as a follower,
// also with an empty disk, for which it is replaced.
func TestEtcd(t *testing.T) {
	c, ctx := etcdUp(t), t.Context()
	old := killLeader(t, c)
	if err := c.Restart(ctx, old); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the old leader to follow", func() bool { return c.Sample(ctx, old, nil).Role == "slave" })
	if err := errors.Join(c.Kill(ctx, old), c.Wipe(ctx, old), c.Restart(ctx, old)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the empty member to follow", func() bool { return c.Sample(ctx, old, nil).Role == "slave" })
}

// TestEtcdReplaceInAnElection: a member that comes back empty is replaced although it was the leader, and the others
// have not chosen another one. Without a majority it cannot be replaced, and the error says so.
func TestEtcdReplaceInAnElection(t *testing.T) {
	c, ctx := etcdUp(t), t.Context()
	old := firstIn(t, c, "master")
	if err := errors.Join(c.Kill(ctx, old), c.Wipe(ctx, old), c.Restart(ctx, old)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the empty member to follow", func() bool { return c.Sample(ctx, old, nil).Role == "slave" })
	other := firstIn(t, c, "master")
	if err := errors.Join(c.Kill(ctx, other), c.Kill(ctx, old), c.Wipe(ctx, old)); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(ctx, old); !errors.Is(err, cluster.ErrDown) || !strings.Contains(err.Error(), "majority") {
		t.Errorf("replaced without a majority: %v", err)
	}
}

// otherLeads waits until a member other than old leads, and no other is left that says so.
func otherLeads(t *testing.T, c *Cluster, old string) {
	t.Helper()
	took := waitFor(t, "another member to lead", func() bool {
		now := slices.DeleteFunc(inRole(t.Context(), c, "master"), func(n string) bool { return n == old })
		return len(now) == 1
	})
	t.Logf("another member leads after %v", took.Round(time.Millisecond))
}

// TestEtcdLeaderCutOff: a leader that reaches no other member steps down, and the others choose another one. When the
// network is healed it follows. So the gates between members know who connects, although all have the same address.
func TestEtcdLeaderCutOff(t *testing.T) {
	c, ctx := etcdUp(t), t.Context()
	old := firstIn(t, c, "master")
	setPeers(t, c, old, cluster.Rule{Mode: cluster.Hold})
	otherLeads(t, c, old)
	waitFor(t, "the old leader to step down", func() bool { return c.Sample(ctx, old, nil).Role != "master" })
	setPeers(t, c, old, cluster.Rule{})
	waitFor(t, "the old leader to follow", func() bool { return c.Sample(ctx, old, nil).Role == "slave" })
}

// TestEtcdTwoCutOff: members that are not cut off stay together.
func TestEtcdTwoCutOff(t *testing.T) {
	c, ctx := etcdUp(t), t.Context()
	follower := firstIn(t, c, "slave")
	setPeers(t, c, follower, cluster.Rule{Mode: cluster.Cut})
	waitFor(t, "the follower to know no leader", func() bool { return !c.Sample(ctx, follower, nil).Up })
	if n := len(inRole(ctx, c, "master")); n != 1 {
		t.Errorf("%d leaders among the other two", n)
	}
}
