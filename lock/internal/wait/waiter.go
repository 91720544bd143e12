package wait

import (
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Waiter is one entry of a wait queue.
type Waiter struct {
	queue   *queue
	Wake    chan struct{} // holds one wake-up
	First   chan struct{} // closed when it is the first in its queue
	Due     time.Time     // set before first is closed: when it has to send a request at the latest; zero: when it wants
	Hold    string        // woken only by messages for this hold or for all; empty: by any
	chained bool          // the one of the chained waiters that is granted the lock wakes the next
	asleep  bool          // it waits for its next wake-up; false from that on, until it has sent its request
	next    wire.Call     // if prepared
	handed  *Handed       // a request that was sent for it, and that it has not seen; nil: none was

	prepared bool // while it sleeps, its next request may be sent for it
}

// Channel is the channel of the queue of w.
func (w *Waiter) Channel() string { return w.queue.channel }

// wakeSome wakes the n first waiters that are not awake already.
func wakeSome(waiters []*Waiter, n int) {
	for _, w := range waiters {
		if n == 0 {
			return
		}
		if w.WakeUp() {
			n--
		}
	}
}

// WakeUp reports false if w is awake already.
func (w *Waiter) WakeUp() bool {
	w.asleep = false
	select {
	case w.Wake <- struct{}{}:
		return true
	default:
		return false
	}
}
