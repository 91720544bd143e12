package wire

import "time"

// watchForHang starts the timer of relieveHanging with d, unless it runs already. The caller holds the mutex.
func (p *Pipe) watchForHang(d time.Duration) {
	switch {
	case p.hangTimerSet:
		return
	case p.hangTimer == nil:
		p.hangTimer = time.AfterFunc(d, p.relieveHanging)
	default:
		p.hangTimer.Reset(d)
	}
	p.hangTimerSet = true
}

// relieveHanging starts a third sender if both others hang and calls wait behind them. Unlike [Pipe.Push] it starts no
// more: they would compete for connections, and in a simulation the order in which they get them is not settled.
func (p *Pipe) relieveHanging() {
	if p.order != nil { // a sender or a caller may be awake at this instant, too
		p.order(p.server, nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hangTimerSet = false
	if len(p.waiting) == 0 || p.senders > minSenders {
		return
	}
	if left := senderHangs - time.Since(p.taken); left > 0 {
		p.watchForHang(left)
	} else if p.bg.Start(p.work) {
		p.senders++
	}
}
