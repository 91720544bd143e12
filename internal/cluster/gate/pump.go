package gate

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/pubsub"
)

const (
	minBuffer = 4 << 10 // small, for a thousand idle clients
	maxBuffer = 64 << 10

	// maxHeld is how many bytes one connection may have waiting in one direction.
	// Beyond it the gate stops reading, and the sender blocks as soon as the
	// kernel's buffers are full.
	maxHeld = 64 << 20
)

// pump moves the bytes of one connection in one direction. As long as the rule passes
// everything at once, the reading goroutine also writes, without a lock. Otherwise
// bytes go into a queue, which a second goroutine drains.
type pump struct {
	conn     *conn
	dir      *direction
	peer     *pump // the other direction
	src, dst Conn

	silent atomic.Bool // everything is dropped until the connection ends, and it is not reset
	lost   atomic.Bool // bytes were dropped: the rest of the stream is useless
	broken atomic.Bool // writing to dst has failed
	ended  atomic.Bool // the end was forwarded to dst

	pending atomic.Int64 // chunks that are queued or being written; only run adds
	held    atomic.Int64 // bytes of them
	more    chan struct{}
	room    chan struct{}
	writer  sync.WaitGroup

	// Used by run only.
	started  bool           // the writer
	first    func([]byte)   // see [Config].First; nil: not to be called, or called already
	messages *pubsub.Filter // nil in the direction of requests
	copies   *copies        // nil in the pump of replies, and if the caller is not a client
	dice     cluster.Dice
	last     time.Time // when the last queued chunk is due: order is kept

	mu    sync.Mutex
	queue []chunk
}

// chunk is the result of one read, or the end of the stream.
type chunk struct {
	data  []byte
	read  time.Time
	due   time.Time
	end   bool
	reset bool // with end: the connection was reset, not closed
}

// run reads until src has ended, and returns when everything was delivered or dropped.
func (p *pump) run() {
	buf := make([]byte, minBuffer)
	for {
		n, err := p.src.Read(buf)
		if n > 0 && p.first != nil {
			p.first(buf[:n])
			p.first = nil
		}
		if n > 0 {
			p.forward(chunk{data: buf[:n]})
		}
		if err != nil {
			p.forward(chunk{end: true, reset: !errors.Is(err, io.EOF)})
			break
		}
		if n == len(buf) && n < maxBuffer {
			buf = make([]byte, 2*n)
		}
	}
	p.writer.Wait()
}

// forward applies the rule to c. It does not keep c.data.
func (p *pump) forward(c chunk) {
	now := p.dir.current.Load()
	rule := now.rule
	if p.copies != nil && !c.end {
		if all := p.copies.take(c.data, rule, p); all != nil {
			defer p.copies.send(all, now, p)()
		}
	}
	if p.messages != nil && !c.end {
		p.dir.look(c.data)
		if c.data = p.filterMessages(c.data, rule.Mute); len(c.data) == 0 {
			return
		}
	}
	switch {
	case p.conn.ctx.Err() != nil:
	case p.silent.Load() || p.lost.Load() || rule.Mode == cluster.Drop || rule.Reset && !c.end && p.dice.Concerned(rule):
		p.lose(c)
	case rule.Mode == cluster.Pass && !rule.Delays() && p.pending.Load() == 0:
		p.deliver(c)
	default:
		c.data = append([]byte(nil), c.data...)
		c.read, c.due = time.Now(), p.due(rule, len(c.data))
		p.enqueue(c)
	}
}

// filterMessages removes published messages from data if muted, and counts them.
func (p *pump) filterMessages(data []byte, muted bool) []byte {
	rest, lost := p.messages.Pass(data, muted)
	if lost > 0 {
		p.dir.messages.Add(int64(lost))
	}
	return rest
}

// due is when a packet of n bytes that is read now arrives under rule, never before an earlier one.
func (p *pump) due(rule cluster.Rule, n int) time.Time {
	at := p.dir.due(rule, n).Add(p.dice.Jitter(rule))
	if rule.Delays() && at.Before(p.last) {
		at = p.last
	}
	p.last = at
	return at
}

// deliver writes c to dst.
func (p *pump) deliver(c chunk) {
	if c.end {
		p.ended.Store(true)
		if c.reset || p.peer.broken.Load() {
			p.conn.reset(nil)
			return
		}
		_ = p.dst.CloseWrite() // the other direction may continue
		return
	}
	if p.broken.Load() {
		return
	}
	p.dir.passed.Add(int64(len(c.data))) // before the write: received bytes are counted
	n, err := p.dst.Write(c.data)
	p.dir.passed.Add(int64(n - len(c.data)))
	if err == nil {
		return
	}
	// The sender may learn of it only as the other direction's rule allows: that pump sees
	// the end of dst too. Until then this one continues to read, as the network would.
	p.broken.Store(true)
	if p.peer.ended.Load() {
		p.conn.reset(nil)
	}
}

// lose drops c. A connection that is not silent is reset as soon as bytes pass again:
// now, if the rule has just changed.
func (p *pump) lose(c chunk) {
	p.dir.dropped.Add(int64(len(c.data)))
	if !p.silent.Load() {
		p.lost.Store(true)
		if p.dir.rule().Mode == cluster.Pass {
			p.conn.reset(p.dir)
			return
		}
	}
	if c.end {
		<-p.conn.ctx.Done() // keeps the connection open: the end is dropped too
	}
}
