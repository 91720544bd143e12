package lock

import (
	"context"
	"sync"
	"time"
)

// lazyTimeout is context.WithTimeout that starts its timer only when Done is first
// called: most requests are replied to before that.
type lazyTimeout struct {
	context.Context // the parent
	deadline        time.Time

	mu    sync.Mutex
	timed context.Context // nil: Done was not called yet
	stop  context.CancelFunc
}

// Deadline is that of context.Context.
func (l *lazyTimeout) Deadline() (time.Time, bool) { return l.deadline, true }

// Done is that of context.Context.
func (l *lazyTimeout) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timed == nil {
		l.timed, l.stop = context.WithDeadline(l.Context, l.deadline)
	}
	return l.timed.Done()
}

// Err is that of context.Context.
func (l *lazyTimeout) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.timed != nil:
		return l.timed.Err()
	case l.Context.Err() != nil:
		return l.Context.Err()
	case !time.Now().Before(l.deadline):
		return context.DeadlineExceeded
	}
	return nil
}

// free stops the timer.
func (l *lazyTimeout) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		l.stop()
	}
}
