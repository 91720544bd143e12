package wait

import (
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Waiter is one entry of a wait queue.
type Waiter struct {
	queue   *queue
	Wake    chan time.Duration // holds one wake-up: the delay before the request
	First   chan struct{}      // closed when it is the first in its queue
	Due     time.Time          // set before First is closed: the latest time of its next request; zero: any
	Hold    string             // woken only by messages for this hold or for all; empty: by any
	chained bool               // the one of the chained waiters that is granted the lock wakes the next
	asleep  bool               // it waits for its next wake-up; false from that on, until it has sent its request
	delayed bool               // it was woken with a delay, which has not ended
	next    wire.Call          // if prepared
	handed  *Handed            // a request that was sent for it, and that it has not seen; nil: none was

	prepared bool // while it sleeps, its next request may be sent for it
}

// Channel is the channel of the queue of w.
func (w *Waiter) Channel() string { return w.queue.channel }

// wakeSome wakes the n first waiters that are not awake already; after: see [Waiter.WakeUp].
func wakeSome(waiters []*Waiter, n int, after time.Duration) {
	for _, w := range waiters {
		if n == 0 {
			return
		}
		if w.WakeUp(after) {
			n--
		}
	}
}

// WakeUp makes w send its next request, at once or after a delay. It reports false if w is awake already. While w
// waits for the end of a delay, another delay changes nothing.
func (w *Waiter) WakeUp(after time.Duration) bool {
	if w.delayed {
		if after > 0 {
			return true
		}
		select {
		case <-w.Wake:
		default:
		}
	}
	w.delayed = after > 0
	w.asleep = w.asleep && w.delayed
	select {
	case w.Wake <- after:
		return true
	default:
		w.delayed = false
		return false
	}
}

// Without delays, all clients that a message reaches would send requests at once. If they are more than herdFree, each
// draws a delay of less than n² times herdSpacing, where n is their number, at most herdMax. The mean interval between
// requests, and the mean delay of the first, is n times herdSpacing: about the time in which a server sends n messages.
const (
	herdFree    = 32
	herdMax     = 1000
	herdSpacing = 500 * time.Nanosecond
)

// herdDelay is the longest delay of one of n clients that a message reaches.
func herdDelay(n int) time.Duration {
	if n <= herdFree {
		return 0
	}
	n = min(n, herdMax)
	return time.Duration(n*n) * herdSpacing
}
