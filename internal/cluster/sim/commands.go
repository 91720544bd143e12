package sim

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/engine"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// engineConfig is the configuration of a data server's engine.
func (n *node) engineConfig() engine.Config {
	var broadcast func(channel, message []byte, shard bool)
	extra := map[string]engine.Command{
		"role": n.cmdRole, "wait": n.cmdWait, "replicaof": n.cmdReplicaOf, "slaveof": n.cmdReplicaOf,
		"config|rewrite": n.cmdRewrite, "shutdown": n.cmdShutdown, "debug|sleep": n.cmdSleep,
	}
	if n.bus != nil {
		extra["cluster"], extra["asking"], extra["migrate"] = n.cmdCluster, n.cmdAsking, n.cmdMigrate
		broadcast = n.broadcast
	}
	return engine.Config{
		Now: n.Wall, Seed: network.Mix(n.World.Seed, network.NameHash(n.Name)+uint64(n.Life)), Version: version, Port: 6379,
		Password: n.cluster.config.Password,
		Guard:    n.guard, Propagate: n.propagate, Broadcast: broadcast, Info: n.info, AOF: n.infoDisk,
		Extra: extra, Cluster: n.bus != nil,
	}
}

// guard counts a client's command and returns its error if the server's role does not allow it.
func (n *node) guard(c *engine.Conn, cmd *engine.Spec, args [][]byte) string {
	if !c.Scripted() {
		n.World.Commands++
		n.countReceived(c, cmd, args)
		if n.bus != nil && c != n.harness.peer {
			keys := cmd.Keys(args)
			if cmd.Name == "exec" {
				c.EachQueued(func(spec *engine.Spec, args [][]byte) { keys = append(keys, spec.Keys(args)...) })
			}
			if elsewhere := n.routed(keys, n.takeAsking(c), onShardChannels(cmd)); elsewhere != "" {
				return elsewhere
			}
		}
	}
	if c.FlagsOf(cmd)&engine.Write == 0 {
		return ""
	}
	if n.repl.master != "" {
		return "READONLY You can't write against a read only replica."
	}
	if least := n.minReplicas; least > 0 && n.goodReplicas() < least {
		return "NOREPLICAS Not enough good replicas to write."
	}
	return ""
}

// roleChanged passes the server's role to its engine.
func (n *node) roleChanged() { n.server.SetReplica(n.repl.master != "") }

// cmdRole is ROLE.
func (n *node) cmdRole(c *engine.Conn, _ [][]byte) {
	r := &n.repl
	if r.master != "" {
		host, port := network.SplitAddr(r.master)
		c.Write([]any{"slave", host, port, n.linkState(), n.shownOffset()})
		return
	}
	var replicas []any
	for _, a := range n.online() {
		host, port, _ := strings.Cut(a.addr, ":")
		replicas = append(replicas, []any{host, port, strconv.FormatInt(a.offset, 10)})
	}
	c.Write([]any{"master", r.offset, replicas})
}

// shownOffset is the offset in a replica's ROLE, -1 while it is not connected.
func (n *node) shownOffset() int64 {
	if n.linkState() != linkConnected {
		return -1
	}
	return n.repl.offset
}

func (n *node) online() []*attached {
	var list []*attached
	for _, a := range n.repl.replicas {
		if a.online {
			list = append(list, a)
		}
	}
	return list
}

// wait is a client blocked in WAIT.
type wait struct {
	conn   *engine.Conn
	offset int64
	need   int
}

// cmdWait is WAIT: it counts the replicas that have acknowledged the connection's last write.
func (n *node) cmdWait(c *engine.Conn, args [][]byte) {
	need, ms := c.ParseWait(args)
	w := &wait{conn: c, need: int(need)}
	if s := n.feeding; s != nil && s.peer == c {
		n.keepOffset(s)
		w.offset = s.wrote
	}
	if have := n.acknowledged(w.offset); have >= w.need || !c.MayBlock() {
		c.WriteInt(int64(have))
		return
	}
	until := time.Time{}
	if ms > 0 {
		until = n.Wall().Add(time.Duration(ms) * time.Millisecond)
	}
	n.waits = append(n.waits, w)
	c.Block(until, func() {
		n.forgetWait(w)
		c.WriteInt(int64(n.acknowledged(w.offset)))
	})
	if !n.unreplicated {
		n.feed(entry{size: getackSize, getack: true})
	}
}

// keepOffset records the offset of the session's last write.
func (n *node) keepOffset(s *session) {
	if n.repl.offset > n.fedFrom {
		s.wrote = n.repl.offset
		n.fedFrom = n.repl.offset
	}
}

func (n *node) acknowledged(offset int64) int {
	count := 0
	for _, a := range n.online() {
		if a.offset >= offset {
			count++
		}
	}
	return count
}

func (n *node) forgetWait(gone *wait) {
	n.waits = slices.DeleteFunc(n.waits, func(w *wait) bool { return w == gone })
}

// endWaits unblocks clients in WAIT whose replicas have acknowledged, and all of them at a server that became a
// replica.
func (n *node) endWaits() {
	var ended []*wait
	for _, w := range n.waits {
		if n.repl.master != "" || n.acknowledged(w.offset) >= w.need {
			ended = append(ended, w)
		}
	}
	if len(ended) == 0 {
		return
	}
	n.server.Serve(func() {
		for _, w := range ended {
			n.forgetWait(w)
			w.conn.Unblock()
			if n.repl.master != "" {
				w.conn.WriteError("UNBLOCKED force unblock from blocking operation, instance state changed " +
					"(master -> replica?)")
				continue
			}
			w.conn.WriteInt(int64(n.acknowledged(w.offset)))
		}
	})
	n.done()
}

// cmdReplicaOf is REPLICAOF. It takes effect after the command: it may unblock other clients, which is not allowed
// within a command.
func (n *node) cmdReplicaOf(c *engine.Conn, args [][]byte) {
	c.FailIf(len(args) != 3, "ERR wrong number of arguments for '"+strings.ToLower(string(args[0]))+"' command")
	addr := net.JoinHostPort(string(args[1]), string(args[2]))
	if strings.EqualFold(string(args[1]), "no") && strings.EqualFold(string(args[2]), "one") {
		addr = ""
	} else if port, err := strconv.Atoi(string(args[2])); err != nil || port < 0 || port > 65535 {
		c.Fail("ERR Invalid master port")
	} else if addr == n.repl.master {
		c.WriteStatus("OK Already connected to specified master")
		return
	}
	if n.unreplicated { // it kept no backlog so far
		n.unreplicated = false
		n.After(replCron, n.replicationCron)
	}
	c.WriteStatus("OK")
	n.afterCommands = append(n.afterCommands, func() { n.follow(addr) })
}

// cmdRewrite is CONFIG REWRITE: the server starts with its present role next time.
func (n *node) cmdRewrite(c *engine.Conn, _ [][]byte) {
	n.afterCommands = append(n.afterCommands, func() { n.repl.saved = n.repl.master })
	c.WriteStatus("OK")
}

func (n *node) cmdShutdown(*engine.Conn, [][]byte) { n.After(1, n.Kill) }

// cmdSleep is DEBUG SLEEP.
func (n *node) cmdSleep(c *engine.Conn, args [][]byte) {
	if len(args) == 3 {
		if seconds, err := strconv.ParseFloat(string(args[2]), 64); err == nil && seconds >= 0 {
			n.Busy = n.World.Now() + int64(seconds*float64(time.Second))
		}
	}
	c.WriteStatus("OK")
}

// info is INFO replication.
func (n *node) info(section string) string {
	if section != "replication" {
		return ""
	}
	r := &n.repl
	var b strings.Builder
	line := func(name string, value any) { fmt.Fprintf(&b, "%s:%v\r\n", name, value) }
	b.WriteString("# Replication\r\n")
	if r.master == "" {
		line("role", "master")
	} else {
		n.replicaInfo(line)
	}
	online := n.online()
	line("connected_slaves", len(online))
	for i, a := range online {
		host, port := network.SplitAddr(a.addr)
		line("slave"+strconv.Itoa(i), fmt.Sprintf("ip=%s,port=%d,state=online,offset=%d,lag=%d",
			host, port, a.offset, (n.World.Now()-a.heard)/int64(time.Second)))
	}
	if r.master == "" && n.minReplicas > 0 {
		line("min_slaves_good_slaves", n.goodReplicas())
	}
	replid2, second := r.replid2, r.offset2
	if replid2 == "" {
		replid2, second = strings.Repeat("0", 40), -1
	}
	line("master_failover_state", "no-failover")
	line("master_replid", r.replid)
	line("master_replid2", replid2)
	line("master_repl_offset", r.offset)
	line("second_repl_offset", second)
	line("repl_backlog_active", boolInt(r.kept > 0))
	line("repl_backlog_size", backlogSize)
	line("repl_backlog_first_byte_offset", r.offset-r.kept+1)
	line("repl_backlog_histlen", r.kept)
	return b.String()
}

func (n *node) replicaInfo(line func(string, any)) {
	r := &n.repl
	host, port := network.SplitAddr(r.master)
	up, ago := n.linkState() == linkConnected, int64(-1)
	if r.up != nil && up {
		ago = (n.World.Now() - r.up.heard) / int64(time.Second)
	}
	line("role", "slave")
	line("master_host", host)
	line("master_port", port)
	line("master_link_status", map[bool]string{true: "up", false: "down"}[up])
	line("master_last_io_seconds_ago", ago)
	line("master_sync_in_progress", boolInt(n.linkState() == linkSync))
	line("slave_read_repl_offset", r.offset)
	line("slave_repl_offset", r.offset)
	if !up {
		line("master_link_down_since_seconds", (n.World.Now()-r.downAt)/int64(time.Second))
	}
	line("slave_priority", n.priority)
	line("slave_read_only", 1)
	line("replica_announced", 1)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
