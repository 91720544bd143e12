package native

import (
	"context"
	"errors"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/lock"
)

var ErrNotOpen = errors.New("the wait ran out before the latch was open")

// ErrLimited is the error of an acquire that used up its limited number of requests before the end of its wait: each
// found the lock held.
var ErrLimited = errors.New("limited")

// ErrNoSession is the error of a request that was not sent, because the client has no session with the servers.
var ErrNoSession = errors.New("no session")

// Code is the short word for an error of package lock.
func Code(err error) string {
	for _, row := range []struct {
		err  error
		code string
	}{
		{ErrLimited, history.CodeRefused},
		{client.ErrNotHeld, "not-held"},
		{lock.ErrUnknown, "unknown"}, {lock.ErrHeld, "held"}, {lock.ErrNotOwner, "not-owner"},
		{lock.ErrLost, "lost"}, {lock.ErrReleased, "released"}, {lock.ErrNoQuorum, "no-quorum"},
		{lock.ErrForeign, history.CodeForeign}, {lock.ErrReentered, "reentered"}, {lock.ErrUpgrade, history.CodeUpgrade},
		{lock.ErrTooFewReplicas, "too-few-replicas"}, {lock.ErrArmed, "armed"}, {lock.ErrAbsent, history.CodeAbsent},
		{lock.ErrRearmed, "rearmed"}, {lock.ErrPermits, history.CodeOutOfRange}, {lock.ErrClosed, "closed"},
		// A wait for a lock that is held ends with ErrHeld.
		{ErrNotOpen, "timeout"}, {context.DeadlineExceeded, history.CodeNoReply},
	} {
		if errors.Is(err, row.err) {
			return row.code
		}
	}
	return "error"
}
