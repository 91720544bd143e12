package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/engine"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// cmdCluster is CLUSTER and its subcommands.
func (n *node) cmdCluster(c *engine.Conn, args [][]byte) {
	c.FailIf(len(args) < 2, "ERR wrong number of arguments for 'cluster' command")
	switch sub := strings.ToLower(string(args[1])); {
	case sub == "slots":
		n.cmdClusterSlots(c)
	case sub == "shards":
		n.cmdClusterShards(c)
	case sub == "nodes":
		n.cmdClusterNodes(c)
	case sub == "info":
		n.cmdClusterInfo(c)
	case sub == "failover":
		n.cmdClusterFailover(c, args)
	case sub == "myid":
		c.WriteBulkString(n.bus.id)
	case sub == "setslot" && len(args) >= 4:
		n.cmdSetSlot(c, args)
	case sub == "getkeysinslot" && len(args) == 4:
		n.cmdGetKeysInSlot(c, args)
	case sub == "keyslot" && len(args) == 3:
		c.Write(keySlot(args[2]))
	default:
		c.WriteError(fmt.Sprintf("ERR unknown subcommand '%.128s'. Try CLUSTER HELP.", args[1]))
	}
}

// group is a master, the first one, and its replicas, as this node knows them.
func (n *node) group(owner int) []*node {
	group := []*node{n.cluster.nodes[owner]}
	for i, other := range n.cluster.nodes {
		of := n.masterIndex()
		if p := n.peer(i); p != nil {
			of = p.master
			if p.fail {
				continue
			}
		}
		if of == owner && i != owner {
			group = append(group, other)
		}
	}
	return group
}

func (n *node) cmdClusterSlots(c *engine.Conn) {
	var rows []any
	for _, r := range n.slotRanges() {
		row := []any{r.first, r.last}
		for _, o := range n.group(r.owner) {
			host, port := network.SplitAddr(o.Addr)
			row = append(row, []any{host, port, o.bus.id, []any{}})
		}
		rows = append(rows, row)
	}
	c.Write(rows)
}

func (n *node) cmdClusterShards(c *engine.Conn) {
	var shards []any
	for _, owner := range n.bus.owner {
		var slots, nodes []any
		for _, r := range n.slotRanges() {
			if r.owner == owner {
				slots = append(slots, r.first, r.last)
			}
		}
		for i, o := range n.group(owner) {
			nodes = append(nodes, n.shardNode(o, i == 0))
		}
		shards = append(shards, engine.Fields{"slots", slots, "nodes", nodes})
	}
	c.Write(shards)
}

func (n *node) shardNode(o *node, master bool) engine.Fields {
	host, port := network.SplitAddr(o.Addr)
	role, offset, health := "replica", n.repl.offset, "online"
	if master {
		role = "master"
	}
	if p := n.peer(o.Index); p != nil {
		offset = p.offset
		if p.fail {
			health = "fail"
		}
	}
	return engine.Fields{"id", o.bus.id, "ip", host, "endpoint", host, "role", role, "health", health, "port", port,
		"replication-offset", offset}
}

func (n *node) cmdClusterNodes(c *engine.Conn) {
	var b strings.Builder
	for i, o := range n.cluster.nodes {
		host, port := network.SplitAddr(o.Addr)
		p, of, config := n.peer(i), n.masterIndex(), n.configOf(i)
		flags, link, pingAt, pongAt := "myself,", "connected", int64(0), int64(0)
		if p != nil {
			flags, of, pingAt, pongAt = "", p.master, p.pingAt, p.pongAt
			if p.wire == nil || !p.wire.up {
				link = "disconnected"
			}
		}
		master := "-"
		if of >= 0 {
			flags += "slave"
			master = n.cluster.nodes[of].bus.id
		} else {
			flags += "master"
		}
		if p != nil && p.fail {
			flags += ",fail"
		} else if p != nil && p.pfail {
			flags += ",fail?"
		}
		fmt.Fprintf(&b, "%s %s:%d@%d %s %s %d %d %d %s", o.bus.id, host, port, port+10000, flags, master, pingAt, pongAt,
			config, link)
		for _, r := range n.slotRanges() {
			switch {
			case r.owner != i:
			case r.first == r.last:
				fmt.Fprintf(&b, " %d", r.first)
			default:
				fmt.Fprintf(&b, " %d-%d", r.first, r.last)
			}
		}
		b.WriteByte('\n')
	}
	c.WriteVerbatim(b.String())
}

func (n *node) cmdClusterInfo(c *engine.Conn) {
	pfail, fail := 0, 0
	for s, owner := range n.bus.owner {
		first, last := n.cluster.bounds(s)
		if p := n.peer(owner); p != nil && p.fail {
			fail += last - first + 1
		} else if p != nil && p.pfail {
			pfail += last - first + 1
		}
	}
	state := map[bool]string{true: "ok", false: "fail"}[n.bus.ok]
	c.WriteVerbatim(fmt.Sprintf("cluster_state:%s\r\ncluster_slots_assigned:%d\r\ncluster_slots_ok:%d\r\n"+
		"cluster_slots_pfail:%d\r\ncluster_slots_fail:%d\r\ncluster_known_nodes:%d\r\ncluster_size:%d\r\n"+
		"cluster_current_epoch:%d\r\ncluster_my_epoch:%d\r\n", state, slots, slots-pfail-fail, pfail, fail,
		len(n.cluster.nodes), n.voters(), n.bus.epoch, n.configOf(n.Index)))
}

// configOf is the configEpoch of a node, or of the master of a replica.
func (n *node) configOf(index int) int64 {
	p := n.peer(index)
	if p == nil {
		if m := n.peer(n.masterIndex()); m != nil {
			return m.config
		}
		return n.bus.config
	}
	if p.master < 0 {
		return p.config
	}
	if m := n.peer(p.master); m != nil {
		return m.config
	}
	return n.bus.config
}

func (n *node) cmdClusterFailover(c *engine.Conn, args [][]byte) {
	how := ""
	if len(args) > 2 {
		how = strings.ToUpper(string(args[2]))
	}
	c.FailIf(len(args) > 3 || how != "" && how != "FORCE" && how != "TAKEOVER", "ERR syntax error")
	why := n.manualFailover(how)
	c.FailIf(why != "", why)
	c.WriteStatus("OK")
}

// unjoined reports a node that does not see the whole cluster yet, "" if all do.
func (c *Cluster) unjoined() string {
	for _, n := range c.nodes {
		if n.bus == nil {
			return ""
		}
		if !n.bus.ok {
			return n.Name + " reports cluster_state:fail"
		}
		for _, p := range n.bus.peers {
			if p.wire == nil || !p.wire.up || p.pongAt == n.bus.started || p.fail || p.pfail {
				return n.Name + " has no connection to n" + strconv.Itoa(p.node.Index+1)
			}
		}
	}
	return ""
}
