package network

import (
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Host is a machine in the network, with a server or a Sentinel on it.
type Host struct {
	World   *World
	Name    string // "n1", "s1"
	Addr    string // IP:port
	Index   int    // among all hosts
	Program program

	callers map[string]*caller
	Order   []*caller       // the same, by first connection
	rules   [2]cluster.Rule // for callers not seen yet

	Up       bool
	Life     int // counts starts: events of an earlier life are ignored
	Paused   bool
	Blocked  bool    // its event loop waits for the disk
	Deferred Waiters // delivered when it continues
	Busy     int64   // instant until which it is busy (DEBUG SLEEP)

	Clock cluster.Clock
	set   int64 // instant at which clock was set
}

// FlushAfter is when the kernel writes back dirty pages, in nanoseconds (Linux: dirty_expire_centisecs).
const FlushAfter = int64(30 * time.Second)

// Disk is the disk of a server.
type Disk interface {
	PowerOff(now int64) // drops data that are not durable at that instant
	Wipe()              // empties it; the server does not run
}

// Wall is the time of its own clock.
func (h *Host) Wall() time.Time {
	passed := float64(h.World.Now() - h.set)
	return time.Now().Add(h.Clock.Offset + time.Duration(h.Clock.Drift*passed))
}

// SetClock sets it to k, from which it continues.
func (h *Host) SetClock(k cluster.Clock) { h.Clock, h.set = k, h.World.Now() }

// program is the program of a host.
type program interface {
	Start()
	Stop()
	Accept(c *Conn) End // a connection that the kernel accepted
	SetClock(k cluster.Clock)
}

// Init adds the host to the network.
func (h *Host) Init(w *World, name, addr string, p program) {
	h.World, h.Name, h.Addr, h.Program = w, name, addr, p
	h.Index, h.callers = len(w.Hosts), map[string]*caller{}
	w.Hosts = append(w.Hosts, h)
	w.Addresses[addr] = h
}

// StaleAddress is a client that still reaches the host that had an address before; no client: none does.
type StaleAddress struct {
	Client, Addr string
	Old          *Host
}

// reach is the host that a client reaches at an address; nil: there is none. The world is locked.
func (w *World) reach(addr, client string) *Host {
	if s := w.Stale; s.Client != "" && s.Client == client && s.Addr == addr {
		return s.Old
	}
	return w.Addresses[addr]
}

// Start starts the program.
func (h *Host) Start() {
	h.Up, h.Paused, h.Blocked, h.Busy = true, false, false, 0
	h.Life++
	h.Program.Start()
}

// Kill ends the program as SIGKILL does: its connections are reset, and new ones are refused.
func (h *Host) Kill() {
	if !h.Up {
		return
	}
	h.Up, h.Paused, h.Blocked = false, false, false
	h.Program.Stop()
	h.Deferred = nil
	for _, caller := range h.Order {
		for _, c := range append([]*Conn(nil), caller.Conns...) {
			c.Die(Back)
		}
	}
	// Connections that the host dialed.
	for _, other := range h.World.Hosts {
		if caller := other.callers[h.Name]; caller != nil {
			for _, c := range append([]*Conn(nil), caller.Conns...) {
				c.Die(Forward)
			}
		}
	}
}

// Stop ends the host when the cluster is closed.
func (h *Host) Stop() {
	h.Up = false
	for _, caller := range h.Order {
		for _, c := range append([]*Conn(nil), caller.Conns...) {
			c.end()
			c.Ends[0].Broken(net.ErrClosed)
		}
	}
}

func (h *Host) Pause() error {
	if !h.Up {
		return cluster.ErrDown
	}
	h.Paused = true
	return nil
}

func (h *Host) Resume() error {
	if !h.Up {
		return cluster.ErrDown
	}
	h.Paused = false
	h.Proceed()
	return nil
}

// Proceed makes the deferred deliveries, unless something else still stops the program.
func (h *Host) Proceed() {
	if !h.Stopped() {
		h.Deferred.Release()
	}
}

// Stopped reports whether the program executes nothing: it is paused, or waits for its disk.
func (h *Host) Stopped() bool { return h.Paused || h.Blocked }

// Ready implements end.ready for the ends on this host.
func (h *Host) Ready() (*Waiters, int64) {
	if h.Stopped() {
		return &h.Deferred, 0
	}
	return nil, h.Busy
}

// HostEnd is an end on a host, from one start of its program to the next.
type HostEnd struct {
	host *Host
	life int
}

func (h *Host) End() HostEnd { return HostEnd{h, h.Life} }

func (e HostEnd) Ready() (*Waiters, int64) { return e.host.Ready() }

func (e HostEnd) Alive() bool { return e.host.Up && e.host.Life == e.life }

// Connect opens the k-th connection from the program to one on another host.
func (h *Host) Connect(to *Host, near End, k int) *Conn {
	return h.World.Connect(h.Name, to, near, h.World.Slots.Server(NameHash(h.Name)^NameHash(to.Name)), k)
}

// Millis is the time in milliseconds; 0 stands for never.
func (h *Host) Millis() int64 { return h.World.Now()/int64(time.Millisecond) + 1 }

// NewID is a replication ID, a run ID or the ID of a node.
func NewID(rng *rand.Rand) string {
	return fmt.Sprintf("%016x%016x%08x", rng.Uint64(), rng.Uint64(), rng.Uint32())
}

// After calls do in d nanoseconds, if the host was not restarted meanwhile; if it is stopped then, after it has
// resumed.
func (h *Host) After(d int64, do func()) { h.At(h.World.Now()+max(d, 1), do) }

func (h *Host) At(instant int64, do func()) {
	t := &Task{Host: h, Life: h.Life, Do: do}
	t.Schedule(instant)
}

// Task is a timer of a program.
type Task struct {
	Host   *Host
	Life   int
	Do     func()
	Kernel bool // done by the system, not by the program, so also while the program is stopped
}

func (t *Task) Schedule(instant int64) {
	w := t.Host.World
	slot := w.Slots.Server(NameHash(t.Host.Name))
	w.at(w.Slots.snap(instant, slot), rank(slot, Forward), t)
}

func (t *Task) Fire() {
	h := t.Host
	switch {
	case t.Life != h.Life || !h.Up:
	case h.Stopped() && !t.Kernel:
		h.Deferred = append(h.Deferred, t)
	default:
		t.Do()
	}
}

func (t *Task) Retry() { t.Schedule(t.Host.World.Now() + 1) }
