package process

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/resp"
)

// TestOptionsReachTheServers: options of a scenario override the harness's defaults.
func TestOptionsReachTheServers(t *testing.T) {
	options := map[string]string{
		"appendonly": "yes", "appendfsync": "always", "min-replicas-to-write": "1", "maxmemory": "64mb",
		"maxmemory-policy": "allkeys-lru", "replica-priority": "7", "repl-backlog-size": "2mb",
	}
	c := up(t, cluster.Topology{Kind: cluster.Single, Options: options})
	a := dialFrom(t, c, 0, "n1")
	for name, want := range map[string]string{
		"appendonly": "yes", "appendfsync": "always", "min-replicas-to-write": "1", "maxmemory": "67108864",
		"maxmemory-policy": "allkeys-lru", "replica-priority": "7", "repl-backlog-size": "2097152",
	} {
		if got := cluster.Fields(do(t, a, "CONFIG GET "+name))[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	replies, err := a.do(t.Context(), []string{"SET", "k", "v"})
	must(t, err)
	if err, ok := replies[0].(resp.Error); !ok || !strings.HasPrefix(err.Error(), "NOREPLICAS") {
		t.Errorf("SET with no replica replied %v, want NOREPLICAS", replies[0])
	}
}

// TestInvalidOptions: the error has redis-server's own text, and no server keeps running.
func TestInvalidOptions(t *testing.T) {
	for name, want := range map[string]string{
		"appendfsync sometimes":      "argument(s) must be one of the following",
		"maxmemory lots":             "argument must be a memory",
		"min-replicas-to-write many": "argument couldn't be parsed into an integer",
		"appendonlyy yes":            "Bad directive or wrong number of arguments",
	} {
		option, value, _ := strings.Cut(name, " ")
		c, err := Start(t.Context(), Config{Topology: cluster.Topology{
			Kind: cluster.Single, Options: map[string]string{option: value}}})
		if missing := (*MissingError)(nil); errors.As(err, &missing) {
			t.Skip("no real server to test with: ", err)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, cluster.ErrOption) ||
			!strings.Contains(err.Error(), option) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if c != nil {
			t.Errorf("%s: Start returned a cluster and an error", name)
			_ = c.Close(t.Context())
		}
	}
}

// TestOptionsAreThoseOfTheServer: the catalog of options has every directive of this machine's redis-server, or it is
// reserved, and accepts the value that the server has.
func TestOptionsAreThoseOfTheServer(t *testing.T) {
	c := up(t, cluster.Topology{Kind: cluster.Single})
	all := cluster.Fields(do(t, dialFrom(t, c, 0, "n1"), "CONFIG GET *"))
	if len(all) < 100 {
		t.Fatalf("CONFIG GET * replied %d directives", len(all))
	}
	for name, value := range all {
		if err := cluster.CheckOption(name, value); err != nil && !strings.Contains(err.Error(), "reserved") {
			t.Errorf("%s %q: %v", name, value, err)
		}
	}
}

// TestPromoteByHand: the master's address leads to the replica with the highest
// offset, the other replica follows, and the old master cannot be reached.
func TestPromoteByHand(t *testing.T) {
	c := up(t, cluster.Topology{Kind: cluster.Replicated})
	a := dialFrom(t, c, 0, "n1")
	wantReply(t, a, "SET before 1", "OK")
	waitFor(t, "the write to be everywhere", func() bool {
		return do(t, c.nodes[1].admin, "GET before") == "1" && do(t, c.nodes[2].admin, "GET before") == "1"
	})
	must(t, c.SetRule(cluster.Link{From: "n2", To: "n1"}, cluster.Back, cluster.Rule{Mode: cluster.Hold}))
	wantReply(t, a, "SET after 1", "OK")
	waitFor(t, "n3 to have more", func() bool { return do(t, c.nodes[2].admin, "GET after") == "1" })
	must(t, c.Kill(t.Context(), "n1"))
	must(t, c.Promote(t.Context()))
	must(t, c.SetRule(cluster.Link{From: "n2", To: "n1"}, cluster.Both, cluster.Rule{}))
	waitFor(t, "n2 to follow n3", func() bool { return do(t, c.nodes[1].admin, "GET after") == "1" })
	b := dialFrom(t, c, 1, "n1")
	wantReply(t, b, "SET now 1", "OK")
	waitFor(t, "the write to be at n2", func() bool { return do(t, c.nodes[1].admin, "GET now") == "1" })
	must(t, c.Restart(t.Context(), "n1"))
	wantReply(t, b, "GET now", "1")
	if role := roleOf(t, c, "n3"); role != "master" {
		t.Errorf("n3 is %q", role)
	}
}

// TestClusterFailover: a replica is promoted by vote when its master is killed, and
// redirections lead to gates only.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := up(t, cluster.Topology{Kind: cluster.Sharded})
	a := dialFrom(t, c, 0, "n1")
	if reply := fmt.Sprint(do(t, a, "SET a 1")); !strings.HasPrefix(reply, "MOVED 15495 127.0.2.3:") { // slot of "a"
		t.Errorf("SET replied %s, want a redirection to n3's gate", reply)
	}
	n3 := dialFrom(t, c, 0, "n3")
	wantReply(t, n3, "SET a 1", "OK")
	wantReply(t, n3, "WAIT 1 0", int64(1)) // the replica has it
	must(t, c.Kill(t.Context(), "n3"))
	took := waitFor(t, "n6 to be master", func() bool {
		role, err := c.Role(t.Context(), "n6")
		return err == nil && role == "master"
	})
	t.Logf("n6 is master after %v", took)
	waitFor(t, "the write to be there", func() bool { return do(t, dialFrom(t, c, 1, "n6"), "GET a") == "1" })
}

// TestPartitionedShardIsReplaced: a rule for a node's links applies to its cluster
// bus too, so that a partitioned master is replaced.
func TestPartitionedShardIsReplaced(t *testing.T) {
	t.Parallel()
	c := up(t, cluster.Topology{Kind: cluster.Sharded})
	each := func(mode cluster.Mode) {
		for _, other := range []string{"n2", "n3", "n4", "n5", "n6"} {
			must(t, c.SetRule(cluster.Link{From: other, To: "n1"}, cluster.Both, cluster.Rule{Mode: mode}))
			must(t, c.SetRule(cluster.Link{From: "n1", To: other}, cluster.Both, cluster.Rule{Mode: mode}))
		}
	}
	each(cluster.Hold)
	waitFor(t, "n4 to be master", func() bool {
		role, err := c.Role(t.Context(), "n4")
		return err == nil && role == "master"
	})
	if role := roleOf(t, c, "n1"); role != "master" {
		t.Errorf("n1, partitioned, is %q", role)
	}
	each(cluster.Pass)
	waitFor(t, "n1 to be a replica", func() bool {
		role, err := c.Role(t.Context(), "n1")
		return err == nil && role == "slave"
	})
}

// TestSampleOfShards: a key is seen at its master and its replica only.
func TestSampleOfShards(t *testing.T) {
	c := up(t, cluster.Topology{Kind: cluster.Sharded})
	wantReply(t, dialFrom(t, c, 0, "n3"), "SET a owner PX 60000", "OK")
	waitFor(t, "the replica to have it", func() bool {
		return c.Sample(t.Context(), "n6", []string{"a"}).Keys["a"].Owner == "owner"
	})
	for node, want := range map[string]int{"n1": 0, "n2": 0, "n3": 1, "n4": 0, "n6": 1} {
		s := look(t, c, node, "a")
		if !s.Up || len(s.Keys) != want {
			t.Errorf("%s: %+v, want %d keys", node, s, want)
		}
		if keys, err := c.Keys(t.Context(), node); err != nil || len(keys) != want {
			t.Errorf("%s has %v, %v, want %d keys", node, keys, err, want)
		}
	}
}
