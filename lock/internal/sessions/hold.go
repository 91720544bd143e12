package sessions

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/lock"
)

// Hold is the possession of a lock for as long as a session lasts. Its methods may be called concurrently.
type Hold struct {
	session       *Session
	about         func() lock.Event // without the kind
	lost, renewed func()
	ctx           context.Context
	cancel        context.CancelCauseFunc
	done          chan struct{}

	mu    sync.Mutex
	begun bool
	why   error // it has ended; nil: it lasts
}

// NewHold returns a hold whose context is a child of ctx, and which is not valid before Begin. about returns an event
// of the hold without its kind. The hold calls lost when it is lost, and renewed when its deadline is later.
func NewHold(ctx context.Context, s *Session, about func() lock.Event, lost, renewed func()) *Hold {
	h := &Hold{session: s, about: about, lost: lost, renewed: renewed, done: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	return h
}

// Notify returns a function that calls notify, which may be nil, with h.
func Notify[H any](notify func(H), h H) func() {
	return func() {
		if notify != nil {
			notify(h)
		}
	}
}

// Begin adds the hold to the session. It fails if that has ended, or if the hold was lost before.
func (h *Hold) Begin() error {
	why := ErrEnded
	if h.session.add(h) && time.Until(h.Deadline()) > 0 {
		h.mu.Lock()
		h.begun, why = h.why == nil, h.why
		h.mu.Unlock()
		if why == nil {
			return nil
		}
	}
	h.session.forget(h)
	h.cancel(why)
	return why
}

// watchDelay is how old a hold is when its keys or nodes are watched: a watch is not worth its requests if the hold is
// released at once.
const watchDelay = 10 * time.Millisecond

// AwaitWatch waits until the keys or nodes of the hold should be watched; false: it has ended before.
func (h *Hold) AwaitWatch() bool {
	select {
	case <-time.After(watchDelay):
		return true
	case <-h.done:
		return false
	}
}

// Lose ends the hold although its session lasts: its keys or nodes were deleted by somebody else. One that has not
// begun ends unreported. False: it had ended.
func (h *Hold) Lose() bool {
	ended := h.endBy(lock.ErrLost)
	if ended {
		h.session.forget(h)
	}
	return ended
}

// Context ends when the hold does, or its parent.
func (h *Hold) Context() context.Context { return h.ctx }

// Done is closed when the hold ends.
func (h *Hold) Done() <-chan struct{} { return h.done }

// Err is why the hold has ended: [lock.ErrLost], [lock.ErrReleased] or [lock.ErrClosed]; nil while it lasts.
func (h *Hold) Err() error {
	h.mu.Lock()
	why := h.why
	h.mu.Unlock()
	if why == nil && time.Until(h.Deadline()) <= 0 { // before the timer has noticed, as after a pause of the process
		h.session.End(lock.ErrLost)
		return lock.ErrLost
	}
	return why
}

// Deadline is the time until which the hold is valid.
func (h *Hold) Deadline() time.Time { return h.session.Deadline() }

// endBy ends the hold; false: it had ended.
func (h *Hold) endBy(why error) bool {
	h.mu.Lock()
	if h.why != nil {
		h.mu.Unlock()
		return false
	}
	h.why = why
	begun := h.begun
	h.mu.Unlock()
	h.cancel(why)
	close(h.done)
	if begun && why == lock.ErrLost { //nolint:errorlint // it is not wrapped
		h.report(noCall(), lock.Lost, why, time.Time{})
		h.lost()
	}
	return true
}

// extended is called when the deadline of h is later.
func (h *Hold) extended() {
	h.report(noCall(), lock.Renewed, nil, time.Time{})
	h.renewed()
}

func (h *Hold) report(ctx context.Context, kind lock.EventKind, err error, began time.Time) {
	if !h.session.observed() { // each heartbeat reports every hold
		return
	}
	e := h.about()
	e.Kind, e.Err = kind, err
	h.session.Report(ctx, e, began)
}

// Release ends the hold and calls remove, which removes the keys or nodes of the hold from the servers; false: they
// were gone. The context of remove has the values of ctx, but does not end with it. Release waits for remove no
// longer than Timeout. Its error is the reason why the hold had already ended, [lock.ErrLost] if remove returns
// false, and [lock.ErrUnknown] if remove has not returned or has failed. A removal that failed is
// repeated in the background.
func (h *Hold) Release(ctx context.Context, remove func(context.Context) (was bool, err error)) error {
	began := time.Now()
	err := h.release(ctx, remove)
	h.report(ctx, lock.Released, err, began)
	return err
}

func (h *Hold) release(ctx context.Context, remove func(context.Context) (was bool, err error)) error {
	if err := h.Err(); err != nil {
		return err
	}
	if !h.endBy(lock.ErrReleased) {
		return h.Err()
	}
	h.session.forget(h)
	var was bool
	err, answered := h.session.within(h.session.Remove(func() (err error) {
		was, err = remove(context.WithoutCancel(ctx))
		return err
	}))
	switch {
	case !answered:
		return fmt.Errorf("%w: no %s server has answered for %v", lock.ErrUnknown, h.session.Service, h.session.Timeout)
	case err != nil:
		return fmt.Errorf("%w: %w", lock.ErrUnknown, err)
	case !was:
		return lock.ErrLost
	}
	return nil
}
