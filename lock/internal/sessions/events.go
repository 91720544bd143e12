package sessions

import (
	"log/slog"
	"time"

	"github.com/lockchaos/lockchaos/lock"
)

// Observer reports events to a program. Its zero value reports none.
type Observer struct {
	Observe func(lock.Event)
	Logger  *slog.Logger
}

// Now is the time of a call that will be reported.
func (o *Observer) Now() time.Time { return time.Now() }

// Report reports an event that a call has caused which began then; zero: no call has.
func (o *Observer) Report(e lock.Event, began time.Time) {
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
func (o *Observer) Acquired(e lock.Event, token int64, err error, began time.Time) {
	if e.Kind, e.Token, e.Err = lock.Acquired, token, err; err != nil {
		e.Kind = lock.NotAcquired
	}
	o.Report(e, began)
}

// The first event that no server has answered comes after unreachableAfter, the others after unreachableEvery each.
const (
	unreachableAfter = 2 * time.Second
	unreachableEvery = 10 * time.Second
)
