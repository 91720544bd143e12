package lock

import (
	"errors"
	"fmt"
	"strings"
)

// What the kinds that count, and locks taken together, say; for errors.Is.
var (
	// ErrNoPermits says that too few permits are free. It is also [ErrHeld].
	ErrNoPermits error = noPermits{}
	// ErrPermits says that a number of permits or a count makes no sense: none,
	// negative, or more than there are.
	ErrPermits = errors.New("impossible number")
	// ErrAbsent says that nobody has set the semaphore or the latch up, or that
	// it was deleted. A latch that is not there is not open.
	ErrAbsent = errors.New("it does not exist: set it up first")
	// ErrArmed says that a latch is still counting, and cannot be armed.
	ErrArmed = errors.New("the latch is still counting")
	// ErrRearmed says that the latch that was meant was deleted, and that there is
	// another of its name. Nobody knows whether the first has opened.
	ErrRearmed = errors.New("the latch was deleted and armed anew")
	// ErrCrossSlot says that keys that had to be in one cluster slot are not; give
	// them a common {tag}.
	ErrCrossSlot = errors.New("the keys are not in one cluster slot; give them a common {tag}")
)

type noPermits struct{}

func (noPermits) Error() string        { return "too few permits are free" }
func (noPermits) Is(target error) bool { return target == ErrHeld }

// failed is the error of doing something to a thing of this package that has a name.
func failed(doing, kind, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %q: %w", doing, kind, name, err)
}

// crossSlot marks err if the server says that keys are in different slots.
func crossSlot(err error) error {
	if err == nil || errors.Is(err, ErrCrossSlot) || !strings.Contains(err.Error(), "CROSSSLOT") {
		return err
	}
	return &requestError{rejected, fmt.Errorf("%w: %w", ErrCrossSlot, err)}
}
