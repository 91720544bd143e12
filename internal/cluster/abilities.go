package cluster

import (
	"context"
	"time"
)

// Requirements are the abilities that servers must be started with, because they
// cannot be added to a running server. The zero value is a plain server.
type Requirements struct {
	Clocks  bool // wall clocks that can be set, for [Clocks]
	Disks   bool // disks that lose unfsynced data, for Disks.PowerOff and SlowDisks
	Network bool // a network of their own, for [Network]
}

// Add adds more to r.
func (r *Requirements) Add(more Requirements) {
	r.Clocks = r.Clocks || more.Clocks
	r.Disks = r.Disks || more.Disks
	r.Network = r.Network || more.Network
}

// Clock is how a node's wall clock differs from true time. The zero value is a
// true clock.
type Clock struct {
	Offset time.Duration // ahead of true time; negative: behind
	Drift  float64       // seconds gained per true second from now on; negative: lost
}

// Clocks sets the wall clocks of nodes, by which Redis expires keys. Monotonic
// clocks and timers, by which ZooKeeper expires sessions, are not affected.
type Clocks interface {
	// SetClock makes node's clock jump to c and run from there, replacing an earlier
	// setting. It returns when the node reads the new time.
	SetClock(ctx context.Context, node string, c Clock) error
	// ReadClock asks the server for its time, and returns how far that is ahead of this program's. The error wraps
	// errors.ErrUnsupported if the time of this server cannot be read: of a ZooKeeper ensemble, only the leader's can.
	ReadClock(ctx context.Context, node string) (ahead time.Duration, err error)
}

// Disks decides what data a server finds when it restarts.
type Disks interface {
	// PowerOff ends the server as a power cut does: unlike with Killer.Kill, unfsynced data are lost. Killer.Restart
	// starts it again.
	PowerOff(ctx context.Context, node string) error
	// Wipe empties the disk of a server that is not running.
	Wipe(ctx context.Context, node string) error
}

// SlowDisks delays the fsyncs of servers, as a busy or failing disk does. Writes to the page cache are not delayed,
// except while an fsync of the same file is in progress.
type SlowDisks interface {
	// SlowDisk makes each fsync of node that starts from now on take as long as each; 0: fsyncs are fast again, and
	// those in progress end. The node need not run.
	SlowDisk(ctx context.Context, node string, each time.Duration) error
	// SlowFsyncs returns how many fsyncs of node were delayed so far, including those in progress.
	SlowFsyncs(ctx context.Context, node string) (int, error)
}

// Concurrent acts on several nodes at the same time. Clusters whose events must have
// one order do not have it.
type Concurrent interface {
	// Each calls do for all nodes concurrently; the errors have the order of nodes.
	Each(nodes []string, do func(node string) error) []error
}

// Admin runs commands at a node as an operator does, past the gates.
type Admin interface {
	// Do returns the reply as go-redis' Cmd does: string, int64, []any, nil. An error
	// reply is an error.
	Do(ctx context.Context, node string, args ...any) (any, error)
}

// Entries acts on the nodes or keys of locks at the servers of an ensemble, as an operator does, past the gates.
type Entries interface {
	// DeleteHeld asks node for the nodes (ZooKeeper) or keys (etcd) of the holders of a lock, deletes them, and returns
	// how many it has deleted.
	DeleteHeld(ctx context.Context, node, lock string) (int, error)
	// SetWritable makes the servers refuse requests for a lock until it is called again with true. ZooKeeper refuses
	// creations and deletions, by the rights of the lock's node. An etcd cluster whose database is full refuses puts, of
	// all locks, and still deletes. False: the lock has no node.
	SetWritable(ctx context.Context, node, lock string, writable bool) (changed bool, err error)
}

// Network disconnects servers from their network, as a pulled cable does: packets are lost and nothing is reset, so
// connections hang, even if the server itself has opened them. [Witness] and [Admin] still reach it.
type Network interface {
	// Disconnect returns when no packet reaches or leaves node.
	Disconnect(ctx context.Context, node string) error
	// Reconnect restores the same address; connections still open at both ends continue.
	Reconnect(ctx context.Context, node string) error
}

// Substrate reports the loss of the common base of all servers, such as the engine of their containers. Nothing
// observed after that is evidence.
type Substrate interface {
	Lost() <-chan struct{} // closed when it is lost
	Err() error            // why; nil as long as it is there
}

// Address moves the address by which clients know the master of topology replicated, as a managed service moves the
// DNS name or the virtual IP of its master.
type Address interface {
	// MoveAddress promotes the replica with the most data and moves the master's address to it: new connections reach the
	// new master, and the other replicas follow it. It returns the names of the old and the new master.
	MoveAddress(ctx context.Context, how Move) (from, to string, err error)
	// SettleAddress completes the last move: the old master, if it runs, becomes a replica of the new one, and no client
	// has a stale address. Open connections stay where they are.
	SettleAddress(ctx context.Context) error
}

// Move is how an address moves. With the zero value the old master still accepts writes, and the open connections of
// clients stay with it.
type Move struct {
	Demote bool // the old master becomes a replica of the new one first, so that it refuses writes
	// Stale is the client whose resolver keeps the old address; "": none. Its connections, also new ones, stay with the
	// old master. The connections of all other clients are reset, so that they reach the new master.
	Stale string
}

// Resets reports whether m resets the open connections of an end, by its name. Those of replicas are always reset.
func (m Move) Resets(end string) bool {
	_, client := ClientNumber(end)
	return !client || m.Stale != "" && end != m.Stale
}
