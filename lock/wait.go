package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// turn is the answer to one question of somebody who waits.
type turn struct {
	done  bool
	left  time.Duration // not done: the answer may be another after that; 0: nobody knows
	spare bool          // not done, but it may be for somebody who wants less
	why   error         // not done: the reason
	other string        // not done: wait in the line of this channel; empty: of the one given to await
}

// waiter asks until it is its turn, and sleeps in line between the questions.
type queueWait struct {
	client *Client
	waiter *waiter
	woken  bool // a wake-up was taken and has not served yet
}

// await asks until the answer is done or final, or ctx ends. It asks, takes
// a place in the line of channel, asks again (it may have come to be between),
// and then sleeps until it is told, for no longer than left and PollMax.
func (c *Client) await(ctx context.Context, channel string, ask func(ctx context.Context) (turn, error)) error {
	w := &queueWait{client: c}
	served := false
	var known error // what the last answer said
	defer func() { w.leave(served) }()
	for {
		a, err := ask(ctx)
		if err == nil && !a.done {
			known = a.why
		}
		switch {
		case err != nil && isFinal(err):
			return err
		case err == nil && a.done:
			served = true
			return nil
		case err == nil && w.join(channel, a.other):
			continue
		}
		if err == nil {
			err = a.why
			w.decline(a.spare)
		}
		if !w.sleep(ctx, w.delay(a, err)) {
			if known != nil && ctx.Err() != nil { // a question that was cut short says less
				err = known
			}
			return c.stopped(ctx, err)
		}
	}
}

// now is await without waiting: a few questions, for a connection may have died unnoticed.
func (c *Client) now(ctx context.Context, ask func(ctx context.Context) (turn, error)) error {
	for i := 1; ; i++ {
		a, err := ask(ctx)
		switch {
		case err == nil && a.done:
			return nil
		case err == nil:
			return a.why
		case i == tries || isFinal(err) || !c.pause(ctx, c.backoff()):
			return c.stopped(ctx, err)
		}
	}
}

// stopped is why a wait has ended that met last.
func (c *Client) stopped(ctx context.Context, last error) error {
	why := context.Cause(ctx)
	if c.bg.ctx.Err() != nil {
		why = ErrClosed
	}
	if why == nil || errors.Is(last, why) {
		return last
	}
	return fmt.Errorf("%w: %w", last, why)
}

// join takes a place in the line, and reports false if it has it already. Who
// goes from one line to another passes on what woke it: that one is free.
func (w *queueWait) join(channel, other string) bool {
	if other != "" {
		channel = other
	}
	if w.waiter != nil && w.waiter.queue.channel == channel {
		return false
	}
	w.leave(false)
	// Another line than its own is that of a mutex.
	shard := other != "" && w.client.queues.notifyMode(context.Background()) == notifyShard
	w.waiter, w.woken = w.client.queues.joinOn(channel, shard), false
	return true
}

func (w *queueWait) delay(a turn, err error) time.Duration {
	limit := w.client.o.PollMax
	switch {
	case a.why == nil && err != nil:
		return w.client.backoff()
	case a.left <= 0:
		return limit
	}
	return min(a.left+w.client.random.between(time.Millisecond, 5*time.Millisecond), limit)
}

// decline passes the wake-up on to those behind if there is something for them.
func (w *queueWait) decline(spare bool) {
	if w.woken && spare {
		w.client.queues.passOn(w.waiter)
	}
	w.woken = false
}

// sleep waits until told or for d. It is false when ctx or the client has ended.
func (w *queueWait) sleep(ctx context.Context, d time.Duration) bool {
	if w.waiter == nil {
		return w.client.pause(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.waiter.wake:
		w.woken = true
		return true
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-w.client.bg.ctx.Done():
	}
	return false
}

// leave gives the place up. A wake-up that has not served is passed on: one that
// was taken before the waiter gave up, and one that came while it was served.
func (w *queueWait) leave(served bool) {
	if w.waiter == nil {
		return
	}
	if w.woken && !served {
		w.client.queues.passOn(w.waiter)
	}
	w.client.queues.leave(w.waiter, false)
}

// passOn wakes the next behind p who is not awake already.
func (s *waitQueues) passOn(p *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	behind := false
	for _, other := range p.queue.waiters {
		if other == p {
			behind = true
			continue
		}
		if !behind {
			continue
		}
		select {
		case other.wake <- struct{}{}:
			return
		default:
		}
	}
}
