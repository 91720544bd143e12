// Package cluster says what a set of lock servers is and what can be done to
// it, for all backends alike; the backends are the packages below this one.
//
// Read [Cluster] first. Everything that can be done to a cluster beyond
// reaching and closing it is an ability of its own, a small interface that a
// backend has or has not: [Killer], [Pauser], [Links], [Witness], [Promoter],
// [Clocks], [Disks], [Admin], [ReplyDropper], [CommandDelayer], [Network], [Substrate].
// Package cluster holds no fault: a fault is a use of these abilities, in a
// certain order and with a proof that it bit.
package cluster

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// Kinds of topology.
const (
	Single     = client.Single
	Replicated = client.Replicated
	Sentinel   = client.Sentinel
	Sharded    = client.Sharded
	Quorum     = client.Quorum
)

// Topology is what to start. The zero value is not valid; see Validate.
type Topology struct {
	Kind    string `json:"kind" yaml:"kind"`                           // Single, Replicated, Sentinel, Sharded or Quorum
	Masters int    `json:"masters,omitempty" yaml:"masters,omitempty"` // quorum: how many, 0 is 5; cluster: 0 is 3
	// Replicas are those of the one master (0 is 2), or of each master (cluster: 0 is 1; quorum: 0 is none).
	Replicas  int               `json:"replicas,omitempty" yaml:"replicas,omitempty"`
	Sentinels int               `json:"sentinels,omitempty" yaml:"sentinels,omitempty"` // sentinel: how many; 0 is 3
	Options   map[string]string `json:"options,omitempty" yaml:"options,omitempty"`     // redis.conf directives, data servers
}

// Node is a data server of a cluster.
type Node struct {
	Name string `json:"name"` // "n1", "n2", …; the first master is n1
	Addr string `json:"addr"` // host:port under which clients know it
}

// Cluster is a set of running servers. Its methods may be called from several
// goroutines. Close ends every server and frees every address and file; it may
// be called twice.
type Cluster interface {
	Topology() Topology
	Nodes() []Node
	Endpoints(i int) client.Endpoints // of client i, counted from 0
	Close(ctx context.Context) error
}

// Killer ends servers as a crash does and starts them again.
type Killer interface {
	// Kill ends the server at once (SIGKILL) and returns when it is gone.
	Kill(ctx context.Context, node string) error
	// Restart starts a killed server with what its disk has kept and returns when it answers.
	Restart(ctx context.Context, node string) error
}

// Pauser stops servers without ending them: no packet is lost, no timer runs.
type Pauser interface {
	Pause(ctx context.Context, node string) error  // SIGSTOP; returns when it stands still
	Resume(ctx context.Context, node string) error // SIGCONT
}

// Promoter asks for a failover in the cluster's own way (SENTINEL FAILOVER).
// It returns when the request was accepted, not when it has happened.
type Promoter interface {
	Promote(ctx context.Context) error
}

// Witness reads nodes through connections that no fault touches.
type Witness interface {
	// Sample says what node looks like now. A node that does not answer is a
	// Sample with Up false, not an error. Time and Asked are left zero.
	Sample(ctx context.Context, node string, keys []string) history.Sample
}

// Inventory lists what nodes have in memory, past the gates.
type Inventory interface {
	// Keys are the keys of a node and what is left of their time to live;
	// negative: they have none, and stay until somebody removes them.
	Keys(ctx context.Context, node string) (map[string]time.Duration, error)
}

// Link is the way that connections dialled by From take to To. Ends are names:
// "n1", "s1" (a Sentinel), "client:0"; Any stands for all.
type Link struct{ From, To string }

// Any is every end of a kind of link.
const Any = "*"

// Direction of bytes on a link.
type Direction int

// The directions. Both is a set, not a third way.
const (
	Forward Direction = 1 << iota // from the dialler to the server: requests
	Back                          // from the server to the dialler: replies, replicated writes
	Both    = Forward | Back
)

// Mode is what a gate does to bytes.
type Mode int

// The modes. Pass is the zero value.
const (
	Pass Mode = iota
	Hold      // keep bytes and deliver them, in order, when the gate passes again: a partition that heals
	Drop      // read and forget bytes; a connection that lost any is reset when the gate passes again
	Cut       // reset open connections and refuse new ones
)

// Rule is what a gate does in one direction of a link. The zero value passes
// everything at once. Whatever delays bytes keeps their order, and ends with
// the rule: what was on its way then arrives at once.
type Rule struct {
	Mode   Mode
	Delay  time.Duration // added to everything
	Jitter time.Duration // up to so much more, drawn for each packet
	Seed   uint64        // of what Jitter draws; each connection draws for itself
	Rate   int64         // bytes per second of all connections of a caller together; 0: any number
	Mute   bool          // published messages are lost, of [Back] only; all else passes
}

// Delays says whether r delays anything.
func (r Rule) Delays() bool { return r.Delay > 0 || r.Jitter > 0 || r.Rate > 0 }

// Traffic counts what a gate has done since it was opened.
type Traffic struct {
	Passed   int64 // bytes delivered
	Waiting  int64 // bytes held now
	Dropped  int64 // bytes forgotten
	Resets   int64 // connections reset by the gate
	Messages int64 // published messages lost, see Rule.Mute
}

// Add counts what more has counted as well.
func (t *Traffic) Add(more Traffic) {
	t.Passed += more.Passed
	t.Waiting += more.Waiting
	t.Dropped += more.Dropped
	t.Resets += more.Resets
	t.Messages += more.Messages
}

// Links sets the gates between clients, servers and Sentinels.
type Links interface {
	// SetRule puts rule in force for dir of every link that matches; a later
	// rule replaces an earlier one of the same link and direction.
	SetRule(link Link, dir Direction, rule Rule) error
	// Traffic sums up what the gates of every matching link have done in dir.
	Traffic(link Link, dir Direction) (Traffic, error)
}
