package lock

import (
	"errors"
	"fmt"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Errors of this package, for errors.Is. More than one may apply.
var (
	// ErrHeld says that another owner has the lock.
	ErrHeld = errors.New("the lock is held by another owner")
	// ErrLost says that the hold ended before it was released: its lease expired, or its key was removed.
	ErrLost = errors.New("the hold was lost")
	// ErrNotOwner says that by now another owner has the lock. It comes with ErrLost.
	ErrNotOwner = errors.New("another owner has the lock by now")
	// ErrReentered says that the owner already holds the lock, and the acquire is not a re-entry ([WithReentry]).
	ErrReentered = errors.New("the owner holds the lock already")
	// ErrTooFewReplicas says that the grant did not reach as many replicas as [Options].Replicas requires; it was undone.
	ErrTooFewReplicas = errors.New("too few replicas have the grant")
	// ErrReleased says that the hold was released before.
	ErrReleased = errors.New("the hold was released")
	// ErrUnknown says that the operation may or may not have happened: it was sent, and no reply came. See [Definite].
	ErrUnknown = errors.New("outcome unknown")
	// ErrNoQuorum says that too few masters replied for a majority.
	ErrNoQuorum = errors.New("too few masters replied")
	// ErrSameServer says that two masters of a quorum are one server, such as two of its databases: it would have two
	// votes.
	ErrSameServer = errors.New("two masters of the quorum are the same server")
	// ErrUnfit says that a server is not fit for locks; see [Client.Check].
	ErrUnfit = errors.New("the server is not fit for locks")
	// ErrForeign says that the key of the lock holds something that is not a lock; it is left unchanged. A lock of
	// another library is [ErrHeld] instead.
	ErrForeign = errors.New("the key holds something that is not a lock; choose another name")
	// ErrClosed says that the [Client] was closed.
	ErrClosed = errors.New("the lock client is closed")
	// ErrNoPermits says that too few permits are free. It is also [ErrHeld].
	ErrNoPermits error = noPermits{}
	// ErrQueued says that enough permits of a [FairSemaphore] are free, but others wait for them. It is also
	// [ErrNoPermits] and [ErrHeld].
	ErrQueued error = queued{}
	// ErrPermits says that a number of permits or a count is out of range.
	ErrPermits = errors.New("number out of range")
	// ErrAbsent says that the semaphore or the latch was not set up, or was deleted. A
	// latch that does not exist is not open.
	ErrAbsent = errors.New("it does not exist: set it up first")
	// ErrArmed says that a latch is still counting, and cannot be armed.
	ErrArmed = errors.New("the latch is still counting")
	// ErrRearmed says that the generation of the latch that the call is about was deleted, and that the latch was armed
	// again. Whether that generation had opened is unknown.
	ErrRearmed = errors.New("the latch was deleted and armed again")
	// ErrNotAtomic says that [WithAtomic] was given for locks that are not all mutexes.
	ErrNotAtomic = errors.New("one script cannot take these locks")
	// ErrCrossSlot says that the keys are not in one cluster slot, as they must be.
	ErrCrossSlot = errors.New("the keys are not in one cluster slot; give them a common {tag}")
)

type noPermits struct{}

func (noPermits) Error() string        { return "too few permits are free" }
func (noPermits) Is(target error) bool { return target == ErrHeld }

type queued struct{}

func (queued) Error() string        { return "others wait for the permits that are free" }
func (queued) Is(target error) bool { return target == ErrHeld || target == ErrNoPermits }

// failed is the error of doing something to a named lock, semaphore or latch.
func failed(doing, kind, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %q: %w", doing, kind, name, err)
}

// Definite reports whether err, returned by this package, is proof that the
// operation did not happen and never will. A nil error is not.
func Definite(err error) bool {
	return err != nil && !errors.Is(err, ErrUnknown)
}

// requestError is the error of one request to the servers.
type requestError struct {
	outcome wire.Outcome
	err     error
}

// isFinal reports whether a retry after err would be useless or harmful.
func isFinal(err error) bool {
	o := outcomeOf(err)
	return o == wire.Rejected || o == wire.UnderReplicated || o == wire.Broken
}

func (e *requestError) Error() string { return e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }

// Is makes an unknown outcome match [ErrUnknown].
func (e *requestError) Is(target error) bool {
	return target == ErrUnknown && (e.outcome == wire.Unknown || e.outcome == wire.Broken)
}

// definiteError is an error that no longer leaves anything unknown.
type definiteError struct {
	err    error
	undone bool // any effect of the attempt was undone
}

func (e definiteError) Error() string { return e.err.Error() }

// Is matches the targets of the wrapped error, except [ErrUnknown].
func (e definiteError) Is(target error) bool { return target != ErrUnknown && errors.Is(e.err, target) }

// Undone reports whether err says that an acquire failed but may have held the lock meanwhile: the effect of its
// requests was undone before it returned. It implies [Definite].
func Undone(err error) bool {
	var d definiteError
	return errors.As(err, &d) && d.undone && Definite(err)
}

// outcomeOf is the outcome that err carries; unknown if it carries none.
func outcomeOf(err error) wire.Outcome {
	var r *requestError
	if errors.As(err, &r) {
		return r.outcome
	}
	return wire.Unknown
}

// reasons are the errors of this package by the reason why a request failed.
func reasons(r wire.Reason) error {
	switch r {
	case wire.Closed:
		return ErrClosed
	case wire.Foreign:
		return ErrForeign
	case wire.CrossSlot:
		return ErrCrossSlot
	case wire.Unfit:
		return ErrUnfit
	case wire.TooFewReplicas:
		return ErrTooFewReplicas
	}
	return nil
}

// judge makes the error of a request, which is not nil, one of this package.
func judge(err error) error {
	if r := (*requestError)(nil); errors.As(err, &r) {
		return err
	}
	w := wire.Classify(err)
	why, known := reasons(w.Reason), w.Err
	switch {
	case why == nil:
		why = known
	case known != nil:
		why = fmt.Errorf("%w: %w", why, known)
	}
	return &requestError{w.Outcome, why}
}

// decode reads the reply of any script, which has at least n integers unless its code is negative.
func decode(raw any, n int) (wire.Reply, error) {
	r, err := wire.Decode(raw, n)
	if err != nil {
		err = judge(err)
	}
	return r, err
}
