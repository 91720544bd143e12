package process

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/installed"
)

// ensembleUp is up for an ensemble, which needs Java.
func ensembleUp(t *testing.T, topology cluster.Topology) *Cluster {
	t.Helper()
	if _, err := installed.ZooKeeper(); err != nil {
		t.Skip("NOT RUN: ", err)
	}
	return up(t, topology)
}

// inRole names the members in a role.
func inRole(ctx context.Context, c *Cluster, role string) (nodes []string) {
	for _, n := range c.Nodes() {
		if s := c.Sample(ctx, n.Name, nil); s.Up && s.Role == role {
			nodes = append(nodes, n.Name)
		}
	}
	return nodes
}

// firstIn waits until a member has that role: on a busy machine there may be an election at any time.
func firstIn(t *testing.T, c *Cluster, role string) (node string) {
	t.Helper()
	waitFor(t, "a "+role, func() bool {
		if nodes := inRole(t.Context(), c, role); len(nodes) > 0 {
			node = nodes[0]
		}
		return node != ""
	})
	return node
}

// killLeader kills the leader of three members, and waits until another one leads.
func killLeader(t *testing.T, c *Cluster) (old string) {
	t.Helper()
	ctx := t.Context()
	var leaders []string
	waitFor(t, "one leader and two followers", func() bool { // a sample may time out, and a late ping ends a leader
		leaders = inRole(ctx, c, "master")
		return len(leaders) == 1 && len(inRole(ctx, c, "slave")) == 2
	})
	if n := len(c.Endpoints(0).Addrs); n != 3 {
		t.Errorf("clients know %d members, want 3", n)
	}
	old = leaders[0]
	if err := c.Kill(ctx, old); err != nil {
		t.Fatal(err)
	}
	otherLeads(t, c, old)
	return old
}

// TestEnsemble: an ensemble has one leader. When it is killed, another member leads; the old one comes back as a
// follower, also with an empty disk.
func TestEnsemble(t *testing.T) {
	c, ctx := ensembleUp(t, cluster.Topology{Kind: cluster.ZooKeeper}), t.Context()
	old := killLeader(t, c)
	if err := errors.Join(c.Wipe(ctx, old), c.Restart(ctx, old)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the old leader to follow", func() bool { return c.Sample(ctx, old, nil).Role == "slave" })
}

// TestEnsembleLeaderCutOff: a leader that reaches no other member steps down, and the others choose another one. When
// the network is healed it follows.
func TestEnsembleLeaderCutOff(t *testing.T) {
	skipEnsemble(t)
	c, ctx := ensembleUp(t, cluster.Topology{Kind: cluster.ZooKeeper}), t.Context()
	old := firstIn(t, c, "master")
	setPeers(t, c, old, cluster.Rule{Mode: cluster.Hold})
	took := waitFor(t, "another member to lead", func() bool {
		now := inRole(ctx, c, "master")
		return len(now) == 1 && now[0] != old
	})
	t.Logf("another member leads after %v", took.Round(time.Millisecond))
	if s := c.Sample(ctx, old, nil); s.Up {
		t.Errorf("the old leader serves clients as %q although it reaches no majority", s.Role)
	}
	setPeers(t, c, old, cluster.Rule{})
	waitFor(t, "the old leader to follow", func() bool { return c.Sample(ctx, old, nil).Role == "slave" })
}

// skipEnsemble skips a test of an ensemble with -short, where others have one.
func skipEnsemble(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED with -short: to start an ensemble takes seconds of CPU time, and TestEnsemble starts one")
	}
}

// setPeers sets a rule between a member and every other one, both ways.
func setPeers(t *testing.T, c *Cluster, node string, rule cluster.Rule) {
	t.Helper()
	for _, n := range c.Nodes() {
		if n.Name == node {
			continue
		}
		for _, link := range []cluster.Link{{From: node, To: n.Name}, {From: n.Name, To: node}} {
			if err := c.SetRule(link, cluster.Both, rule); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestEnsembleClock: the clock of a leader jumps and is read from its writes; a follower's cannot be read.
func TestEnsembleClock(t *testing.T) {
	skipEnsemble(t)
	if _, err := installed.ZooKeeper(); err != nil {
		t.Skip("NOT RUN: ", err)
	}
	c, ctx := startWith(t, cluster.Topology{Kind: cluster.ZooKeeper}, cluster.Requirements{Clocks: true}), t.Context()
	leader, follower := firstIn(t, c, "master"), firstIn(t, c, "slave")
	if _, err := c.ReadClock(ctx, follower); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a follower: %v", err)
	}
	must(t, c.SetClock(ctx, follower, cluster.Clock{Offset: time.Hour})) // not checked
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour, 0} {
		must(t, c.SetClock(ctx, leader, cluster.Clock{Offset: jump}))
		if ahead, err := c.ReadClock(ctx, leader); err != nil || (ahead-jump).Abs() > time.Hour {
			t.Errorf("ahead by %v, %v, want %v", ahead, err, jump)
		}
	}
}
