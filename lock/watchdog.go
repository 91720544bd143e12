package lock

import (
	"context"
	"sync"
	"time"
)

// watchdog knows every hold of a client and renews those that asked for no
// lease of their own, each of them every third of its lease, many in one request.
//
// It never holds its mutex while it talks to a server or to a hold. A hold is
// added before its owner knows of it and removed before its release is sent; an
// answer that comes later finds nothing here and is dropped.
type watchdog struct {
	client *Client
	poke   chan struct{} // something is due earlier than thought

	mu      sync.Mutex
	holds   map[*Hold]struct{}
	next    time.Time // when the loop wakes
	closed  bool
	running bool
}

// duty is what the watchdog owes a hold. Its mutex guards it.
type duty struct {
	due   time.Time // zero: nothing is to be renewed
	last  time.Time // nothing is to be renewed after that; zero: there is no end
	busy  bool      // a renewal is on its way
	again bool      // the last one had no answer: the next is not to come early
}

// batch is how many holds one request renews, as in Redisson.
const batch = 100

// batches is how many requests are made of what is due at once; if there is
// more, each renews more, for each has a goroutine.
const batches = 16

func newWatchdog(c *Client) *watchdog {
	return &watchdog{client: c, poke: make(chan struct{}, 1), holds: make(map[*Hold]struct{})}
}

// add takes charge of h, whose lease was asked for at sent. It is false after close.
func (w *watchdog) add(h *Hold, sent time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.holds[h] = struct{}{}
	if !h.auto {
		return true
	}
	h.duty.due = sent.Add(h.lease / 3)
	if !w.running {
		w.next = time.Now().Add(w.client.o.Lease / 3)
		w.running = w.client.bg.start(w.loop)
	} else if h.duty.due.Before(w.next) {
		w.wake()
	}
	return true
}

func (w *watchdog) remove(h *Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.holds, h)
}

// close ends every hold.
func (w *watchdog) close() {
	w.mu.Lock()
	w.closed = true
	var holds []*Hold
	for h := range w.holds {
		holds = append(holds, h)
	}
	w.mu.Unlock()
	for _, h := range holds {
		h.end(ErrClosed)
	}
}

func (w *watchdog) wake() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// loop looks every third of the client's lease, which is what all that it renews
// have: a hold that is taken meanwhile is due later, so nobody has to wake the
// loop for it, and most holds have gone before it looks. It ends when nothing is held.
func (w *watchdog) loop() {
	timer := time.NewTimer(w.client.o.Lease / 3)
	defer timer.Stop()
	for {
		select {
		case <-w.client.bg.ctx.Done():
			return
		case <-w.poke:
		case <-timer.C:
		}
		now := time.Now()
		due, next := w.collect(now)
		due = w.dismiss(due, now)
		if next.IsZero() {
			return
		}
		size := max(batch, (len(due)+batches-1)/batches)
		for len(due) > 0 {
			n := min(size, len(due))
			w.send(due[:n:n])
			due = due[n:]
		}
		timer.Reset(next.Sub(now))
	}
}

// collect takes out what is due now or so soon that it can go along, and says
// when to look again; zero: there is nothing to look at any more.
func (w *watchdog) collect(now time.Time) (due []*Hold, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.holds) == 0 && !now.Before(w.next) {
		w.running = false
		return nil, time.Time{}
	}
	next = now.Add(w.client.o.Lease / 3)
	for h := range w.holds {
		d := &h.duty
		switch {
		case d.due.IsZero() || d.busy:
		// One that is asked again waits as long as it was told to: where nobody listens, every request fails at
		// once, and without a wait the next would follow without end.
		case d.due.Sub(now) <= h.lease/30 && !d.again || !now.Before(d.due):
			d.busy = true
			due = append(due, h)
		case d.due.Before(next):
			next = d.due
		}
	}
	w.next = next
	return due, next
}

// dismiss sends away what has been renewed for as long as it may be, to end with its
// lease, and returns the rest.
func (w *watchdog) dismiss(due []*Hold, now time.Time) []*Hold {
	rest := due[:0]
	for _, h := range due {
		w.mu.Lock()
		over := !h.duty.last.IsZero() && !now.Before(h.duty.last)
		if over {
			h.duty = duty{}
		}
		w.mu.Unlock()
		if over {
			h.arm()
			continue
		}
		rest = append(rest, h)
	}
	return rest
}

// send renews holds in one request, beside all others that are on their way: a
// server that hangs must not keep the rest from being renewed.
func (w *watchdog) send(holds []*Hold) {
	w.client.bg.start(func() {
		limit := holds[0].lease
		claims := make([]claim, len(holds))
		for i, h := range holds {
			h.arm()
			claims[i] = h.claim
			limit = min(limit, h.lease)
		}
		ctx, cancel := context.WithTimeout(w.client.bg.ctx, limit/3)
		defer cancel()
		for i, r := range w.client.store.renew(ctx, claims) {
			w.settle(holds[i], r)
		}
		w.wake()
	})
}

// settle takes the answer for h: another turn in a third of the lease, soon
// again if there was none, and the end if the hold is gone.
func (w *watchdog) settle(h *Hold, r renewal) {
	due := r.sent.Add(h.lease / 3)
	if r.err != nil {
		due = time.Now().Add(min(w.client.backoff(), h.lease/10))
	}
	w.mu.Lock()
	_, here := w.holds[h]
	if here {
		h.duty = duty{due: due, last: h.duty.last, again: r.err != nil}
	}
	w.mu.Unlock()
	if !here || r.err != nil {
		return // released or lost meanwhile, or to be asked again
	}
	if h.settle(r) != nil {
		return
	}
	h.emit(Renewed, time.Time{}, nil)
	if w.client.o.OnRenewed != nil {
		w.client.o.OnRenewed(h)
	}
}
