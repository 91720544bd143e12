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

// observed reports whether events are wanted.
func (o *Observer) observed() bool { return o.Observe != nil || o.Logger != nil }

// Report reports an event caused by a call with this context that began at that time; nil and zero: by no call.
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

// While no server answers, the first event comes after unreachableAfter, and one more after each unreachableEvery.
const (
	unreachableAfter = 2 * time.Second
	unreachableEvery = 10 * time.Second
)
