package cluster

import (
	"context"
	"time"
)

// Requirements is what servers have to be started with for abilities that cannot
// be given to a running one. The zero value is a plain server.
type Requirements struct {
	Clocks  bool // wall clocks that Clocks can set
	Disks   bool // disks that forget what was not fsynced, for Disks.PowerOff
	Network bool // a network of their own, that Network can take servers off
}

// Add gives e what more has as well.
func (e *Requirements) Add(more Requirements) {
	e.Clocks = e.Clocks || more.Clocks
	e.Disks = e.Disks || more.Disks
	e.Network = e.Network || more.Network
}

// Clock is how a node's wall clock differs from true time. The zero value is a
// true clock.
type Clock struct {
	Offset time.Duration // ahead of true time; negative: behind
	Drift  float64       // seconds gained per true second from now on; negative: lost
}

// Clocks sets wall clocks of nodes, which Redis expires keys by. Monotonic
// clocks and the true pace of timers stay as they are.
type Clocks interface {
	// SetClock has node's clock jump to c and go on from there. It returns when
	// the node reads the new time. A clock set before is replaced.
	SetClock(ctx context.Context, node string, c Clock) error
}

// Disks decides what a server finds when it comes back.
type Disks interface {
	// PowerOff ends the server as a power cut does: what it had not fsynced is
	// lost, unlike with Killer.Kill. Killer.Restart starts it again.
	PowerOff(ctx context.Context, node string) error
	// Wipe empties the disk of a server that does not run.
	Wipe(ctx context.Context, node string) error
}

// Admin runs commands at a node as an operator does, past the gates.
type Admin interface {
	// Do answers as go-redis' Cmd does: string, int64, []any, nil. An error reply
	// of the server is an error.
	Do(ctx context.Context, node string, args ...any) (any, error)
}

// ReplyDropper loses replies of commands that were carried out.
type ReplyDropper interface {
	// DropReplies has the next n replies on link, whose To is a server, get lost: the
	// command is carried out, and its connection reset instead of an answer.
	DropReplies(link Link, n int) error
}

// CommandDelayer slows servers down without stopping them.
type CommandDelayer interface {
	// DelayCommands has every command at node take perCommand longer, one after the other;
	// 0: as fast as before.
	DelayCommands(node string, perCommand time.Duration) error
}

// Network takes servers off the network that they stand on, as a pulled cable
// does: packets are lost and nothing is reset, so that connections hang, for the
// server's own calls as well. What [Witness] and [Admin] ask still arrives.
type Network interface {
	// Disconnect returns when nothing reaches node any more, nor comes from it.
	Disconnect(ctx context.Context, node string) error
	// Reconnect puts it back under the same address: connections that are still open on both ends go on.
	Reconnect(ctx context.Context, node string) error
}

// Substrate tells when what all servers of a cluster stand on is gone, such as the
// engine of their containers: nothing that is seen afterwards says anything.
type Substrate interface {
	Lost() <-chan struct{} // closed when it is
	Err() error            // why; nil as long as it is there
}
