package sessions

import (
	"context"
	"log/slog"
	"time"

	"github.com/lockchaos/lockchaos/lock"
)

// Observer reports events to a program. Its zero value reports none.
type Observer struct {
	Observe func(lock.Event)
	Logger  *slog.Logger
}

// noCall is the context of an event that no call has caused.
func noCall() context.Context { return nil }

// Now is the time of a call that will be reported.
func (o *Observer) Now() time.Time { return time.Now() }

// Report reports an event that a call with this context has caused, which began then; nil and zero: no call has.
func (o *Observer) Report(ctx context.Context, e lock.Event, began time.Time) {
	e.Context = ctx
	if !began.IsZero() {
		e.Took = time.Since(began)
	}
	if o.Logger != nil {
		e.Log(o.Logger)
	}
	if o.Observe != nil {
		o.Observe(e)
	}
}

// Acquired reports an acquire that has ended with err; nil: it was granted with this token.
func (o *Observer) Acquired(ctx context.Context, e lock.Event, token int64, err error, began time.Time) {
	if e.Kind, e.Token, e.Err = lock.Acquired, token, err; err != nil {
		e.Kind = lock.NotAcquired
	}
	o.Report(ctx, e, began)
}

// The first event that no server has answered comes after unreachableAfter, the others after unreachableEvery each.
const (
	unreachableAfter = 2 * time.Second
	unreachableEvery = 10 * time.Second
)
