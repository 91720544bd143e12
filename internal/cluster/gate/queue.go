package gate

import (
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// enqueue appends c to the queue, and waits while it is full.
func (p *pump) enqueue(c chunk) {
	for p.held.Load() >= maxHeld {
		select {
		case <-p.room:
		case <-p.conn.ctx.Done():
			return
		}
	}
	p.pending.Add(1)
	p.held.Add(int64(len(c.data)))
	p.dir.waiting.Add(int64(len(c.data)))
	p.mu.Lock()
	p.queue = append(p.queue, c)
	p.mu.Unlock()
	signal(p.more)
	if !p.started {
		p.started = true
		p.writer.Go(p.drain)
	}
}

// drain delivers the queue in order, each chunk when it is due and may pass, until the
// end of the stream or of the connection.
func (p *pump) drain() {
	for {
		c, ok := p.take()
		if !ok {
			return
		}
		switch p.await(c) {
		case cluster.Pass:
			p.deliver(c)
		case cluster.Drop:
			p.lose(c)
		default:
			return
		}
		p.held.Add(-int64(len(c.data)))
		p.dir.waiting.Add(-int64(len(c.data)))
		p.pending.Add(-1)
		signal(p.room)
		if c.end {
			return
		}
	}
}

// take waits for a chunk; false: the connection is over.
func (p *pump) take() (chunk, bool) {
	for {
		p.mu.Lock()
		if len(p.queue) > 0 {
			c := p.queue[0]
			p.queue[0] = chunk{} // free the data
			p.queue = p.queue[1:]
			p.mu.Unlock()
			return c, true
		}
		p.queue = nil
		p.mu.Unlock()
		select {
		case <-p.more:
		case <-p.conn.ctx.Done():
			return chunk{}, false
		}
	}
}

// await waits until a chunk is due and its rule is not Hold. It returns Pass or Drop,
// or Cut when the connection is over.
func (p *pump) await(c chunk) cluster.Mode {
	for {
		now := p.dir.current.Load()
		if p.silent.Load() {
			return cluster.Drop
		}
		var ripe <-chan time.Time // nil: only a new rule ends the wait
		switch now.rule.Mode {
		case cluster.Drop:
			return cluster.Drop
		case cluster.Hold:
			if now.rule.Once && c.read.Before(now.heldBy) {
				return cluster.Pass
			}
		case cluster.Pass:
			left := time.Until(c.due)
			if left <= 0 || !now.rule.Delays() {
				return cluster.Pass
			}
			ripe = time.After(left)
		}
		select {
		case <-now.changed:
		case <-ripe:
		case <-p.conn.ctx.Done():
			return cluster.Cut
		}
	}
}

// signal makes the channel of capacity one non-empty.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
