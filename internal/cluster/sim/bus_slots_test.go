package sim_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

// slotMigration has the replies to commands while the slot of {orders} (105) migrates from n1 to n2. "a; b" is sent on
// one connection. ID2 is the id of n2, HOST2 and PORT2 its address.
var slotMigration = []string{
	"n1 SET {orders}1 v", "n1 CLUSTER SETSLOT 105 IMPORTING ID2", "n2 CLUSTER SETSLOT 105 MIGRATING ID1",
	"n4 CLUSTER SETSLOT 105 IMPORTING ID1", "n1 CLUSTER SETSLOT 99999 STABLE", "n1 CLUSTER SETSLOT 105 NONE",
	"n2 CLUSTER SETSLOT 105 IMPORTING ID1", "n1 CLUSTER SETSLOT 105 MIGRATING ID2",
	"n1 GET {orders}1", "n1 GET {orders}2", "n1 SET {orders}2 w", "n1 MGET {orders}1 {orders}2",
	"n1 MGET {orders}2 {orders}3", "n1 EVAL return(1) 2 {orders}1 {orders}2", "n1 ASKING; SET {orders}1 v",
	"n2 GET {orders}1", "n2 ASKING; GET {orders}2", "n2 ASKING; SET {orders}2 w", "n2 ASKING; PING; GET {orders}2",
	"n2 ASKING; MGET {orders}1 {orders}2", "n2 ASKING; MGET {orders}2 {orders}2", "n3 GET {orders}1",
	"n1 CLUSTER GETKEYSINSLOT 105 10", "n2 CLUSTER GETKEYSINSLOT 105 10", "n1 CLUSTER SETSLOT 105 NODE ID2",
	"n1 PEXPIRE {orders}1 60000", "n1 MIGRATE HOST2 PORT2 _ 0 500 AUTH PASS KEYS {orders}1",
	"n1 MIGRATE HOST2 PORT2 _ 0 500 AUTH PASS KEYS {orders}1", "n1 MIGRATE HOST2 PORT2 _ 0 500 AUTH PASS KEYS {order}1",
	"n1 GET {orders}1", "n2 CLUSTER SETSLOT 105 NODE ID2", "n1 CLUSTER SETSLOT 105 NODE ID2", "n1 GET {orders}1",
	"n2 MGET {orders}1 {orders}2", "n2 CLUSTER SLOTS", "n2 PERSIST {orders}1", "n1 GET {order}1",
}

// migrateSlot runs slotMigration.
func migrateSlot(
	ctx context.Context, c cluster.Cluster, dial func(context.Context, string, string) (net.Conn, error),
) (replies []string) {
	names := []string{}
	words := []string{"return(1)", "return 1", "PASS", c.Endpoints(0).Password}
	var conns []*redis.Conn
	for i, n := range c.Nodes() {
		rdb := redis.NewClient(&redis.Options{Addr: n.Addr, Dialer: dial, Protocol: 2, MaxRetries: -1, Password: c.Endpoints(0).Password,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
		defer func() { _ = rdb.Close() }()
		conn := rdb.Conn()
		defer func() { _ = conn.Close() }()
		conns = append(conns, conn)
		id, err := conn.Do(ctx, "CLUSTER", "MYID").Text()
		if err != nil {
			return []string{err.Error()}
		}
		host, port, _ := net.SplitHostPort(n.Addr)
		words = append(words, fmt.Sprint("ID", i+1), id, fmt.Sprint("HOST", i+1), host, fmt.Sprint("PORT", i+1), port)
		names = append(names, n.Addr, n.Name, id, "id of "+n.Name, host+" "+port, n.Name)
	}
	actual, name := strings.NewReplacer(words...), strings.NewReplacer(names...)
	run := func(line string) string {
		node, commands, _ := strings.Cut(line, " ")
		pipe := conns[node[1]-'1'].Pipeline()
		var all []*redis.Cmd
		for _, command := range strings.Split(commands, "; ") {
			var args []any
			for _, word := range strings.Fields(command) {
				args = append(args, strings.TrimPrefix(actual.Replace(word), "_"))
			}
			all = append(all, pipe.Do(ctx, args...))
		}
		_, _ = pipe.Exec(ctx) // each command has its error
		var got []string
		for _, cmd := range all {
			reply, err := cmd.Result()
			if rows, ok := reply.([]any); ok && strings.HasSuffix(line, "CLUSTER SLOTS") {
				for i, row := range rows { // not the replicas: right after the start they are not known everywhere
					rows[i] = row.([]any)[:3]
				}
			}
			if err != nil {
				reply = err
			}
			got = append(got, name.Replace(fmt.Sprint(reply)))
		}
		return line + " -> " + strings.Join(got, "; ")
	}
	for _, line := range slotMigration {
		replies = append(replies, run(line))
	}
	// The other nodes learn it by the bus.
	//nolint:forbidigo // polling: there is no event
	for end := time.Now().Add(40 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		line := run("n3 GET {orders}1")
		if strings.Contains(line, "MOVED 105 n2") || time.Now().After(end) {
			return append(replies, line, run("n5 GET {orders}1"))
		}
	}
}

// TestSlotMigrationIsTheSameOnRealServers compares every reply of a migration with a real cluster's.
func TestSlotMigrationIsTheSameOnRealServers(t *testing.T) {
	if _, err := process.Version(t.Context(), ""); err != nil {
		t.Skip("NOT RUN: needs real servers: ", err)
	}
	var simulated []string
	simulate(t, sim.Config{Topology: cluster.Topology{Kind: cluster.Sharded}, Seed: 1, Password: "p"}, func(w *world) {
		simulated = migrateSlot(w.ctx, w.Cluster, w.self.Dial)
	})
	var want []string
	withReal(t, cluster.Topology{Kind: cluster.Sharded}, func(c *process.Cluster) {
		want = migrateSlot(t.Context(), c, nil)
	})
	if diff := cmp.Diff(want, simulated); diff != "" {
		t.Errorf("replies (-real +simulated):\n%s", diff)
	}
	t.Log(strings.Join(want, "\n"))
}

// migrateFromReplica moves a key of a slot that migrates, when another node has been promoted in place of its master.
func migrateFromReplica(ctx context.Context, c cluster.Cluster) string {
	do := func(node string, args ...any) any {
		reply, err := c.(cluster.Admin).Do(ctx, node, args...)
		if err != nil {
			return err
		}
		return reply
	}
	for _, line := range []string{"n2 n1 IMPORTING", "n1 n2 MIGRATING"} {
		at := strings.Fields(line)
		do(at[0], "CLUSTER", "SETSLOT", 105, at[2], do(at[1], "CLUSTER", "MYID"))
	}
	do("n1", "SET", "{orders}1", "v")
	do("n4", "CLUSTER", "FAILOVER", "TAKEOVER")
	host, port, _ := net.SplitHostPort(c.Nodes()[1].Addr)
	var reply string
	//nolint:forbidigo // polling: there is no event
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if role, ok := do("n1", "ROLE").([]any); !ok || role[0] != "slave" {
			continue
		}
		reply = fmt.Sprint(do("n1", "MIGRATE", host, port, "", 0, 500, "AUTH", c.Endpoints(0).Password, "KEYS", "{orders}1"))
		if !strings.Contains(reply, "CLUSTERDOWN") { // on a busy machine nodes lose sight of each other
			break
		}
	}
	return strings.ReplaceAll(reply, c.Nodes()[3].Addr, "n4")
}

// TestReplicaMigratesNoSlot: a master that becomes a replica forgets which of its slots migrate, and moves no keys.
func TestReplicaMigratesNoSlot(t *testing.T) {
	simulate(t, sim.Config{Topology: cluster.Topology{Kind: cluster.Sharded}, Seed: 1, Password: "p"}, func(w *world) {
		if got := migrateFromReplica(w.ctx, w.Cluster); !strings.HasSuffix(got, "MOVED 105 n4") {
			t.Errorf("MIGRATE replies %s", got)
		}
	})
	if _, err := process.Version(t.Context(), ""); err != nil {
		t.Skip("NOT COMPARED: needs real servers: ", err)
	}
	withReal(t, cluster.Topology{Kind: cluster.Sharded}, func(c *process.Cluster) {
		if got := migrateFromReplica(t.Context(), c); !strings.HasSuffix(got, "MOVED 105 n4") {
			t.Errorf("MIGRATE of a real server replies %s", got)
		}
	})
}
