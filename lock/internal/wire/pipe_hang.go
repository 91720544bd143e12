package wire

import "time"

// armLate has overtake run after d, unless it will anyway. The caller holds the mutex.
func (p *Pipe) armLate(d time.Duration) {
	switch {
	case p.armed:
		return
	case p.late == nil:
		p.late = time.AfterFunc(d, p.overtake)
	default:
		p.late.Reset(d)
	}
	p.armed = true
}

// overtake starts a third sender if both others hang and calls wait behind them. It starts no more, as [Pipe.push]
// does: they would compete for connections, and in a simulation the order in which they get them is not settled.
func (p *Pipe) overtake() {
	if p.order != nil { // a sender or a caller may be awake at this instant, too
		p.order(p.server, nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	if len(p.waiting) == 0 || p.senders > minSenders {
		return
	}
	if left := senderHangs - time.Since(p.taken); left > 0 {
		p.armLate(left)
	} else if p.bg.Start(p.work) {
		p.senders++
	}
}
