// Package topology is promised API: the kinds of lock servers that a run can have, and their addresses. It imports
// nothing of the project. Read [Endpoints] first.
package topology

import (
	"fmt"
	"slices"
)

// Kinds of topology, in [Endpoints].
const (
	Single     = "single"     // one master
	Replicated = "replicated" // one master and replicas, promoted by hand
	Sentinel   = "sentinel"   // one master, replicas, and Sentinels that promote one of them
	Sharded    = "cluster"    // Redis Cluster: masters that share the keys, each with replicas that take over
	Quorum     = "quorum"     // N independent masters
	ZooKeeper  = "zookeeper"  // an ensemble of ZooKeeper servers
	Etcd       = "etcd"       // a cluster of etcd members
	Postgres   = "postgres"   // one PostgreSQL server, or a primary and a standby that is promoted by hand
	MySQL      = "mysql"      // one MariaDB or MySQL server
	Command    = "command"    // programs of the user, or servers that run already: of any kind
	None       = "none"       // no servers: the lock brings its own, or needs none
)

// ZooKeeperRoot is the parent of the locks of native clients in ZooKeeper: the lock of key is at ZooKeeperRoot/key.
const ZooKeeperRoot = "/locks"

// EtcdRoot begins the keys of the locks of native clients in etcd: keys of lock key begin with EtcdRoot/key/.
const EtcdRoot = "/locks"

// PostgresUser is the name of the user and of the database of clients of PostgreSQL.
const PostgresUser = "postgres"

// MySQLUser is the name of the user and of the database of clients of MariaDB and MySQL.
const MySQLUser = "lockchaos"

// Endpoints are the addresses of the lock servers, as "host:port".
type Endpoints struct {
	Kind       string   `json:"kind"`                  // one of the kinds above
	Addrs      []string `json:"addrs,omitempty"`       // quorum, cluster, zookeeper, etcd, command: all masters or members; sentinel: none; else one
	Sentinels  []string `json:"sentinels,omitempty"`   // sentinel: where to ask for the master
	MasterName string   `json:"master_name,omitempty"` // sentinel: name of the master
	Password   string   `json:"password,omitempty"`    // of every server and Sentinel (AUTH), of [PostgresUser] or [MySQLUser]; empty: none
	Source     string   `json:"source,omitempty"`      // IP to connect from: faults identify a client by it; empty: any
	// Gates are where to connect instead of the addresses that servers announce (MOVED, CLUSTER SLOTS, SENTINEL), by
	// announced address; nil: the announced addresses are right. One that it lacks must not be used.
	Gates map[string]string `json:"gates,omitempty"`
}

// Gate is where to connect for addr, which is a gate already or announced by a server. A server without a gate, which
// may have joined since the run began, is not used: no fault would reach it.
func (e Endpoints) Gate(addr string) (string, error) {
	if slices.Contains(e.Addrs, addr) || slices.Contains(e.Sentinels, addr) {
		return addr, nil
	}
	if through, ok := e.Gates[addr]; ok {
		return through, nil
	}
	return "", fmt.Errorf("endpoints.gates has no gate for %s", addr)
}
