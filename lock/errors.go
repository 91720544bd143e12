package lock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// What an error of this package says, for errors.Is. More than one may apply.
var (
	// ErrHeld says that another owner has the lock.
	ErrHeld = errors.New("the lock is held by another owner")
	// ErrLost says that the hold ended before it was given back: its lease ran
	// out, or somebody removed it.
	ErrLost = errors.New("the hold was lost")
	// ErrNotOwner says that by now another owner has the lock. It comes with ErrLost.
	ErrNotOwner = errors.New("another owner has the lock by now")
	// ErrReentered says that the owner holds the lock already, and asked not to hold it twice.
	ErrReentered = errors.New("the owner holds the lock already")
	// ErrTooFewReplicas says that the grant did not reach as many replicas as
	// [Options].Replicas asks for; it was taken back.
	ErrTooFewReplicas = errors.New("too few replicas have the grant")
	// ErrReleased says that the hold was given back before.
	ErrReleased = errors.New("the hold was released")
	// ErrUnknown says that nobody knows whether the operation happened: it was
	// sent, and no answer came. See [Definite].
	ErrUnknown = errors.New("outcome unknown")
	// ErrNoQuorum says that too few masters answered for a majority.
	ErrNoQuorum = errors.New("too few masters answered")
	// ErrForeign says that the key of the lock holds something that is no lock. It is left as it is.
	ErrForeign = errors.New("the key holds something that is not a lock; choose another name")
	// ErrClosed says that the [Client] was closed.
	ErrClosed = errors.New("the lock client is closed")
)

// Definite reports whether err, returned by this package, is proof that the
// operation did not happen and never will. A nil error is not.
func Definite(err error) bool {
	return err != nil && !errors.Is(err, ErrUnknown)
}

// fate is what an error of a request says about the request.
type outcome int

const (
	notExecuted     outcome = iota + 1 // certainly not executed; the next try may succeed
	rejected                           // certainly not executed; the next try will not be either
	unknown                            // it may have been executed
	underReplicated                    // executed, but too few replicas have it: to be undone
)

// requestError is the error of one request to the servers.
type requestError struct {
	outcome outcome
	err     error
}

// final is whether err is the last word: to ask again is in vain, or harmful.
func isFinal(err error) bool {
	f := outcomeOf(err)
	return f == rejected || f == underReplicated
}

func (e *requestError) Error() string { return e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }

// Is makes an unknown fate match [ErrUnknown].
func (e *requestError) Is(target error) bool { return target == ErrUnknown && e.outcome == unknown }

// certain is an error from which every doubt was removed: the operation was undone.
type definiteError struct{ err error }

func (c definiteError) Error() string { return c.err.Error() }

// Is matches what the error matched, but for [ErrUnknown].
func (c definiteError) Is(target error) bool { return target != ErrUnknown && errors.Is(c.err, target) }

// fateOf is the fate that err carries; an error that carries none is unknown.
func outcomeOf(err error) outcome {
	var r *requestError
	if errors.As(err, &r) {
		return r.outcome
	}
	return unknown
}

// judge decides, here and nowhere else, what an error of go-redis says about a
// request that was given to it once.
func classify(err error) *requestError {
	var server redis.Error
	var dial *net.OpError
	switch {
	case strings.HasPrefix(err.Error(), "redis: all sentinels"): // no connection was made
		return &requestError{notExecuted, err}
	case errors.As(err, &server):
		return classifyServer(err)
	case errors.Is(err, redis.ErrClosed):
		return &requestError{rejected, fmt.Errorf("the redis client is closed: %w", err)}
	case errors.As(err, &dial) && dial.Op == "dial",
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return &requestError{notExecuted, err}
	}
	return &requestError{unknown, err}
}

// judgeServer is judge for an error that a server has answered. The scripts
// write only after all their checks, and their first write decides: an error
// means that nothing was written.
func classifyServer(err error) *requestError {
	for _, prefix := range []string{"WRONGTYPE", "FOREIGN"} {
		if strings.Contains(err.Error(), prefix) {
			return &requestError{rejected, fmt.Errorf("%w: %w", ErrForeign, err)}
		}
	}
	passing := redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsMasterDownError(err) ||
		redis.IsClusterDownError(err) || redis.IsTryAgainError(err) || redis.IsNoReplicasError(err) ||
		redis.IsMaxClientsError(err) || strings.Contains(err.Error(), "READONLY")
	for _, prefix := range []string{"BUSY", "MISCONF", "NOSCRIPT", "UNBLOCKED", "MOVED", "ASK", "NOREPLICAS"} {
		passing = passing || redis.HasErrorPrefix(err, prefix)
	}
	if passing {
		return &requestError{notExecuted, err}
	}
	return &requestError{rejected, err}
}

// notSent is the error of a request that was never given to go-redis.
func notSentError(ctx context.Context) *requestError {
	return &requestError{notExecuted, context.Cause(ctx)}
}
