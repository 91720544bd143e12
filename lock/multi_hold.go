package lock

import (
	"context"
	"errors"
	"sync"
	"time"
)

// MultiHold is the possession of several locks, from Acquire until Release: it ends
// as soon as one of them does. Several goroutines may use it.
type MultiHold struct {
	holds  []partHold // in the order in which they were taken
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}

	mu   sync.Mutex
	over error // why it has ended; nil while it lasts
}

func newMultiHold(ctx context.Context, holds []partHold) *MultiHold {
	m := &MultiHold{holds: holds, done: make(chan struct{})}
	for _, h := range holds {
		if k := h.base(); k.claim.owner != "" {
			ctx = withOwner(ctx, ownerKey{k.client, k.claim.key}, k.claim.owner)
		}
	}
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	for _, h := range holds {
		h.base().whenEnded(m.part)
	}
	return m
}

// part is called when one of the locks has ended. The others are no longer
// renewed: a hold of which a part is lost is of no use.
func (m *MultiHold) part(why error) {
	if m.finish(why) != nil {
		return
	}
	for _, h := range m.holds {
		h.base().end(why)
	}
}

// finish ends the hold on this side, once, and returns why it had ended before.
func (m *MultiHold) finish(why error) (before error) {
	m.mu.Lock()
	before = m.over
	if before == nil {
		m.over = why
	}
	m.mu.Unlock()
	if before == nil {
		m.cancel(why)
		close(m.done)
	}
	return before
}

// Context ends when the hold does, that is with the first of its locks; otherwise it
// is like [Hold.Context], for any of the locks.
func (m *MultiHold) Context() context.Context { return m.ctx }

// Done is like [Hold.Done].
func (m *MultiHold) Done() <-chan struct{} { return m.done }

// Err is like [Hold.Err].
func (m *MultiHold) Err() error {
	for _, h := range m.holds {
		_ = h.base().Err() // ends all if a deadline has passed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over
}

// Names are the names of the locks, in the order in which they were taken.
func (m *MultiHold) Names() []string {
	out := make([]string, len(m.holds))
	for i, h := range m.holds {
		out[i] = h.base().claim.name
	}
	return out
}

// Token is the fencing token of the lock of that name, as in [FencedHold.Token]. fenced is false if no lock has that
// name, or if it has no token: permits, and a plain mutex unless one script took it together with a fenced one. If two
// locks, of two clients, have that name, the first one counts.
func (m *MultiHold) Token(name string) (token int64, fenced bool) {
	for _, h := range m.holds {
		if h.base().claim.name != name {
			continue
		}
		if one, is := h.(*Hold); is {
			return one.token, one.token != 0
		}
		break
	}
	return 0, false
}

// Count is like [Hold.Count], for the lock that the owner held the fewest times; 0: all of the locks are permits, which
// have no owner.
func (m *MultiHold) Count() int {
	least, known := 0, false
	for _, h := range m.holds {
		if one, is := h.(*Hold); is && (!known || one.Count() < least) {
			least, known = one.Count(), true
		}
	}
	return least
}

// Deadline is when the validity of the hold ends: the earliest deadline of its locks. Zero: all of the locks are
// permits of a [Semaphore], which have no lease.
func (m *MultiHold) Deadline() time.Time {
	var first time.Time
	for _, h := range m.holds {
		if d := h.base().Deadline(); first.IsZero() || !d.IsZero() && d.Before(first) {
			first = d
		}
	}
	return first
}

// Renew extends each lock to its full lease from now on, as [Hold.Renew].
func (m *MultiHold) Renew(ctx context.Context) error {
	for _, h := range m.holds {
		if err := h.Renew(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Extend extends each lock to lease from now on, as [Hold.Extend].
func (m *MultiHold) Extend(ctx context.Context, lease time.Duration) error {
	for _, h := range m.holds {
		if err := h.Extend(ctx, lease); err != nil {
			return err
		}
	}
	return nil
}

// Release releases all locks at the same time, in one round trip for each server, even if ctx has ended and others
// fail. Its error joins the errors of [Hold.Release]; it is [ErrReleased] alone if all were released before.
func (m *MultiHold) Release(ctx context.Context) error {
	before := m.finish(ErrReleased)
	errs := releaseTogether(ctx, m.holds)
	repeated := 0
	for i, err := range errs {
		if errors.Is(err, ErrReleased) {
			repeated++
			errs[i] = nil
		}
	}
	if repeated == len(m.holds) {
		return failed("release", "locks", m.holds[0].base().claim.name, ErrReleased)
	}
	if err := errors.Join(errs...); err != nil || !errors.Is(before, ErrLost) {
		return err
	}
	return failed("release", "locks", m.holds[0].base().claim.name, ErrLost)
}

// releaseTogether releases holds at the same time, so that a server that hangs delays no release at another one.
func releaseTogether(ctx context.Context, holds []partHold) []error {
	errs := make([]error, len(holds))
	var wg sync.WaitGroup
	for i := len(holds) - 1; i >= 0; i-- {
		wg.Go(func() { errs[i] = holds[i].Release(ctx) })
	}
	wg.Wait()
	return errs
}
