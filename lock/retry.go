package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// tries is how often a request is sent that must not wait: a connection of the pool may have died unnoticed.
const tries = 3

// undoGrace is for how long the caller of an acquire that has failed waits for proof that nothing is left behind.
const undoGrace = 250 * time.Millisecond

// retrier sends a request until there is a reply, or its context ends. The request
// must get the same reply however often it is sent.
type retrier struct {
	client    *Client
	ctx       wire.LazyTimeout
	parent    endless // of ctx, if it must not end with the caller's
	uncertain bool    // a request of unknown outcome was sent
	last      error
}

// retry is a retrier whose context ends with ctx or the client's timeout.
func (c *Client) retry(ctx context.Context) *retrier {
	r := &retrier{client: c}
	r.ctx.Context, r.ctx.End = ctx, time.Now().Add(c.o.Timeout)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(r.ctx.End) {
		r.ctx.End = earlier
	}
	return r
}

// detach is retry, in a zero retrier, for work that is done even if ctx has ended.
func (r *retrier) detach(ctx context.Context, c *Client) {
	r.client, r.parent.Context = c, ctx
	r.ctx.Context, r.ctx.End = &r.parent, time.Now().Add(c.o.Timeout)
}

// endless is context.WithoutCancel without an allocation of its own.
type endless struct{ context.Context }

// Deadline implements context.Context.
func (*endless) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (*endless) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (*endless) Err() error { return nil }

// next reports whether to send the request again, which failed with err, and else returns the error of all tries.
func (r *retrier) next(err error) (again bool, final error) {
	if err != nil {
		r.uncertain = r.uncertain || outcomeOf(err).MayHaveHappened()
		if r.last != nil && r.ctx.Err() != nil {
			err = r.last // a request that was cut short may have been sent, but says less than the one before it
		}
	}
	r.last = err
	if err != nil {
		// What too few replicas have is sent again: the reply is the same, and WAIT waits for all that was written before.
		o := outcomeOf(err)
		if o != wire.Rejected && o != wire.Broken && r.client.pause(&r.ctx, r.client.backoff()) {
			return true, nil
		}
		if r.uncertain {
			err = &requestError{wire.Unknown, err}
		}
	}
	r.ctx.Free()
	return false, err
}

// giveBack releases cl, even if ctx has ended. The reply is store.release's.
func (c *Client) giveBack(ctx context.Context, cl claim) (int, error) {
	return new(retrier).giveBack(ctx, c, cl)
}

// giveBack releases cl as [Client.giveBack] does. r must be zero and must not be used again, because requests without a
// reply may keep it.
func (r *retrier) giveBack(ctx context.Context, c *Client, cl claim) (int, error) {
	for r.detach(ctx, c); ; {
		left, err := cl.store.release(&r.ctx, cl)
		if again, err := r.next(err); !again {
			return left, err
		}
	}
}

// undo runs back, which undoes the possible effect of a failed acquire, even if ctx has ended. It returns why, the
// error of the acquire, marked with [ErrUnknown] unless back has confirmed that nothing is left. It waits for the
// confirmation for the grace period of the client; with untilEnd, the period begins when ctx ends.
func (c *Client) undo(ctx context.Context, untilEnd bool, why error, back func(ctx context.Context) error) error {
	why = definiteError{why, true} // the outcome of one request does not decide the whole
	undone := make(chan error, 1)
	if c.bg.Start(func() { undone <- back(context.WithoutCancel(ctx)) }) {
		timer := time.NewTimer(c.grace)
		defer timer.Stop()
		if untilEnd {
			timer.Stop()
			defer context.AfterFunc(ctx, func() { timer.Reset(c.grace) })()
		}
		select {
		case err := <-undone:
			if err == nil {
				return why
			}
		case <-timer.C:
		}
	}
	return fmt.Errorf("%w: %w", ErrUnknown, why)
}

// backoff is the delay before a request is sent again whose server did not
// reply: short, because a failover takes as long as it takes.
func (c *Client) backoff() time.Duration {
	return c.random.Between(20*time.Millisecond, 100*time.Millisecond)
}

// pause waits for d and reports whether ctx and the client still live.
func (c *Client) pause(ctx context.Context, d time.Duration) bool {
	return c.bg.Sleep(ctx, d, nil)
}
