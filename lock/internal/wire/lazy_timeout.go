package wire

import (
	"context"
	"sync"
	"time"
)

// LazyTimeout is context.WithTimeout that starts its timer only when Done is first
// called: most requests are replied to before that.
type LazyTimeout struct {
	context.Context // the parent
	End             time.Time

	mu    sync.Mutex
	timed context.Context // nil: Done was not called yet
	stop  context.CancelFunc
}

// Deadline implements context.Context.
func (l *LazyTimeout) Deadline() (time.Time, bool) { return l.End, true }

// Done implements context.Context.
func (l *LazyTimeout) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timed == nil {
		l.timed, l.stop = context.WithDeadline(l.Context, l.End)
	}
	return l.timed.Done()
}

// Err implements context.Context.
func (l *LazyTimeout) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.timed != nil:
		return l.timed.Err()
	case l.Context.Err() != nil:
		return l.Context.Err()
	case !time.Now().Before(l.End):
		return context.DeadlineExceeded
	}
	return nil
}

// Started reports whether the timer was started.
func (l *LazyTimeout) Started() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timed != nil
}

// Free stops the timer.
func (l *LazyTimeout) Free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		l.stop()
	}
}
