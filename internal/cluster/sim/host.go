package sim

import (
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// host is a machine in the network, with a server or a Sentinel on it.
type host struct {
	world   *world
	name    string // "n1", "s1"
	addr    string // IP:port
	index   int    // among all hosts
	program program

	callers map[string]*caller
	order   []*caller       // the same, by first connection
	rules   [2]cluster.Rule // for callers not seen yet

	up       bool
	life     int // counts starts: events of an earlier life are ignored
	paused   bool
	blocked  bool    // its event loop waits for the disk
	deferred waiters // delivered when it continues
	busy     int64   // instant until which it is busy (DEBUG SLEEP)

	clock cluster.Clock
	set   int64 // instant at which clock was set
}

// wall is the time of its own clock.
func (h *host) wall() time.Time {
	passed := float64(h.world.now() - h.set)
	return time.Now().Add(h.clock.Offset + time.Duration(h.clock.Drift*passed))
}

// setClock sets it to k, from which it continues.
func (h *host) setClock(k cluster.Clock) { h.clock, h.set = k, h.world.now() }

// program is what runs on a host.
type program interface {
	start()
	stop()
	accept(c *conn) end // a connection that the kernel accepted
	setClock(k cluster.Clock)
}

// init adds the host to the network.
func (h *host) init(w *world, name, addr string, p program) {
	h.world, h.name, h.addr, h.program = w, name, addr, p
	h.index, h.callers = len(w.hosts), map[string]*caller{}
	w.hosts = append(w.hosts, h)
	w.addresses[addr] = h
}

// staleAddress is a client that still reaches the host that had an address before; no client: none does.
type staleAddress struct {
	client, addr string
	old          *host
}

// reach is the host that a client reaches at an address; nil: there is none. The world is locked.
func (w *world) reach(addr, client string) *host {
	if s := w.stale; s.client != "" && s.client == client && s.addr == addr {
		return s.old
	}
	return w.addresses[addr]
}

// start starts the program.
func (h *host) start() {
	h.up, h.paused, h.blocked, h.busy = true, false, false, 0
	h.life++
	h.program.start()
}

// kill ends the program as SIGKILL does: its connections are reset, and new ones are refused.
func (h *host) kill() {
	if !h.up {
		return
	}
	h.up, h.paused, h.blocked = false, false, false
	h.program.stop()
	h.deferred = nil
	for _, caller := range h.order {
		for _, c := range append([]*conn(nil), caller.conns...) {
			c.die(back)
		}
	}
	// Connections that the host dialed.
	for _, other := range h.world.hosts {
		if caller := other.callers[h.name]; caller != nil {
			for _, c := range append([]*conn(nil), caller.conns...) {
				c.die(forward)
			}
		}
	}
}

// stop ends the host when the cluster is closed.
func (h *host) stop() {
	h.up = false
	for _, caller := range h.order {
		for _, c := range append([]*conn(nil), caller.conns...) {
			c.end()
			c.ends[0].broken(net.ErrClosed)
		}
	}
}

func (h *host) pause() error {
	if !h.up {
		return cluster.ErrDown
	}
	h.paused = true
	return nil
}

func (h *host) resume() error {
	if !h.up {
		return cluster.ErrDown
	}
	h.paused = false
	h.proceed()
	return nil
}

// proceed delivers what was deferred, unless something else still stops the program.
func (h *host) proceed() {
	if !h.stopped() {
		h.deferred.release()
	}
}

// stopped reports whether the program executes nothing: it is paused, or waits for its disk.
func (h *host) stopped() bool { return h.paused || h.blocked }

// ready implements end.ready for the ends on this host.
func (h *host) ready() (*waiters, int64) {
	if h.stopped() {
		return &h.deferred, 0
	}
	return nil, h.busy
}

// hostEnd is an end on a host, from one start of its program to the next.
type hostEnd struct {
	host *host
	life int
}

func (h *host) end() hostEnd { return hostEnd{h, h.life} }

func (e hostEnd) ready() (*waiters, int64) { return e.host.ready() }

func (e hostEnd) alive() bool { return e.host.up && e.host.life == e.life }

// connect opens the k-th connection from the program to one on another host.
func (h *host) connect(to *host, near end, k int) *conn {
	return h.world.connect(h.name, to, near, h.world.slots.server(nameHash(h.name)^nameHash(to.name)), k)
}

// ms is the time in milliseconds; 0 stands for never.
func (h *host) ms() int64 { return h.world.now()/int64(time.Millisecond) + 1 }

// newID is a replication ID, a run ID or the ID of a node.
func newID(rng *rand.Rand) string {
	return fmt.Sprintf("%016x%016x%08x", rng.Uint64(), rng.Uint64(), rng.Uint32())
}

// after calls do in d nanoseconds, if the host was not restarted meanwhile; if it is stopped then, after it has
// resumed.
func (h *host) after(d int64, do func()) { h.at(h.world.now()+max(d, 1), do) }

func (h *host) at(instant int64, do func()) {
	t := &task{host: h, life: h.life, do: do}
	t.schedule(instant)
}

// task is a timer of a program.
type task struct {
	host   *host
	life   int
	do     func()
	kernel bool // done by the system, not by the program, so also while the program is stopped
}

func (t *task) schedule(instant int64) {
	w := t.host.world
	slot := w.slots.server(nameHash(t.host.name))
	w.at(w.slots.snap(instant, slot), rank(slot, forward), t)
}

func (t *task) fire() {
	h := t.host
	switch {
	case t.life != h.life || !h.up:
	case h.stopped() && !t.kernel:
		h.deferred = append(h.deferred, t)
	default:
		t.do()
	}
}

func (t *task) retry() { t.schedule(t.host.world.now() + 1) }
