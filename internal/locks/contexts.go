package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
)

// usesContexts reports whether a client uses the contexts of holds. Each client of a run does or does not, depending
// on its seed; clients that share a lock object do the same. A client without contexts names owners by
// lock.WithOwner, bounds a wait by the deadline of its context, and learns of a loss from a callback. A client with
// contexts re-enters a lock under the context of its hold, acquires a lock whose key comes later under the context of
// a hold of another lock, and then re-enters the first under the context of the second. It bounds a wait by
// lock.WithWait, and relies on the context and the channel of a hold: a loss that does not end both is not reported,
// and a released hold that does not end both counts as still held. Half of its owners get both when they acquire. The
// others get them when the hold has ended, or, for the context, when another acquire is made under it: a re-entry, or
// an acquire of a lock whose key comes later. Half of its tries are acquires that may send one request
// (lock.WithTries).
func usesContexts(seed uint64) bool { return seed%2 == 1 }

// acquireKey is the key of an acquireCall in the context of an acquire.
type acquireKey struct{}

// acquireCall is how one acquire of package lock is made.
type acquireCall struct {
	opts   []lock.Option
	closed <-chan struct{} // by Close of the client
	hold   context.Context // of the hold that the owner has; nil: it has none, or is to be named

	held      int  // how many holds the owner has already
	labeled   bool // the metadata of the hold name its owner
	bounded   bool // it may send one request, in place of a try
	reentrant bool // the owner may have the lock already
	locker    bool // as a sync.Locker, if the lock can be one
	marked    bool // the server does not know its owner's name, but the metadata have it
	sharded   bool // the keys are in slots, which may migrate
}

// again ends the metadata of a hold of an owner, once for each that it has already.
const again = " again"

// label is the metadata of a hold.
func (c acquireCall) label(owner string) string { return owner + strings.Repeat(again, c.held) }

// callIn is the acquireCall in ctx; its zero value where there is none.
func callIn(ctx context.Context) acquireCall {
	c, _ := ctx.Value(acquireKey{}).(acquireCall)
	return c
}

// under is a context with the values of the context of a hold.
type under struct {
	context.Context
	hold context.Context
}

// Value implements context.Context.
func (u under) Value(key any) any {
	if v := u.Context.Value(key); v != nil {
		return v
	}
	return u.hold.Value(key)
}

// withoutDeadline returns a context that ends only when ctx is canceled, and not after stop was called: a hold that is
// acquired with it lasts longer than the request.
func withoutDeadline(ctx context.Context) (free context.Context, stop func() bool) {
	free, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return free, context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
}

// boundedWait ends an acquire that should have ended after one request.
const boundedWait = 3 * time.Second

// acquireHeld makes the acquire a by package lock, perhaps twice at the same time. It also returns the owner's name
// at the server; "" if that is one of its own.
func (l *library) acquireHeld(ctx context.Context, a client.Acquire, twice bool) (h held, owner string, err error) {
	c := acquireCall{
		closed: l.closed, labeled: l.labeled, reentrant: l.reentrant, held: l.holds.count(a.Key, a.Owner),
		sharded: l.sharded(),
	}
	if c.marked = l.marks(a.Owner); !l.unnamed {
		owner = a.Owner
	}
	if l.maxHold > 0 {
		c.opts = append(c.opts, lock.WithMaxHold(l.maxHold))
	}
	switch {
	case (l.contexts || a.Scoped) && a.Wait > 0:
		c.opts = append(c.opts, lock.WithWait(a.Wait))
	case l.contexts && l.bounded && isEven(a.Owner):
		c.bounded = true
		c.opts = append(c.opts, lock.WithTries(1), lock.WithWait(boundedWait))
	}
	rare := asksRarely(ctx)
	if rare {
		c.opts = append(c.opts, lock.WithRetryDelay(func(int) time.Duration { return rareRequests }))
	}
	check, limited := func() error { return nil }, false
	if l.varied && !rare && !a.Scoped && !c.bounded && !twice {
		check = l.vary(&c, a)
		limited = a.Wait > 0 && formOf(a.Owner) == limitedForm
	}
	if l.contexts || a.Scoped {
		var stop func() bool
		ctx, stop = withoutDeadline(ctx)
		defer stop()
	}
	var outer held
	if l.contexts && !a.Scoped {
		if h, _ := l.holds.innermost(a.Hold()); h != nil && h.Err() == nil {
			c.hold = l.holds.deepest(h).Context()
			if one, ok := holdOf(h); ok {
				owner = one.Owner()
			}
		} else if outer = l.holds.before(a.Key); outer != nil && len(a.Keys) == 0 {
			ctx = under{ctx, outer.Context()}
		}
	}
	ctx = context.WithValue(ctx, acquireKey{}, c)
	if twice {
		h, err = l.acquireTwice(ctx, a)
	} else {
		h, err = l.acquire(ctx, l.lock, a)
	}
	if wrong := cmp.Or(check(), checkEnd(a, err, twice || a.Scoped || c.bounded || l.several)); wrong != nil {
		return nil, owner, wrong
	}
	if limited && errors.Is(err, lock.ErrHeld) {
		err = fmt.Errorf("%w: %w", native.ErrLimited, err)
	}
	if err == nil && outer != nil && len(a.Keys) == 0 {
		l.holds.nest(outer, h)
	}
	if err == nil && l.contexts && isEven(a.Owner) { // else they are first asked for when the hold has ended
		_, _ = h.Done(), h.Context()
	}
	return h, owner, err
}

// checkEnd finds an acquire that waited for a held lock until its context or its wait ended, and whose error is not the
// context's. An acquire that may have ended for another reason (also) is not judged.
func checkEnd(a client.Acquire, err error, also bool) error {
	switch {
	case also || a.Wait == 0 || !errors.Is(err, lock.ErrHeld) || formOf(a.Owner) == limitedForm:
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, lock.ErrClosed):
	default:
		return contradiction("the wait for the lock has ended, and the error is not that of its context: %v", err)
	}
	return nil
}

// marks reports whether the metadata of a hold have the owner's name, which the server does not know otherwise: for
// some of the clients that use contexts.
func (l *library) marks(owner string) bool {
	return l.unnamed && l.contexts && isOneInFour("mark of ", owner)
}

// isEven chooses half of the owners.
func isEven(owner string) bool { return crc32.ChecksumIEEE([]byte(owner))%2 == 0 }

// isOneInFour chooses one owner in four, others for each purpose.
func isOneInFour(purpose, owner string) bool { return crc32.ChecksumIEEE([]byte(purpose+owner))%4 == 0 }

// ended reports whether a hold that is lost looks so to its user.
func (l *library) ended(h held) bool { return !l.contexts || isDone(h) && h.Context().Err() != nil }
