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

// Sentinel's times. With these, 0.80 to 0.88 s after the kill of a master a
// replica was master (10 runs, redis-server 7.0.15). If the kill falls into the
// Sentinels' first second it was 1.82 to 1.92 s (5 runs): a Sentinel connects
// to a server once a second at most, and counts the attempt as a sign of life.
const (
	downAfterMS       = 500
	failoverTimeoutMS = 2000
)

// reserved are the directives that the address scheme and the clean-up rest on.
var reserved = []string{"bind", "bind-source-addr", "cluster-announce-bus-port", "cluster-announce-ip",
	"cluster-announce-port", "cluster-config-file", "cluster-enabled", "cluster-port", "daemonize", "dir", "include",
	"loadmodule", "logfile", "pidfile", "port", "protected-mode", "replica-announce-ip", "replica-announce-port",
	"replicaof", "requirepass", "slaveof", "supervised", "syslog-enabled", "unixsocket"}

// Validate checks the topology, with its defaults filled in, and that its options leave the harness's own alone.
func Validate(t cluster.Topology) error {
	if err := t.Validate(); err != nil {
		return err
	}
	for name, value := range t.Options {
		if slices.Contains(reserved, strings.ToLower(name)) {
			return fmt.Errorf("option %q of the topology is the harness's own: leave it out", name)
		}
		if name == "" || strings.ContainsAny(name, " \t\r\n\"'#") || strings.ContainsAny(value, "\r\n") {
			return fmt.Errorf("option %q with value %q of the topology is not one redis.conf directive", name, value)
		}
	}
	return nil
}

// config is the configuration file of s. Redis rewrites it when a role changes
// (Sentinel asks for CONFIG REWRITE), so that a restarted server comes back as
// what it last was, as in production.
func (c *Cluster) config(s *server) string {
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
		"repl-diskless-sync-delay":  "0", // attach at once instead of after 5 s
		"repl-ping-replica-period":  "1",
		"replica-priority":          fmt.Sprint(c.priority(s)),
		"replica-serve-stale-data":  "yes",
		"slowlog-log-slower-than":   "-1",
		"latency-monitor-threshold": "0",
	}
	maps.Copy(options, c.topology.Options)
	var b strings.Builder
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

// nodeTimeoutMS is after how long a cluster's node calls another one failing. With
// 500 ms a replica had taken over 1.4 to 2.0 s after the kill of its master, with
// 1,000 ms 2.2 to 2.9 s; the spread is the election's own delay by chance.
const nodeTimeoutMS = 500

// sharded is what makes s a node of a cluster. Its bus has a gate of its own,
// so that partitions between nodes cut votes and gossip as well as replication.
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

// priority is different for each node, so that Sentinel's choice does not hang
// on chance (lowest first): n2, n3, …, and n1 last.
func (c *Cluster) priority(s *server) int {
	if s.I == 1 {
		return 10 * (len(c.nodes) + 1)
	}
	return 10 * s.I
}

// sentinelConfig also tells a Sentinel, in the words of its own saved state,
// the replicas and Sentinels that it would otherwise have to find out: that
// takes more than two seconds, because they greet each other every two seconds only.
func (c *Cluster) sentinelConfig(s *server) string {
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, "sentinel "+format+"\n", args...) }
	add("myid %s", c.sentinelID(s))
	at := func(s *server) string { return fmt.Sprintf("%s %d", s.location.Gate.Addr(), s.location.Gate.Port()) }
	add("announce-ip %s", s.location.Gate.Addr())
	add("announce-port %d", s.location.Gate.Port())
	add("monitor %s %s %d", MasterName, at(c.nodes[0]), len(c.sentinels)/2+1)
	add("down-after-milliseconds %s %d", MasterName, downAfterMS)
	add("failover-timeout %s %d", MasterName, failoverTimeoutMS)
	add("parallel-syncs %s %d", MasterName, len(c.nodes)-1)
	for _, n := range c.nodes[1:] {
		add("known-replica %s %s", MasterName, at(n))
	}
	for _, other := range c.sentinels {
		if other != s {
			add("known-sentinel %s %s %s", MasterName, at(other), c.sentinelID(other))
		}
	}
	return b.String()
}

// sentinelID is the 40 hexadecimal digits by which Sentinels know each other.
func (c *Cluster) sentinelID(s *server) string {
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "lockchaos %s %s", s.name, s.location.Gate)))
}
