package cluster

import (
	"errors"
	"fmt"
	"time"
)

// TopologySpec is a row of the catalog of topologies.
type TopologySpec struct {
	Name string
	Doc  string // one sentence
}

// Topologies is every kind of topology.
func Topologies() []TopologySpec {
	return []TopologySpec{
		{Single, "one master, no replica."},
		{Replicated, "one master and replicas (2), promoted by hand: the master's address moves to the replica."},
		{Sentinel, "one master, replicas (2), and Sentinels (3) that promote a replica when the master dies."},
		{Sharded, "Redis Cluster: masters (3) that share the keys, each with replicas (1) that take over by vote."},
		{Quorum, "N independent masters (5), each alone or with replicas, for RedLock."},
		{ZooKeeper, "a ZooKeeper ensemble of members (3 or 5): a leader and followers."},
		{Etcd, "an etcd cluster of members (3 or 5): a leader and followers."},
		{Postgres, "one PostgreSQL server, or a primary and a hot standby (replicas: 1), promoted by hand."},
		{MySQL, "one MariaDB or MySQL server."},
		{Command, "servers of your own: nodes (1), each started with a command line that you give, or running already."},
		{None, "no servers: the lock brings its own, or needs none; only clients fail."},
	}
}

// Defaults replaces every zero count in t by the kind's default.
func (t Topology) Defaults() Topology {
	set := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	switch t.Kind {
	case Quorum:
		set(&t.Masters, 5)
	case Sharded:
		set(&t.Masters, 3)
		set(&t.Replicas, 1)
	case Replicated:
		set(&t.Replicas, 2)
	case Sentinel:
		set(&t.Replicas, 2)
		set(&t.Sentinels, 3)
		set(&t.SentinelQuorum, t.Sentinels/2+1)
		if t.DownAfter == 0 {
			t.DownAfter = DefaultDownAfter
		}
	case ZooKeeper, Etcd:
		set(&t.Members, 3)
	case Command:
		set(&t.Nodes, max(1, len(t.Addrs)))
	}
	return t
}

// Bounds of a topology on one machine.
const (
	maxNodes     = 15
	minSentinels = 3 // the survivor of two has no majority (redis.io, Sentinel)
	minShards    = 3 // the survivor of two has no majority to vote with (redis.io, Cluster)
	maxDownAfter = time.Hour
)

// DefaultDownAfter is Topology.DownAfter of a topology that sets none.
const DefaultDownAfter = 500 * time.Millisecond

// Validate checks t, after Defaults.
func (t Topology) Validate() error {
	if t.Kind != Sentinel && t.Sentinels != 0 {
		return fmt.Errorf("topology %s has no sentinels: leave them out", t.Kind)
	}
	if t.Kind != Sentinel && t.SentinelQuorum != 0 {
		return fmt.Errorf("topology %s has no Sentinels: leave sentinel_quorum out", t.Kind)
	}
	if t.Kind != Sentinel && t.DownAfter != 0 {
		return fmt.Errorf("topology %s has no Sentinels: leave down_after out", t.Kind)
	}
	if t.DownAfter != t.DownAfter.Truncate(time.Millisecond) || t.DownAfter < 0 || t.DownAfter > maxDownAfter {
		return fmt.Errorf("down_after %v: expected whole milliseconds, at most %v", t.DownAfter, maxDownAfter)
	}
	if !t.Ensemble() && t.Members != 0 {
		return fmt.Errorf("topology %s has no members: leave them out", t.Kind)
	}
	if err := t.checkCommand(); err != nil {
		return err
	}
	switch t.Kind {
	case Command:
	case None:
		if t.Masters != 0 || t.Replicas != 0 {
			return errors.New("topology none has no servers: leave out masters and replicas")
		}
	case ZooKeeper, Etcd:
		if t.Masters != 0 || t.Replicas != 0 || t.Members != 3 && t.Members != 5 {
			return fmt.Errorf("topology %s has 3 or 5 members, not %d, and no masters or replicas", t.Kind, t.Members)
		}
	case Postgres:
		if t.Masters > 1 || t.Replicas < 0 || t.Replicas > 1 {
			return fmt.Errorf("topology postgres has one primary and at most one standby, not %d masters and %d replicas",
				t.Masters, t.Replicas)
		}
	case Single, MySQL:
		if t.Masters > 1 || t.Replicas != 0 {
			return fmt.Errorf("topology %s is one master alone: leave out masters, replicas and sentinels", t.Kind)
		}
	case Replicated, Sentinel:
		if t.Masters > 1 || t.Replicas < 1 || t.Replicas > maxNodes-1 {
			return fmt.Errorf("topology %s has one master and 1 to %d replicas, not %d", t.Kind, maxNodes-1, t.Replicas)
		}
		if t.Kind == Sentinel && (t.Sentinels < minSentinels || t.Sentinels > maxNodes) {
			return fmt.Errorf("topology sentinel has %d to %d sentinels, not %d", minSentinels, maxNodes, t.Sentinels)
		}
		if t.Kind == Sentinel && (t.SentinelQuorum < 1 || t.SentinelQuorum > t.Sentinels) {
			return fmt.Errorf("sentinel_quorum is from 1 to the number of sentinels, %d, not %d", t.Sentinels, t.SentinelQuorum)
		}
	case Sharded:
		if t.Masters < minShards || t.Replicas < 0 || t.Masters > maxNodes || t.Size() > maxNodes {
			return fmt.Errorf("topology cluster has %d to %d nodes, at least %d of them masters, not %d masters "+
				"with %d replicas each", minShards, maxNodes, minShards, t.Masters, t.Replicas)
		}
	case Quorum:
		if t.Masters < 3 || t.Masters > maxNodes || t.Masters%2 == 0 {
			return fmt.Errorf("topology quorum has an odd number of masters from 3 to %d, not %d", maxNodes, t.Masters)
		}
		if t.Replicas < 0 || t.Size() > maxNodes {
			return fmt.Errorf("topology quorum has at most %d nodes, not %d masters with %d replicas each",
				maxNodes, t.Masters, t.Replicas)
		}
	default:
		return fmt.Errorf("unknown topology %q", t.Kind)
	}
	return nil
}

// Size is the number of data servers.
func (t Topology) Size() int {
	t = t.Defaults()
	switch {
	case t.Kind == None:
		return 0
	case t.Kind == Command:
		return min(max(t.Nodes, 0), maxNodes)
	case t.Ensemble():
		return min(max(t.Members, 0), maxNodes)
	}
	return t.MasterCount() * (1 + min(max(t.Replicas, 0), maxNodes))
}

// Voters is how many servers decide together: the masters of a quorum, the members of an ensemble, the servers of the
// user if there are several; 0: none do.
func (t Topology) Voters() int {
	t = t.Defaults()
	switch {
	case t.Kind == Quorum:
		return t.Masters
	case t.Kind == Command && t.Nodes > 1:
		return t.Nodes
	}
	return t.Members
}

// Redis reports whether the servers are Redis servers whose commands the harness knows.
func (t Topology) Redis() bool {
	return !t.Ensemble() && t.Kind != Command && !t.Database() && t.Kind != None
}

// Database reports whether the servers are servers of a SQL database.
func (t Topology) Database() bool { return t.Kind == Postgres || t.Kind == MySQL }

// Given reports whether nothing is known of the servers but their addresses: they run already, or there are none. Only
// clients and their connections can have faults.
func (t Topology) Given() bool { return len(t.Addrs) > 0 || t.Kind == None }

// StandsFor reports whether the user's servers can take the place of the servers of a scenario: of its only server, or
// of the members of an ensemble.
func (t Topology) StandsFor(kind string) bool {
	return kind == Single || kind == ZooKeeper && t.Size() > 1 || kind == t.Kind
}

// Ensemble reports whether the servers are members that decide by majority: ZooKeeper's or etcd's.
func (t Topology) Ensemble() bool { return t.Kind == ZooKeeper || t.Kind == Etcd }

// Software is the name of the servers' software: redis, zookeeper, etcd, postgres or mysql; of kind command the
// program's.
func (t Topology) Software() string {
	switch {
	case t.Redis():
		return "redis"
	case t.Kind == Command:
		return t.program()
	}
	return t.Kind
}

// MasterCount is the number of masters that a cluster starts with: nodes n1, n2, …
// The nodes after them are replicas, of the masters in turn (see MasterOf). An ensemble has one, its leader, which it
// chooses itself: any of its members.
func (t Topology) MasterCount() int {
	t = t.Defaults()
	if t.Kind == Quorum || t.Kind == Sharded {
		return t.Masters
	}
	return 1
}

// Priority is the replica-priority of node i (from 1), by which Sentinels choose, lowest first: n2, n3, …, and n1 last.
// So their choice does not depend on run ids.
func (t Topology) Priority(i int) int {
	if i == 1 {
		return 10 * (t.Size() + 1)
	}
	return 10 * i
}

// MasterOf is the number of the master that node i (from 1) replicates from at
// the start; 0 if it is one itself.
func (t Topology) MasterOf(i int) int {
	masters := t.MasterCount()
	if i <= masters {
		return 0
	}
	return (i-masters-1)%masters + 1
}
