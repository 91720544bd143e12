package locks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/lock"
)

// scope is a hold that package lock gives to a function (Do): it lasts until the function returns.
type scope struct {
	ctx    context.Context // of the function
	token  int64
	leave  chan error    // how the function is to end
	over   chan struct{} // closed when the call of Do has ended
	err    error         // of that call
	thrown any           // the value of its panic
}

var (
	errScope    = errors.New("a hold of a function is not renewed by hand")
	errScopeEnd = errors.New("the function has failed")
	errLeft     = fmt.Errorf("%w: the function has ended before", client.ErrNotHeld)
)

// Token is the fencing token.
func (s *scope) Token() int64 { return s.token }

// Count is how many holds the owner has.
func (s *scope) Count() int {
	if s.ctx.Err() != nil {
		return 0
	}
	return 1
}

// Renew refuses: the function has no hold to renew.
func (s *scope) Renew(context.Context) error { return errScope }

// Context is the context of the function.
func (s *scope) Context() context.Context { return s.ctx }

// Done is closed when the hold ends.
func (s *scope) Done() <-chan struct{} { return s.ctx.Done() }

// Err is why the hold has ended; nil while it lasts.
func (s *scope) Err() error { return context.Cause(s.ctx) }

// Deadline is not known: the requested lease counts.
func (s *scope) Deadline() time.Time { return time.Time{} }

// Release lets the function return.
func (s *scope) Release(context.Context) error { return s.end(nil) }

// end lets the function return why, or panic with it if it is [errScopePanic], and returns how the hold was released.
func (s *scope) end(why error) error {
	select {
	case s.leave <- why:
	case <-s.over:
		return errLeft
	}
	<-s.over
	switch {
	case errors.Is(why, errScopePanic):
		if thrown, ok := s.thrown.(error); !ok || !errors.Is(thrown, errScopePanic) {
			return contradiction("the function panicked with %v, but Do returned %v", why, s.err)
		}
		return why
	case s.thrown != nil:
		return contradiction("Do panicked with %v", s.thrown)
	case why == nil:
		return s.err
	case !errors.Is(s.err, why):
		return contradiction("the function returned error %v, but Do returned %v", why, s.err)
	}
	return without(s.err, why)
}

// errScopePanic is the value with which a function panics.
var errScopePanic = errors.New("the function has panicked")

// without is err, which joins others, without one of them.
func without(err, one error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil // it is that one
	}
	var rest []error
	for _, e := range joined.Unwrap() {
		if !errors.Is(e, one) {
			rest = append(rest, e)
		}
	}
	return errors.Join(rest...)
}

// runScope is a call of Do.
type runScope func(ctx context.Context, work func(ctx context.Context, token int64) error, opts ...lock.Option) error

// scopeOf is Do of a lock of package lock; nil: it has none.
func scopeOf(l any) runScope {
	switch l := l.(type) {
	case interface {
		Do(ctx context.Context, work func(ctx context.Context, token int64) error, opts ...lock.Option) error
	}:
		return l.Do
	case interface {
		Do(ctx context.Context, work func(ctx context.Context) error, opts ...lock.Option) error
	}:
		return func(ctx context.Context, work func(ctx context.Context, token int64) error, opts ...lock.Option) error {
			return l.Do(ctx, func(ctx context.Context) error { return work(ctx, 0) }, opts...)
		}
	}
	return nil
}

// enter acquires a lock for a function, which lasts until it is to end.
func enter(ctx context.Context, do runScope, opts []lock.Option) (held, error) {
	closed := callIn(ctx).closed
	s := &scope{leave: make(chan error), over: make(chan struct{})}
	entered := make(chan struct{})
	go func() {
		defer close(s.over)
		defer func() { s.thrown = recover() }()
		s.err = do(ctx, func(inner context.Context, token int64) error {
			s.ctx, s.token = inner, token
			close(entered)
			var why error
			select {
			case why = <-s.leave:
			case <-closed: // nothing is left in it
			}
			if errors.Is(why, errScopePanic) {
				panic(why)
			}
			return why
		}, opts...)
	}()
	select {
	case <-entered:
		return s, nil
	case <-s.over:
	}
	if s.err == nil {
		return nil, contradiction("Do returned no error, but did not call the function (panic: %v)", s.thrown)
	}
	return nil, s.err
}

// checkScope compares the hold of a function with the event of its acquire, and completes it.
func (l *library) checkScope(s *scope, a client.Acquire) error {
	event, seen := l.events.takeOf(eventID{lock.Acquired, a.Key, a.Owner})
	switch {
	case !seen:
		return contradiction("the observer got no event for the acquire")
	case s.token != 0 && event.Token != s.token:
		return contradiction("the event of the acquire has token %d, but the function got %d", event.Token, s.token)
	}
	s.token = event.Token
	return nil
}

// leave ends the hold of a function, which fails or panics if that is asked for.
func (l *library) leave(s *scope, ref client.Hold) error {
	why := error(nil)
	switch {
	case ref.Failed && isEven(ref.Owner):
		why = errScopeEnd
	case ref.Failed:
		why = errScopePanic
	}
	err := s.end(why)
	if errors.Is(err, client.ErrContradiction) || errors.Is(err, errLeft) {
		return err
	}
	event, seen := l.events.takeOf(eventID{lock.Released, ref.Key, ref.Owner})
	switch {
	case !seen:
		return contradiction("the function has ended, but the observer got no event for the release")
	case errors.Is(why, errScopePanic):
		return event.Err // with the panic, the error of the release is lost
	case (event.Err == nil) != (err == nil):
		return contradiction("Do returned error %v, but the event of its release says %v", err, event.Err)
	}
	return err
}
