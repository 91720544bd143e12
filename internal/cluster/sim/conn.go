package sim

import (
	"io"
	"math/rand/v2"
	"syscall"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/pubsub"
	"github.com/lockchaos/lockchaos/internal/cluster/requests"
)

// conn is a connection: two flows between the dialing end and a server.
type conn struct {
	world *world
	id    uint64
	k     int // counts the connections between its two ends
	from  *caller
	to    *host
	flows [2]flow
	ends  [2]end // the dialer's and the server's

	source string // address of the dialer, as the server sees it
	closed bool
}

// end is one end of a connection.
type end interface {
	// ready reports whether the end can take a segment now; if not, in which list to wait, or until when.
	ready() (wait *waiters, until int64)
	receive(s segment)
	broken(err error) // refused, reset or closed by the peer (io.EOF)
}

// segment is what one call sends.
type segment struct {
	kind kind
	data []byte
	msg  any   // between servers, in place of data
	size int64 // in bytes
	due  int64 // instant of its arrival
	once bool  // it passes a rule that holds, see cluster.Rule.Once

	copied bool  // its requests were copied, see cluster.Rule.Twice
	twice  int64 // of them, how many were executed before
}

type kind uint8

const (
	payload kind = iota
	open         // SYN
	accepted
	refused
	finished // FIN
	reset
)

// flow is one direction of a connection. Segments arrive in order, each after a drawn latency, at instants of the
// connection's slot; unless the rule of the gate, or the receiver, delays them.
type flow struct {
	conn  *conn
	gate  *gateDirection
	dir   int
	slot  int
	extra span // added to the latency
	rng   *rand.Rand
	last  int64 // arrival of the last segment
	queue []segment
	lost  bool // a part was dropped: the rest of the stream is dropped too

	silent bool // everything is dropped, and the connection is not reset for that

	messages pubsub.Filter // of published messages
	requests requests.Splitter
	dice     cluster.Dice
}

// rank orders the events of one instant.
func rank(slot, dir int) int64 { return int64(2*slot+dir) << 32 }

// rank is that of the flow's events: connections may share a slot.
func (f *flow) rank() int64 { return rank(f.slot, f.dir) + int64(f.conn.k) }

// connect opens a connection from caller name to host h. near gets what arrives.
func (w *world) connect(name string, h *host, near end, slot, k int) *conn {
	c := &conn{world: w, k: k, from: h.caller(name), to: h}
	c.id = mix(mix(nameHash(name), nameHash(h.name)), uint64(k))
	c.ends = [2]end{near, acceptingEnd{c}}
	for d := range c.flows {
		c.flows[d] = flow{conn: c, gate: &c.from.directions[d], dir: d, slot: slot, rng: w.stream(c.id, uint64(d)),
			dice: cluster.Dice{ID: mix(c.id, uint64(d))}}
	}
	c.from.conns = append(c.from.conns, c)
	c.from.dials++
	c.send(forward, segment{kind: open})
	return c
}

// send sends s in direction d.
func (c *conn) send(d int, s segment) { c.sendAfter(d, s, 0) }

// sendAfter sends s in wait nanoseconds.
func (c *conn) sendAfter(d int, s segment, wait int64) {
	if c.closed {
		return
	}
	f := &c.flows[d]
	w := c.world
	leaves := w.now() + wait
	arrives := leaves + f.gate.delay(f, leaves, s.size) + w.latency.draw(f.rng) + f.extra.draw(f.rng)
	s.due = w.slots.snap(max(arrives, f.last+1), f.slot)
	f.last = s.due
	f.queue = append(f.queue, s)
	w.order.sent(f, s.due)
	if len(f.queue) == 1 {
		w.at(s.due, f.rank(), f)
	}
}

// fire delivers the first segment, unless it has to wait.
func (f *flow) fire() {
	c, w := f.conn, f.conn.world
	if c.closed || len(f.queue) == 0 {
		return
	}
	now := w.now()
	if due := f.queue[0].due; due > now {
		w.at(due, f.rank(), f)
		return
	}
	if until := w.order.wait(f); until > now {
		w.at(until, f.rank(), f)
		return
	}
	rule := f.gate.rule
	resets := rule.Reset && f.queue[0].kind == payload
	if f.lost || f.silent || rule.Mode == cluster.Drop || resets && f.dice.Concerned(rule) {
		f.lose()
		return
	}
	if rule.Mode == cluster.Hold && !f.queue[0].once {
		f.gate.held = append(f.gate.held, f)
		return
	}
	s := f.queue[0]
	if s.kind != open && f.defers(c.ends[1-f.dir], f) { // the kernel accepts connections for a paused process
		return
	}
	if f.copies(&f.queue[0]) {
		return
	}
	s = f.queue[0]
	f.take()
	if f.dir == back && s.data != nil {
		rest, lost := f.messages.Pass(s.data, f.gate.rule.Mute)
		f.gate.lost += int64(lost)
		if len(rest) == 0 {
			return
		}
		s.data, s.size = rest, int64(len(rest))
	}
	f.gate.passed += s.size
	f.gate.twice += s.twice
	c.deliver(f.dir, s)
}

// deferrable is an event that can wait for its receiver.
type deferrable interface {
	action
	waiter
}

// defers reports whether e, which is due on the flow, has to wait until its receiver can take it.
func (f *flow) defers(to interface{ ready() (*waiters, int64) }, e deferrable) bool {
	w := f.conn.world
	wait, until := to.ready()
	switch {
	case wait != nil:
		*wait = append(*wait, e)
	case until > w.now():
		w.at(w.slots.snap(until, f.slot), f.rank(), e)
	default:
		return false
	}
	return true
}

// retryNext plans e for the next instant of the flow.
func (f *flow) retryNext(e action) {
	w := f.conn.world
	w.at(w.slots.snap(w.now()+1, f.slot), f.rank(), e)
}

// arriveNow delivers everything that a slow link still carries, in order.
func (f *flow) arriveNow() {
	w := f.conn.world
	if len(f.queue) == 0 || f.queue[0].due <= w.now() {
		return
	}
	at := w.now()
	for i := range f.queue {
		at = min(w.slots.snap(at+1, f.slot), f.queue[i].due)
		f.queue[i].due = at
	}
	f.last = at
	w.at(f.queue[0].due, f.rank(), f)
}

// take removes the first segment and schedules the next.
func (f *flow) take() {
	f.queue[0] = segment{}
	f.queue = f.queue[1:]
	if len(f.queue) == 0 {
		f.queue = nil
		return
	}
	w := f.conn.world
	at := max(f.queue[0].due, w.slots.snap(w.now()+1, f.slot))
	w.at(at, f.rank(), f)
}

// lose drops the first segment. A SYN is retransmitted until it passes.
func (f *flow) lose() {
	s := f.queue[0]
	if s.kind == open || s.kind == accepted {
		f.gate.held = append(f.gate.held, f)
		return
	}
	f.gate.dropped += s.size
	f.take()
	if f.silent {
		return
	}
	f.lost = true
	if f.gate.rule.Mode == cluster.Pass {
		f.gate.resets++
		f.conn.reset()
	}
}

// retry delivers what was held, a latency after it may pass.
func (f *flow) retry() {
	c, w := f.conn, f.conn.world
	if c.closed || len(f.queue) == 0 {
		return
	}
	at := w.slots.snap(max(w.now()+1+w.latency.draw(f.rng), f.queue[0].due), f.slot)
	f.last = max(f.last, at)
	w.at(at, f.rank(), f)
}

// deliver passes s to the receiving end.
func (c *conn) deliver(d int, s segment) {
	to := c.ends[1-d]
	switch s.kind {
	case refused:
		c.end()
		to.broken(syscall.ECONNREFUSED)
	case reset:
		c.end()
		to.broken(syscall.ECONNRESET)
	case finished:
		// No end here sends after the other has closed, so both directions end.
		c.end()
		to.broken(io.EOF)
	case payload:
		if s.data != nil {
			c.world.note(c, d, s.data)
		}
		to.receive(s)
	default:
		to.receive(s)
	}
}

// end removes the connection: nothing more arrives.
func (c *conn) end() {
	if c.closed {
		return
	}
	c.closed = true
	c.from.forget(c)
	for d := range c.flows {
		c.flows[d].queue = nil
	}
}

// reset resets the connection: each end sees ECONNRESET at its next turn.
func (c *conn) reset() {
	if c.closed {
		return
	}
	c.end()
	for i, e := range c.ends {
		n := &resetNotice{&c.flows[1-i], e}
		n.retry()
	}
}

// die closes the end that sends in direction d. What it has sent still arrives, then a reset; what arrives at it is
// lost.
func (c *conn) die(d int) {
	if c.closed {
		return
	}
	c.ends[d] = closedEnd{}
	c.send(d, segment{kind: reset})
}

// closedEnd is an end that was closed.
type closedEnd struct{}

func (closedEnd) ready() (*waiters, int64) { return nil, 0 }
func (closedEnd) receive(segment)          {}
func (closedEnd) broken(error)             {}

// resetNotice is a reset on its way to one end of a connection.
type resetNotice struct {
	flow *flow // to that end
	to   end
}

func (n *resetNotice) fire() {
	if !n.flow.defers(n.to, n) {
		n.to.broken(syscall.ECONNRESET)
	}
}

func (n *resetNotice) retry() { n.flow.retryNext(n) }

// acceptingEnd is the server's end before the connection is established.
type acceptingEnd struct{ conn *conn }

func (acceptingEnd) ready() (*waiters, int64) { return nil, 0 }

func (d acceptingEnd) receive(s segment) {
	c := d.conn
	switch {
	case s.kind != open:
	case c.from.cut() || !c.to.up:
		c.send(back, segment{kind: refused})
	default:
		c.ends[1] = c.to.program.accept(c)
		c.send(back, segment{kind: accepted})
	}
}

func (acceptingEnd) broken(error) {}
