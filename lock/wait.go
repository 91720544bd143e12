package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wait"
)

// pollUnsubscribed is how often a waiter that may be the next polls where the server refuses subscriptions.
const pollUnsubscribed = 200 * time.Millisecond

// waitMode is how an acquire waits between its requests.
type waitMode uint8

const (
	// polling retries after random delays, which part clients that split the vote of several masters.
	polling waitMode = iota
	// spinning retries after random delays that start short.
	spinning
	// chained joins the wait queue of a mutex: the waiter that is granted the lock
	// wakes the next with its release. Those behind it rely on its requests.
	chained
	// ordered is for locks that know their waiters at the server: a waiter always
	// sends a request before it sleeps, because that request queues it there.
	ordered
	// independent is for locks that may serve several waiters at once.
	independent
)

// turn is the result of one request of an acquire.
type turn struct {
	done     bool
	ttl      time.Duration // not done: after that the reply may change; negative: no such time is known
	why      error         // not done
	fewerFit bool          // not done, but a waiter that wants less may be served
	channel  string        // not done: whose wait queue to join; empty: the wait's own
	again    bool          // not done, and the next request says more, unless there are waiters that send it
}

// requester sends the requests of a wait loop.
type requester interface {
	request(ctx context.Context) (turn, error)
}

// requestFunc is a requester.
type requestFunc func(ctx context.Context) (turn, error)

func (f requestFunc) request(ctx context.Context) (turn, error) { return f(ctx) }

// waitLoop is one call that waits: for a lock, for permits, for several locks, or for a latch to open.
type waitLoop struct {
	client   *Client
	name     string        // of the lock that is waited for
	channel  string        // of the wait queue
	maxSleep time.Duration // 0: no other limit than PollMax
	mode     waitMode
	tries    int // 0: no limit
	// retryDelay is for how long to sleep after a reply; nil: see delay.
	retryDelay  func(try int) time.Duration
	sleepsFirst bool          // if chained and not the first in the queue, sleep before the first request
	lasts       time.Duration // for how long, at least, a holder that dies keeps others out; 0: unknown
	shared      bool          // several waiters of the queue can be served at once
	backoff     *multiBackoff // nil: no limit

	served     bool
	uncertain  bool         // a request of unknown outcome was sent
	unanswered bool         // uncertain, and the last request returned an error
	owesRetry  bool         // others rely on its next reply: it was woken, or is chained and the first in the queue
	waiter     *wait.Waiter // in the wait queue; nil: not yet
	last       error
}

// run sends requests until one is granted or rejected, it backs off, or ctx ends. In between it waits in a
// queue: it joins the queue, sends one more request, because the lock may have become free in the meantime, and then
// sleeps until it is woken, but never for longer than [waitLoop.delay].
func (w *waitLoop) run(ctx context.Context, r requester) error {
	defer w.leave()
	if w.joinEarly() && w.mode == chained && w.sleepsFirst && !w.sleep(ctx, w.client.o.PollMax, r) {
		return w.stopped(ctx)
	}
	for n := 0; ; n++ {
		t, err := w.send(ctx, r)
		switch {
		case err == nil && t.done:
			w.served = true
			return nil
		case err != nil && isFinal(err):
			return err
		case n+1 == w.tries:
			return w.stopped(ctx)
		case w.backsOff():
			return w.stopped(ctx)
		case err == nil && t.again:
			w.join("")
			if w.client.queues.Ahead(w.waiter) > 0 && !w.sleep(ctx, w.client.o.PollMax, r) {
				return w.stopped(ctx)
			}
			continue
		case err == nil && w.join(t.channel):
			continue
		case err == nil:
			w.settle(t)
		case ctx.Err() == nil:
			w.client.reportUnreachable(w.name, err)
		}
		if !w.sleep(ctx, w.delay(n, t, err), r) {
			return w.stopped(ctx)
		}
	}
}

// once is run without waiting: a few requests, in case a connection has died unnoticed.
func (w *waitLoop) once(ctx context.Context, r requester) error {
	for i := 1; ; i++ {
		t, err := w.send(ctx, r)
		switch {
		case err == nil && t.done:
			return nil
		case err == nil:
			return t.why
		case i == tries || isFinal(err) || !w.client.pause(ctx, w.client.backoff()):
			return w.stopped(ctx)
		}
	}
}

func (w *waitLoop) send(ctx context.Context, r requester) (turn, error) {
	t, err := r.request(ctx)
	switch {
	case err == nil:
		w.last = t.why
		w.backoff.note(t.why)
	case w.last == nil || ctx.Err() == nil: // a request that was cut short says less than the reply before it
		w.last = err
	}
	if err != nil {
		o := outcomeOf(err)
		w.uncertain = w.uncertain || o.MayHaveHappened()
	}
	w.unanswered = err != nil && w.uncertain
	return t, err
}

// stopped is why a wait ends that got nothing.
func (w *waitLoop) stopped(ctx context.Context) error { return w.client.stopped(ctx, w.last) }

// stopped is why something ends whose last error was last.
func (c *Client) stopped(ctx context.Context, last error) error {
	why := context.Cause(ctx)
	if c.bg.Context.Err() != nil {
		why = ErrClosed
	}
	switch {
	case last == nil && why == nil:
		return ErrHeld
	case last == nil:
		return why
	case why == nil || errors.Is(last, why):
		return last
	}
	return fmt.Errorf("%w: %w", last, why)
}

// joinEarly joins the queue before the first request if that costs nothing, and
// reports whether there were others in it.
func (w *waitLoop) joinEarly() (others bool) {
	if w.mode == chained && w.client.queues.InUse() || w.mode == ordered {
		w.waiter, others = w.client.queues.JoinExisting(w.channel, w.mode == chained)
		w.owesRetry = w.mode == chained && w.waiter != nil && !others
	}
	return others
}

// join joins the queue of a channel, empty: the wait's own, and reports whether the next request must follow at once.
// It leaves the queue it was in before, and wakes the next waiter there if it was woken itself: that lock is free.
func (w *waitLoop) join(channel string) bool {
	if w.mode == polling || w.mode == spinning {
		return false
	}
	if channel == "" {
		channel = w.channel
	}
	if w.waiter != nil && w.waiter.Channel() == channel {
		return false
	}
	w.leave()
	var relies bool
	w.waiter, relies = w.client.queues.Join(channel, w.mode == chained)
	w.owesRetry = w.mode == chained && !relies
	return !relies
}

// settle is called with the reply that the waiter was woken for.
func (w *waitLoop) settle(t turn) {
	if w.owesRetry && t.fewerFit {
		w.client.queues.PassOn(w.waiter)
	}
	w.owesRetry = false
}

// sleep waits until woken or for d. A waiter that becomes the first in the meantime sleeps no longer than the first one
// does, because the waiters behind rely on it, and not beyond the time at which its request is due. It reports false
// when ctx or the client has ended or it backs off, unless its next request was sent for it. A wake-up that came before
// that is left for the next waiter.
func (w *waitLoop) sleep(ctx context.Context, d time.Duration, r requester) bool {
	if ctx.Err() != nil {
		return false
	}
	if !w.unanswered {
		d = w.backoff.limit(d)
	}
	if w.waiter == nil {
		return w.client.bg.Sleep(ctx, d, nil) && !w.backsOff()
	}
	next, prepared := prepare(r)
	w.client.queues.FallAsleep(w.waiter, next, prepared)
	timer := time.NewTimer(d)
	defer timer.Stop()
	defer w.client.queues.Awake(w.waiter)
	end := time.Now().Add(d)
	first := w.waiter.First
	for {
		select {
		case after := <-w.waiter.Wake:
			w.owesRetry = true
			if after > 0 {
				first = nil
				if deadline, ok := ctx.Deadline(); ok { // leaves time for the request
					after = min(after, time.Until(deadline)/2)
				}
				timer.Reset(min(after, time.Until(end)))
				continue
			}
			return !w.client.bg.Ended(ctx) || w.client.queues.Awake(w.waiter)
		case <-timer.C:
			return !w.backsOff() && !w.client.bg.Ended(ctx) || w.client.queues.Awake(w.waiter)
		case <-first:
			first = nil
			left := min(time.Until(end), w.client.o.PollMax)
			if due := w.waiter.Due; !due.IsZero() {
				left = min(left, time.Until(due))
				w.waiter.Due = time.Time{}
			}
			if w.client.queues.Polls(w.waiter) { // nor does a release by the one before it come as a message
				left = min(left, pollUnsubscribed)
			}
			end = time.Now().Add(left)
			timer.Reset(left)
		case <-ctx.Done():
			return w.client.queues.Awake(w.waiter)
		case <-w.client.bg.Context.Done():
			return w.client.queues.Awake(w.waiter)
		}
	}
}

// delay is for how long to sleep before request n+1.
func (w *waitLoop) delay(n int, t turn, err error) time.Duration {
	r, limit := w.client.random, w.client.o.PollMax
	var d time.Duration
	switch {
	case err != nil:
		d = w.client.backoff()
	case w.retryDelay != nil:
		d = max(w.retryDelay(n+1), minPause)
	case w.mode == spinning: // full jitter, and no more than the other owner has left
		limit = min(time.Millisecond<<min(n, 7), limit)
		if t.ttl > 0 {
			limit = min(limit, t.ttl)
		}
		d = max(r.Between(0, limit), 200*time.Microsecond)
	case w.mode == polling:
		limit = min(10*time.Millisecond<<min(n, 5), limit)
		d = r.Between(limit/4, limit)
	case w.waiter != nil && w.client.queues.Polls(w.waiter) && w.mayBeNext():
		limit = min(pollUnsubscribed, limit)
		d = r.Between(limit/2, limit)
	default:
		// A waiter further back retries later: the first one's reply helps all behind it, and a thousand waiters need not
		// send a request each second.
		ahead := time.Duration(0)
		if w.mode != independent {
			ahead = time.Duration(w.client.queues.Ahead(w.waiter))
		}
		if limit < time.Hour/1000 {
			limit *= 1 + min(ahead, 1000)
		}
		if d = limit; t.ttl >= 0 {
			d = min(t.ttl+ahead*time.Millisecond+r.Between(time.Millisecond, 5*time.Millisecond), limit)
		}
	}
	if w.maxSleep > 0 {
		d = min(d, w.maxSleep)
	}
	return d
}

// leads reports whether others rely on the waiter because it is the first of its queue: messages wake the first, so
// that only the first knows when the lease of the lock ends. A waiter that is woken by its hold is known to the server.
func (w *waitLoop) leads() bool { return w.waiter.Hold == "" && w.client.queues.Ahead(w.waiter) == 0 }

// mayBeNext reports whether the waiter may be the next to be granted the lock. Waiters that are woken by their hold are
// ordered by the server, whose order may differ from this queue's if they requested the lock at the same time.
func (w *waitLoop) mayBeNext() bool {
	return w.waiter.Hold != "" || w.client.queues.Ahead(w.waiter) == 0
}

// leave leaves the queue. A waiter that was woken and got no reply since wakes the next (redisson#4744), as does a
// waiter that is woken while it leaves, and the first of a queue; but the holder of a lock does so with its release.
func (w *waitLoop) leave() {
	if w.waiter == nil {
		return
	}
	if (w.owesRetry || w.leads()) && !w.served {
		w.client.queues.PassOn(w.waiter)
	}
	if w.shared && w.served && !w.owesRetry { // no message said so: the lock has expired
		w.client.queues.WakeAll(w.waiter)
	}
	var due time.Time
	if w.served && w.waiter.Hold == "" && w.lasts > 0 {
		due = time.Now().Add(w.lasts)
	}
	w.client.queues.Leave(w.waiter, w.served && w.mode != independent, due)
	w.waiter, w.owesRetry = nil, false
}
