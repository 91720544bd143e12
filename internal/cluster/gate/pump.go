package gate

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/pubsub"
)

const (
	firstBuffer = 4 << 10 // a thousand idle clients should cost little
	lastBuffer  = 64 << 10

	// keepLimit is how many bytes one connection may have waiting in one
	// direction. Beyond it the gate stops reading, and the sender feels back
	// pressure as soon as the kernel's buffers are full too.
	keepLimit = 64 << 20
)

// pump moves the bytes of one connection in one direction. As long as the rule
// passes everything at once, the reading goroutine writes too, without a lock.
// Otherwise bytes go into a queue, which a second goroutine empties.
type pump struct {
	conn     *conn
	dir      *direction
	peer     *pump // the other direction
	src, dst *net.TCPConn

	lost   atomic.Bool // bytes were dropped: whatever follows would be nonsense
	broken atomic.Bool // dst takes no more
	ended  atomic.Bool // dst was told the end

	pending atomic.Int64 // chunks in the queue and in the writer's hands; only run adds
	kept    atomic.Int64 // bytes of them
	more    chan struct{}
	room    chan struct{}
	started bool // the writer; of run alone
	writer  sync.WaitGroup

	// Of run alone.
	number   uint64         // of the connection among those of its caller
	messages *pubsub.Filter // nil: requests have none
	dice     *rand.Rand     // of the rule with seed diced
	diced    uint64
	last     time.Time // when what was kept last is due: order is kept

	mu    sync.Mutex
	queue []chunk
}

// chunk is what was read at one time, or the end of the stream.
type chunk struct {
	data  []byte
	due   time.Time
	end   bool
	reset bool // with end: the sender did not close but was cut off
}

// run reads until src has ended, and returns when everything has gone its way.
func (p *pump) run() {
	buf := make([]byte, firstBuffer)
	for {
		n, err := p.src.Read(buf)
		if n > 0 {
			p.forward(chunk{data: buf[:n]})
		}
		if err != nil {
			p.forward(chunk{end: true, reset: !errors.Is(err, io.EOF)})
			break
		}
		if n == len(buf) && n < lastBuffer {
			buf = make([]byte, 2*n)
		}
	}
	p.writer.Wait()
}

// forward does with c what the rule says. The data belongs to the caller again when it returns.
func (p *pump) forward(c chunk) {
	rule := p.dir.rule()
	if p.messages != nil && !c.end {
		if c.data = p.mute(c.data, rule.Mute); len(c.data) == 0 {
			return
		}
	}
	switch {
	case p.conn.ctx.Err() != nil:
	case p.lost.Load() || rule.Mode == cluster.Drop:
		p.lose(c)
	case rule.Mode == cluster.Pass && !rule.Delays() && p.pending.Load() == 0:
		p.deliver(c)
	default:
		c.data = append([]byte(nil), c.data...)
		c.due = p.due(rule, len(c.data))
		p.keep(c)
	}
}

// mute takes the published messages out of data, if they are to be lost, and what they are counted as.
func (p *pump) mute(data []byte, muted bool) []byte {
	rest, lost := p.messages.Pass(data, muted)
	if lost > 0 {
		p.dir.messages.Add(int64(lost))
	}
	return rest
}

// due is when a packet of n bytes that is read now arrives under rule, never before the one that was read before it.
func (p *pump) due(rule cluster.Rule, n int) time.Time {
	at := p.dir.due(rule, n).Add(p.draw(rule))
	if rule.Delays() && at.Before(p.last) {
		at = p.last
	}
	p.last = at
	return at
}

// draw is for how much longer than others the next packet is under way.
func (p *pump) draw(rule cluster.Rule) time.Duration {
	if rule.Jitter <= 0 {
		return 0
	}
	if p.dice == nil || p.diced != rule.Seed {
		p.dice, p.diced = rand.New(rand.NewPCG(rule.Seed, p.number)), rule.Seed
	}
	return time.Duration(p.dice.Int64N(int64(rule.Jitter) + 1))
}

// deliver gives c to dst.
func (p *pump) deliver(c chunk) {
	if c.end {
		p.ended.Store(true)
		if c.reset || p.peer.broken.Load() {
			p.conn.reset(nil)
			return
		}
		_ = p.dst.CloseWrite() // an end of one direction; the other may go on
		return
	}
	if p.broken.Load() {
		return
	}
	p.dir.passed.Add(int64(len(c.data))) // before: who has heard of it finds it counted
	n, err := p.dst.Write(c.data)
	p.dir.passed.Add(int64(n - len(c.data)))
	if err == nil {
		return
	}
	// The sender must learn of it the way the other direction's rule allows: that pump will
	// find dst at its end too. Until then this one goes on reading, as the network would.
	p.broken.Store(true)
	if p.peer.ended.Load() {
		p.conn.reset(nil)
	}
}

// lose forgets c. The connection is reset as soon as bytes pass again; this
// may be now, if the rule has just changed.
func (p *pump) lose(c chunk) {
	p.dir.dropped.Add(int64(len(c.data)))
	p.lost.Store(true)
	if p.dir.rule().Mode == cluster.Pass {
		p.conn.reset(p.dir)
		return
	}
	if c.end {
		<-p.conn.ctx.Done() // keep the connection open: the end was not told either
	}
}

// forget takes what was never delivered out of the count.
func (p *pump) forget() { p.dir.waiting.Add(-p.kept.Swap(0)) }
