package process

import (
	"crypto/sha1"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// failoverTimeoutMS is Sentinel's failover-timeout. With it and [cluster.DefaultDownAfter], a replica was promoted
// 0.80 to 0.88 s after the kill of the master (10 runs, redis-server 7.0.15); 1.82 to 1.92 s if the kill fell into the
// Sentinels' first second (5 runs): a Sentinel connects to a server once a second at most, and counts the attempt as a
// sign of life.
const failoverTimeoutMS = 2000

// validate checks the topology, with its defaults filled in, and its options.
func validate(t cluster.Topology) error {
	if err := t.Validate(); err != nil {
		return err
	}
	for name, value := range t.Options {
		if err := t.CheckDirective(name, value); err != nil {
			return err
		}
	}
	return nil
}

// redisConfig is the configuration file of s. Redis rewrites it when a role changes
// (Sentinel sends CONFIG REWRITE), so a restarted server has its last role, as in
// production.
func (c *Cluster) redisConfig(s *server) string {
	directives := c.common(s)
	if s.Sentinel {
		return directives + c.sentinelConfig(s)
	}
	return directives + c.nodeConfig(s)
}

func (c *Cluster) common(s *server) string {
	var b strings.Builder
	p := s.location
	fmt.Fprintf(&b, "port %d\nprotected-mode no\ndaemonize no\ndir %q\n", p.Port, s.inside(s.disk))
	fmt.Fprintf(&b, "requirepass %s\n", c.password) // Sentinels use their own for each other
	if p.Bind {
		fmt.Fprintf(&b, "bind %s\nbind-source-addr %[1]s\n", p.IP)
	}
	if p.Log != "" {
		fmt.Fprintf(&b, "logfile %q\n", p.Log)
	}
	if p.Socket != "" {
		fmt.Fprintf(&b, "unixsocket %q\nunixsocketperm 700\n", s.inside(filepath.Join(s.dir, p.Socket)))
	}
	return b.String()
}

func (c *Cluster) nodeConfig(s *server) string {
	options := map[string]string{
		"save":                      "",
		"appendonly":                "no",
		"enable-debug-command":      "local",
		"enable-protected-configs":  "local", // a fault changes dbfilename
		"repl-diskless-sync-delay":  "0",     // attach at once instead of after 5 s
		"repl-ping-replica-period":  "1",
		"replica-priority":          fmt.Sprint(c.topology.Priority(s.I)),
		"replica-serve-stale-data":  "yes",
		"slowlog-log-slower-than":   "-1",
		"latency-monitor-threshold": "0",
	}
	maps.Copy(options, c.topology.Options)
	var b strings.Builder
	fmt.Fprintf(&b, "masterauth %s\n", c.password)
	fmt.Fprintf(&b, "replica-announce-ip %s\nreplica-announce-port %d\n", s.location.Gate.Addr(), s.location.Gate.Port())
	for _, name := range slices.Sorted(maps.Keys(options)) {
		value := options[name]
		if value == "" {
			value = `""`
		}
		fmt.Fprintln(&b, name, value)
	}
	if c.topology.Kind == cluster.Sharded {
		c.sharded(&b, s)
	} else if m := c.topology.MasterOf(s.I); m > 0 {
		gate := c.nodes[m-1].location.Gate
		fmt.Fprintf(&b, "replicaof %s %d\n", gate.Addr(), gate.Port())
	}
	return b.String()
}

// nodeTimeoutMS is cluster-node-timeout. With 500 ms a replica was promoted 1.4 to
// 2.0 s after the kill of its master, with 1,000 ms 2.2 to 2.9 s; the spread is the
// random delay of the election.
const nodeTimeoutMS = 500

// sharded makes s a node of a Redis Cluster. Its cluster bus has its own gate, so
// that partitions between nodes cut votes and gossip as well as replication.
func (c *Cluster) sharded(b *strings.Builder, s *server) {
	fmt.Fprintf(b, "cluster-enabled yes\ncluster-config-file %q\ncluster-port %d\n",
		s.inside(filepath.Join(s.dir, "nodes.conf")), s.location.BusPort)
	fmt.Fprintf(b, "cluster-announce-ip %s\ncluster-announce-port %d\ncluster-announce-bus-port %d\n",
		s.location.Gate.Addr(), s.location.Gate.Port(), s.location.BusGate.Port())
	options := map[string]string{"cluster-node-timeout": fmt.Sprint(nodeTimeoutMS), "cluster-replica-validity-factor": "0"}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if _, given := c.topology.Options[name]; !given {
			fmt.Fprintln(b, name, options[name])
		}
	}
}

// sentinelConfig also lists the replicas and Sentinels, as a Sentinel's saved state
// does. To discover them would take more than two seconds: Sentinels publish their
// hello messages every two seconds.
func (c *Cluster) sentinelConfig(s *server) string {
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, "sentinel "+format+"\n", args...) }
	add("myid %s", c.sentinelID(s))
	at := func(s *server) string { return fmt.Sprintf("%s %d", s.location.Gate.Addr(), s.location.Gate.Port()) }
	add("announce-ip %s", s.location.Gate.Addr())
	add("announce-port %d", s.location.Gate.Port())
	add("monitor %s %s %d", masterName, at(c.nodes[0]), c.topology.SentinelQuorum)
	add("auth-pass %s %s", masterName, c.password)
	add("down-after-milliseconds %s %d", masterName, c.topology.DownAfter.Milliseconds())
	add("failover-timeout %s %d", masterName, failoverTimeoutMS)
	add("parallel-syncs %s %d", masterName, len(c.nodes)-1)
	for _, n := range c.nodes[1:] {
		add("known-replica %s %s", masterName, at(n))
	}
	for _, other := range c.sentinels {
		if other != s {
			add("known-sentinel %s %s %s", masterName, at(other), c.sentinelID(other))
		}
	}
	return b.String()
}

// sentinelID is the 40 hexadecimal digits by which Sentinels know each other.
func (c *Cluster) sentinelID(s *server) string {
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "lockchaos %s %s", s.name, s.location.Gate)))
}
