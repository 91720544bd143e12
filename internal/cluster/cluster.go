// Package cluster defines a set of lock servers and the operations on it, independent of the backend; the packages
// below this one are the backends.
//
// Read [Cluster] first. Every operation beyond connecting and closing is a small
// interface that a backend may implement: [Killer], [Pauser], [Links], [Witness],
// [Inventory], [Promoter], [Address], [Clocks], [Disks], [Admin], [Entries], [Network],
// [Substrate].
// This package contains no faults: package faults combines these operations, and
// checks that each fault took effect.
package cluster

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/topology"

	"github.com/lockchaos/lockchaos/history"
)

// Kinds of topology.
const (
	Single     = topology.Single
	Replicated = topology.Replicated
	Sentinel   = topology.Sentinel
	Sharded    = topology.Sharded
	Quorum     = topology.Quorum
	ZooKeeper  = topology.ZooKeeper
	Etcd       = topology.Etcd
	Postgres   = topology.Postgres
	MySQL      = topology.MySQL
	Command    = topology.Command
	None       = topology.None
)

// Topology describes the servers to start. The zero value is invalid; see Validate.
type Topology struct {
	Kind    string `json:"kind" yaml:"kind"`                           // one of the constants above
	Masters int    `json:"masters,omitempty" yaml:"masters,omitempty"` // quorum: how many, 0 is 5; cluster: 0 is 3
	// Replicas is how many replicas the one master has (0 is 2), or each master (cluster: 0 is 1; quorum: 0 is none).
	Replicas  int `json:"replicas,omitempty" yaml:"replicas,omitempty"`
	Sentinels int `json:"sentinels,omitempty" yaml:"sentinels,omitempty"` // sentinel: how many; 0 is 3
	// SentinelQuorum is how many Sentinels must agree that the master is down before one of them asks for the votes of a
	// majority, which it needs in any case; 0 is a majority.
	SentinelQuorum int `json:"sentinel_quorum,omitempty" yaml:"sentinel_quorum,omitempty"`
	// DownAfter is how long a master must be unresponsive before Sentinels replace it (down-after-milliseconds), in
	// whole milliseconds; 0 is 500 ms.
	DownAfter time.Duration     `json:"down_after_ns,omitempty" yaml:"down_after,omitempty"`
	Members   int               `json:"members,omitempty" yaml:"members,omitempty"` // zookeeper, etcd: how many servers; 0 is 3
	Options   map[string]string `json:"options,omitempty" yaml:"options,omitempty"` // redis.conf directives of data servers, zoo.cfg keys, etcd flags, or settings of PostgreSQL or MySQL

	// What follows is for kind command.

	Nodes int      `json:"nodes,omitempty" yaml:"nodes,omitempty"` // how many servers; 0 is 1, or the number of Addrs
	Addrs []string `json:"addrs,omitempty" yaml:"addrs,omitempty"` // host:port of servers that run already; nil: Run starts them
	// Run starts a server in the foreground: a program and its arguments, split as by a shell, with placeholders; see
	// [Placeholders].
	Run    string            `json:"run,omitempty" yaml:"run,omitempty"`
	Env    map[string]string `json:"env,omitempty" yaml:"env,omitempty"`       // of each server, in addition to this program's; with placeholders
	Ready  *Readiness        `json:"ready,omitempty" yaml:"ready,omitempty"`   // when a server serves clients; nil: when it accepts connections
	Role   *Program          `json:"role,omitempty" yaml:"role,omitempty"`     // prints leader or follower; nil: roles are unknown
	Sample *Program          `json:"sample,omitempty" yaml:"sample,omitempty"` // prints who holds the locks; nil: unknown
	Clock  *Program          `json:"clock,omitempty" yaml:"clock,omitempty"`   // prints the time of a server, in seconds since 1970; nil: unknown
}

// Readiness is when a server of kind command serves clients: one of four conditions. Texts have placeholders.
type Readiness struct {
	TCP     string `json:"tcp,omitempty" yaml:"tcp,omitempty"`         // it accepts connections at the port of that name
	HTTP    string `json:"http,omitempty" yaml:"http,omitempty"`       // a GET of this URL is answered with status 200 to 299
	Command string `json:"command,omitempty" yaml:"command,omitempty"` // this program exits with 0
	Log     string `json:"log,omitempty" yaml:"log,omitempty"`         // its output contains this text
}

// Program is a program of the user that is run for one server, with placeholders.
type Program struct {
	Command string `json:"command" yaml:"command"`
}

// Node is a data server of a cluster.
type Node struct {
	Name string `json:"name"` // "n1", "n2", …; the first master is n1
	Addr string `json:"addr"` // host:port under which clients know it
	// PastGate is the host:port at which other servers reach it past its gate; empty: at none but Addr.
	PastGate string `json:"-"`
}

// Cluster is a set of running servers. Its methods may be called concurrently.
// Close ends every server and frees every address and file; it may be called twice.
type Cluster interface {
	Topology() Topology
	Nodes() []Node
	Endpoints(i int) topology.Endpoints // of client i, counted from 0
	Close(ctx context.Context) error
}

// Killer ends servers as a crash does, and restarts them.
type Killer interface {
	// Kill ends the server at once (SIGKILL) and returns when the process has exited.
	Kill(ctx context.Context, node string) error
	// Restart starts a killed server with the data on its disk and returns when it replies.
	Restart(ctx context.Context, node string) error
}

// Pauser stops servers without ending them: no packet is lost, no timer fires.
type Pauser interface {
	Pause(ctx context.Context, node string) error  // SIGSTOP; returns when every thread is stopped
	Resume(ctx context.Context, node string) error // SIGCONT
}

// Promoter requests a failover in the cluster's own way (SENTINEL FAILOVER). It
// returns when the request is accepted, before the failover is complete, or, where an
// operator promotes a replica, when it accepts writes.
type Promoter interface {
	Promote(ctx context.Context) error
}

// Witness samples nodes through connections that no fault affects.
type Witness interface {
	// Sample is the state of node and keys now. A node that does not reply is a
	// Sample with Up false, not an error. Time and Asked are left zero.
	Sample(ctx context.Context, node string, keys []string) history.Sample
}

// Inventory lists the data in the memory of nodes, past the gates.
type Inventory interface {
	// Keys are the keys of a node with their remaining time to live; negative: none,
	// the key stays until it is removed.
	Keys(ctx context.Context, node string) (map[string]time.Duration, error)
}

// Link is the connections that From dials to To. Ends are names: "n1", "s1" (a
// Sentinel), "client:0", or [Any].
type Link struct{ From, To string }

// Any matches every end of a link.
const Any = "*"

// Direction of bytes on a link.
type Direction int

// The directions. Both is the set of them.
const (
	Forward Direction = 1 << iota // from the dialler to the server: requests
	Back                          // from the server to the dialler: replies, replicated writes
	Both    = Forward | Back
)

// Mode is the treatment of bytes by a gate.
type Mode int

// The modes. Pass is the zero value.
const (
	Pass Mode = iota
	Hold      // keep bytes and deliver them, in order, when the gate passes again: a partition that heals
	Drop      // read and discard bytes; a connection that lost any is reset when the gate passes again
	Cut       // reset open connections and refuse new ones
)

// Twice is when a request is executed a second time. The zero value is never.
type Twice int

// When a request is executed twice.
const (
	// BeforeReply: the client gets the reply to the second execution, as from a proxy that resends a request because the
	// first reply was lost. Requests that the client sends on the same connection meanwhile wait.
	BeforeReply Twice = iota + 1
	// AfterReply: a late copy arrives when the client may have sent other requests. Copies that have not been sent when
	// the rule ends are dropped.
	AfterReply
)

// Rule is the treatment of one direction of a link by a gate. The zero value passes everything at once. Delays keep the
// order of bytes, and end with the rule: delayed bytes are then delivered at once.
type Rule struct {
	Mode   Mode
	Once   bool          // with Hold: bytes held when the rule is set are delivered, and later ones held
	HeldBy time.Time     // with Once: only bytes that arrived before it; zero: all, as in a simulation
	Delay  time.Duration // added to every packet
	Jitter time.Duration // the most that is added on top, drawn for each packet
	Reset  bool          // the connection is reset in place of a packet, which is lost
	OneIn  uint64        // Jitter, Reset and Twice concern one packet (request) in so many, drawn for each; 0: every one
	Seed   uint64        // of random decisions; each connection draws from its own sequence
	Rate   int64         // bytes per second of all connections of a caller together; 0: unlimited
	Mute   bool          // drop published messages, and nothing else; in direction [Back] only
	Silent bool          // connections open when it is set carry nothing from then on, even after it; new ones pass
	// Twice makes Redis servers execute clients' requests that write twice. The gate sends the copy on a connection of its
	// own and drops the reply; in direction [Forward] only. TwiceBy is the longest time between the two, drawn for each.
	Twice   Twice
	TwiceBy time.Duration
}

// Delays reports whether r delays anything.
func (r Rule) Delays() bool { return r.Delay > 0 || r.Jitter > 0 || r.Rate > 0 }

// Traffic counts the actions of a gate since it was opened.
type Traffic struct {
	Passed   int64 // bytes delivered
	Waiting  int64 // bytes held now
	Dropped  int64 // bytes discarded
	Resets   int64 // connections reset by the gate
	Messages int64 // published messages dropped, see Rule.Mute
	Twice    int64 // requests that the server has executed a second time, see Rule.Twice
	Refused  int64 // replies of Redis that refused a request because the caller had not authenticated
	Accepted bool  // there was another reply
}

// Add adds more to t.
func (t *Traffic) Add(more Traffic) {
	t.Passed += more.Passed
	t.Waiting += more.Waiting
	t.Dropped += more.Dropped
	t.Resets += more.Resets
	t.Messages += more.Messages
	t.Twice += more.Twice
	t.Refused += more.Refused
	t.Accepted = t.Accepted || more.Accepted
}

// Links sets the gates between clients, servers and Sentinels.
type Links interface {
	// SetRule applies rule to dir of every matching link. It replaces an earlier rule
	// of the same link and direction.
	SetRule(link Link, dir Direction, rule Rule) error
	// Traffic is the sum over the gates of every matching link in dir.
	Traffic(link Link, dir Direction) (Traffic, error)
}
