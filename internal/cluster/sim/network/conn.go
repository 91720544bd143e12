package network

import (
	"io"
	"math/rand/v2"
	"syscall"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/pubsub"
	"github.com/lockchaos/lockchaos/internal/cluster/requests"
)

// Conn is a connection: two flows between the dialing end and a server.
type Conn struct {
	world *World
	id    uint64
	k     int // counts the connections between its two ends
	From  *caller
	to    *Host
	Flows [2]flow
	Ends  [2]End // the dialer's and the server's

	Source string // address of the dialer, as the server sees it
	Closed bool
}

// End is one end of a connection.
type End interface {
	// ready reports whether the end can take a segment now; if not, in which list to wait, or until when.
	Ready() (wait *Waiters, until int64)
	Receive(s Segment)
	Broken(err error) // refused, reset or closed by the peer (io.EOF)
}

// Segment is the data of one call.
type Segment struct {
	Kind kind
	Data []byte
	Msg  any   // between servers, in place of data
	Size int64 // in bytes
	due  int64 // instant of its arrival
	once bool  // it passes a rule that holds, see cluster.Rule.Once

	copied bool  // its requests were copied, see cluster.Rule.Twice
	twice  int64 // of them, how many were executed before
}

type kind uint8

const (
	payload kind = iota
	open         // SYN
	Accepted
	refused
	Finished // FIN
	reset
)

// flow is one direction of a connection. Segments arrive in order, each after a drawn latency, at instants of the
// connection's slot; unless the rule of the gate, or the receiver, delays them.
type flow struct {
	conn  *Conn
	gate  *gateDirection
	dir   int
	slot  int
	Extra Span // added to the latency
	rng   *rand.Rand
	last  int64 // arrival of the last segment
	queue []Segment
	lost  bool // a part was dropped: the rest of the stream is dropped too

	silent bool // everything is dropped, and the connection is not reset for that

	messages pubsub.Filter // of published messages
	requests requests.Splitter
	dice     cluster.Dice
}

// rank orders the events of one instant.
func rank(slot, dir int) int64 { return int64(2*slot+dir) << 32 }

// rank is the rank of the flow's events: connections may share a slot.
func (f *flow) rank() int64 { return rank(f.slot, f.dir) + int64(f.conn.k) }

// Connect opens a connection from caller name to host h. near gets the arriving segments.
func (w *World) Connect(name string, h *Host, near End, slot, k int) *Conn {
	c := &Conn{world: w, k: k, From: h.caller(name), to: h}
	c.id = Mix(Mix(NameHash(name), NameHash(h.Name)), uint64(k))
	c.Ends = [2]End{near, acceptingEnd{c}}
	for d := range c.Flows {
		c.Flows[d] = flow{conn: c, gate: &c.From.directions[d], dir: d, slot: slot, rng: w.Stream(c.id, uint64(d)),
			dice: cluster.Dice{ID: Mix(c.id, uint64(d))}}
	}
	c.From.Conns = append(c.From.Conns, c)
	c.From.Dials++
	c.Send(Forward, Segment{Kind: open})
	return c
}

// Send sends s in direction d.
func (c *Conn) Send(d int, s Segment) { c.SendAfter(d, s, 0) }

// SendAfter sends s in wait nanoseconds.
func (c *Conn) SendAfter(d int, s Segment, wait int64) {
	if c.Closed {
		return
	}
	f := &c.Flows[d]
	w := c.world
	leaves := w.Now() + wait
	arrives := leaves + f.gate.delay(f, leaves, s.Size) + w.latency.draw(f.rng) + f.Extra.draw(f.rng)
	s.due = w.Slots.snap(max(arrives, f.last+1), f.slot)
	f.last = s.due
	f.queue = append(f.queue, s)
	w.Order.sent(f, s.due)
	if len(f.queue) == 1 {
		w.at(s.due, f.rank(), f)
	}
}

// Fire delivers the first segment, unless it has to wait.
func (f *flow) Fire() {
	c, w := f.conn, f.conn.world
	if c.Closed || len(f.queue) == 0 {
		return
	}
	now := w.Now()
	if due := f.queue[0].due; due > now {
		w.at(due, f.rank(), f)
		return
	}
	if until := w.Order.wait(f); until > now {
		w.at(until, f.rank(), f)
		return
	}
	rule := f.gate.rule
	resets := rule.Reset && f.queue[0].Kind == payload
	if f.lost || f.silent || rule.Mode == cluster.Drop || resets && f.dice.Concerned(rule) {
		f.lose()
		return
	}
	if rule.Mode == cluster.Hold && !f.queue[0].once {
		f.gate.held = append(f.gate.held, f)
		return
	}
	s := f.queue[0]
	if s.Kind != open && f.defers(c.Ends[1-f.dir], f) { // the kernel accepts connections for a paused process
		return
	}
	if f.copies(&f.queue[0]) {
		return
	}
	s = f.queue[0]
	f.take()
	if f.dir == Back && s.Data != nil {
		rest, lost := f.messages.Pass(s.Data, f.gate.rule.Mute)
		f.gate.lost += int64(lost)
		if len(rest) == 0 {
			return
		}
		s.Data, s.Size = rest, int64(len(rest))
	}
	f.gate.passed += s.Size
	f.gate.twice += s.twice
	c.deliver(f.dir, s)
}

// deferrable is an event that can wait for its receiver.
type deferrable interface {
	action
	waiter
}

// defers reports whether e, which is due on the flow, has to wait until its receiver can take it.
func (f *flow) defers(to interface{ Ready() (*Waiters, int64) }, e deferrable) bool {
	w := f.conn.world
	wait, until := to.Ready()
	switch {
	case wait != nil:
		*wait = append(*wait, e)
	case until > w.Now():
		w.at(w.Slots.snap(until, f.slot), f.rank(), e)
	default:
		return false
	}
	return true
}

// retryNext plans e for the next instant of the flow.
func (f *flow) retryNext(e action) {
	w := f.conn.world
	w.at(w.Slots.snap(w.Now()+1, f.slot), f.rank(), e)
}

// arriveNow delivers everything that a slow link still carries, in order.
func (f *flow) arriveNow() {
	w := f.conn.world
	if len(f.queue) == 0 || f.queue[0].due <= w.Now() {
		return
	}
	at := w.Now()
	for i := range f.queue {
		at = min(w.Slots.snap(at+1, f.slot), f.queue[i].due)
		f.queue[i].due = at
	}
	f.last = at
	w.at(f.queue[0].due, f.rank(), f)
}

// take removes the first segment and schedules the next.
func (f *flow) take() {
	f.queue[0] = Segment{}
	if len(f.queue) == 1 {
		f.queue = f.queue[:0]
		return
	}
	f.queue = f.queue[1:]
	w := f.conn.world
	at := max(f.queue[0].due, w.Slots.snap(w.Now()+1, f.slot))
	w.at(at, f.rank(), f)
}

// lose drops the first segment. A SYN is retransmitted until it passes.
func (f *flow) lose() {
	s := f.queue[0]
	if s.Kind == open || s.Kind == Accepted {
		f.gate.held = append(f.gate.held, f)
		return
	}
	f.gate.dropped += s.Size
	f.take()
	if f.silent {
		return
	}
	f.lost = true
	if f.gate.rule.Mode == cluster.Pass {
		f.gate.resets++
		f.conn.Reset()
	}
}

// Retry delivers the held segments, a latency after they may pass.
func (f *flow) Retry() {
	c, w := f.conn, f.conn.world
	if c.Closed || len(f.queue) == 0 {
		return
	}
	at := w.Slots.snap(max(w.Now()+1+w.latency.draw(f.rng), f.queue[0].due), f.slot)
	f.last = max(f.last, at)
	w.at(at, f.rank(), f)
}

// deliver passes s to the receiving end.
func (c *Conn) deliver(d int, s Segment) {
	to := c.Ends[1-d]
	switch s.Kind {
	case refused:
		c.end()
		to.Broken(syscall.ECONNREFUSED)
	case reset:
		c.end()
		to.Broken(syscall.ECONNRESET)
	case Finished:
		// No end here sends after the other has closed, so both directions end.
		c.end()
		to.Broken(io.EOF)
	case payload:
		if s.Data != nil {
			c.world.note(c, d, s.Data)
		}
		to.Receive(s)
	default:
		to.Receive(s)
	}
}

// end removes the connection: nothing more arrives.
func (c *Conn) end() {
	if c.Closed {
		return
	}
	c.Closed = true
	c.From.forget(c)
	for d := range c.Flows {
		c.Flows[d].queue = nil
	}
}

// Reset resets the connection: each end sees ECONNRESET at its next turn.
func (c *Conn) Reset() {
	if c.Closed {
		return
	}
	c.end()
	for i, e := range c.Ends {
		n := &resetNotice{&c.Flows[1-i], e}
		n.Retry()
	}
}

// Die closes the end that sends in direction d. Its earlier output still arrives, then a reset; its input is lost.
func (c *Conn) Die(d int) {
	if c.Closed {
		return
	}
	c.Ends[d] = ClosedEnd{}
	c.Send(d, Segment{Kind: reset})
}

// ClosedEnd is an end that was closed.
type ClosedEnd struct{}

func (ClosedEnd) Ready() (*Waiters, int64) { return nil, 0 }
func (ClosedEnd) Receive(Segment)          {}
func (ClosedEnd) Broken(error)             {}

// resetNotice is a reset on its way to one end of a connection.
type resetNotice struct {
	flow *flow // to that end
	to   End
}

func (n *resetNotice) Fire() {
	if !n.flow.defers(n.to, n) {
		n.to.Broken(syscall.ECONNRESET)
	}
}

func (n *resetNotice) Retry() { n.flow.retryNext(n) }

// acceptingEnd is the server's end before the connection is established.
type acceptingEnd struct{ conn *Conn }

func (acceptingEnd) Ready() (*Waiters, int64) { return nil, 0 }

func (d acceptingEnd) Receive(s Segment) {
	c := d.conn
	switch {
	case s.Kind != open:
	case c.From.cut() || !c.to.Up:
		c.Send(Back, Segment{Kind: refused})
	default:
		c.Ends[1] = c.to.Program.Accept(c)
		c.Send(Back, Segment{Kind: Accepted})
	}
}

func (acceptingEnd) Broken(error) {}
