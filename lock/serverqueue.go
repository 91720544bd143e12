package lock

import (
	"context"
	"errors"
	"time"
)

// ErrOneMaster says that this kind of lock cannot be kept on several masters:
// its queue, or its set of readers, would have to agree on all of them.
var ErrOneMaster = errors.New("this kind of lock lives on one master: make its client with New")

// beatMax bounds beat, whatever the poll limit is: the dead are skipped after three of them.
const maxHeartbeat = 2 * time.Second

// beat is how often a waiter that has a place at the server says that it lives.
func (c *Client) heartbeat() time.Duration { return min(c.o.PollMax, c.maxHeartbeat) }

// placeLife is for how many milliseconds a place is kept without a heartbeat.
func (c *Client) waiterTTL() int64 { return milliseconds(3 * c.heartbeat()) }

// inline is how an attempt waits for a lock that has its waiters at the server.
type inline struct {
	channel string        // where it is told
	named   bool          // told only of its own hold
	wake    time.Duration // asks at least this often
}

// stand asks until the lock is granted. Unlike run it always asks before it
// sleeps, for to ask is to take a place, and gives the place up in the end.
func (a *attempt) stand(ctx context.Context, in inline) (*Hold, error) {
	granted, unasked := false, false
	defer func() { a.quit(granted, unasked) }()
	a.waiter, _ = a.client.queues.joinLive(in.channel)
	for {
		if in.named && a.waiter != nil {
			a.client.queues.setHold(a.waiter, a.claim.id)
		}
		h, ttl, err := a.ask(ctx)
		unasked = err != nil
		switch {
		case h != nil:
			granted = true
			return h, nil
		case err != nil && isFinal(err):
			return nil, a.giveUp(ctx, err)
		case err == nil:
			a.uncertain = a.uncertain || a.claim.waiterTTL > 0
		}
		if err == nil && a.waiter == nil {
			a.waiter = a.client.queues.join(in.channel)
			continue // what was said in between was not heard
		}
		if !a.sleep(ctx, min(a.delay(0, ttl, err), in.wake)) {
			return nil, a.giveUp(ctx, a.because(ctx))
		}
	}
}

// attemptOf is an attempt at a lock of another kind than the plain mutex.
func (c *Client) attemptOf(ctx context.Context, name string, via store, o AcquireOptions) (*attempt, error) {
	if !c.single {
		return nil, ErrOneMaster
	}
	a, err := c.Mutex(name).attempt(ctx, o)
	if err != nil {
		return nil, err
	}
	a.claim.store = via
	return a, nil
}

// granted reads the answer of a script that takes a lock.
func granted(value any, sent time.Time) (grant, error) {
	n, err := integers(value, 4)
	if err != nil {
		return grant{}, err
	}
	switch n[0] {
	case -1:
		return grant{}, &requestError{rejected, ErrReleased}
	case -2:
		return grant{}, &requestError{rejected, ErrUpgrade}
	case -3:
		return grant{}, &requestError{rejected, ErrReentered}
	}
	return grant{
		ok:    n[0] == 1,
		count: int(n[1]),
		token: uint64(n[2]),
		ttl:   time.Duration(n[3]) * time.Millisecond,
		sent:  sent,
	}, nil
}

// left reads the answer of a script that gives a hold back.
func left(value any) (int, error) {
	n, err := integers([]any{value}, 1)
	if err != nil {
		return 0, err
	}
	return int(n[0]), nil
}
