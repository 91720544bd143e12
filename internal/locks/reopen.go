package locks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/lock"
)

// closeAndOpen closes the client of package lock and makes another one on the same connections. Each hold must have
// ended with it, and its context and its channel too; its loss is reported.
func (l *library) closeAndOpen(ctx context.Context) error {
	if err := l.lock.Close(ctx); err != nil {
		return err
	}
	wrong := l.closedHolds(func(ref client.Hold, h held) { l.report(ref, h.Deadline()) })
	return errors.Join(wrong, l.openAgain())
}

// closedHolds checks that all holds have ended with the client, and calls each for every hold.
func (l *library) closedHolds(each func(ref client.Hold, h held)) (wrong error) {
	for _, e := range l.holds.endAll() {
		if e.hold.Err() == nil || e.hold.Context().Err() == nil || !isDone(e.hold) {
			wrong = errors.Join(wrong, contradiction("the client was closed, and a hold of %q lasts", e.id.Key))
		}
		each(client.Hold{Key: e.id.Key, Owner: e.id.Owner, Mode: e.id.Mode, Keys: keysIn(e.id)}, e.hold)
	}
	return wrong
}

func (l *library) openAgain() error {
	l.events.forgetOutage()
	next, err := l.reopen()
	if err == nil {
		l.lock = next
	}
	return err
}

// closeSlack is how long after Close an acquire may return. The documentation says: at once.
const closeSlack = time.Second

// rareRequests is the retry delay of some acquires whose client is closed while they wait: an acquire that Close does
// not end sleeps for longer than closeSlack.
const rareRequests = 3 * time.Second

// rarelyKey is the key of a context value: the acquire has the delay rareRequests.
type rarelyKey struct{}

func asksRarely(ctx context.Context) bool { return ctx.Value(rarelyKey{}) != nil }

var errEndedByClose = errors.New("the lock was granted, and its hold ended with the client")

// acquireUntilClosed closes the client while the acquire is in flight, and makes another one. Sometimes it closes the
// connections first, as a program does that shuts down in the wrong order: the next request, at the latest at the next
// poll, then ends the acquire. A lock that needs several votes or locks does not state [promise.CloseEndsWaits]: an
// acquire that ends with the client leaves grants of some servers until their lease expires. Nor does a semaphore
// without leases, whose permits would stay.
func (l *library) acquireUntilClosed(ctx context.Context, a client.Acquire, after time.Duration) (client.Grant, error) {
	connsFirst := l.poll > 0 && l.poll <= closeSlack/2 && isOneInFour("connections first ", a.Owner)
	asking := ctx
	if l.bounded && isEven(a.Owner) && !connsFirst {
		asking = context.WithValue(ctx, rarelyKey{}, true)
	}
	returned := make(chan acquired[client.Grant], 1)
	go func() {
		g, err := l.Acquire(asking, a)
		returned <- acquired[client.Grant]{g, err}
	}()
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case o := <-returned:
		return o.got, o.err
	case <-timer.C:
		l.settle()
	}
	o, err := l.closeDuring(context.WithoutCancel(ctx), a, connsFirst, returned)
	lasts := l.closedHolds(func(ref client.Hold, h held) {
		if ref.Owner != a.Owner { // the caller never got the hold of the acquire itself
			l.report(ref, h.Deadline())
		}
	})
	if connsFirst {
		err = errors.Join(err, l.connect())
	}
	if err := errors.Join(err, lasts, l.openAgain()); err != nil {
		return client.Grant{}, err
	}
	if o.err == nil {
		o.err = errors.Join(lock.ErrUnknown, errEndedByClose)
	}
	return client.Grant{}, o.err
}

// closeDuring closes the client, or the connections and then the client, and returns the results of the acquire in
// flight. If the acquire does not return in time, err says so.
func (l *library) closeDuring(
	ctx context.Context, a client.Acquire, connsFirst bool, returned <-chan acquired[client.Grant],
) (o acquired[client.Grant], err error) {
	limit := closeSlack
	if connsFirst {
		limit += l.poll
		_ = closeAll(l.conns) // its requests end with an error
	} else {
		err = l.lock.Close(ctx)
	}
	o, late := returnedWithin(limit, returned)
	if late {
		err = errors.Join(err, contradiction("the client was closed, and an acquire of %q did not return for %v",
			a.Key, limit))
	}
	if connsFirst {
		err = errors.Join(err, l.lock.Close(ctx))
	}
	return o, err
}

// closeSteps are the parts of the time for which an acquire is waited for. When a process continues that was stopped,
// or had no CPU time, all its timers are over at once, before the acquire could return: of these only one is.
const closeSteps = 10

// returnedWithin waits for the result of an acquire, and reports whether that took longer than limit.
func returnedWithin(limit time.Duration, returned <-chan acquired[client.Grant]) (o acquired[client.Grant], late bool) {
	for range closeSteps {
		select {
		case o = <-returned:
			return o, false
		case <-time.After(limit / closeSteps):
		}
	}
	return <-returned, true
}

func isDone(h held) bool {
	select {
	case <-h.Done():
		return true
	default:
		return false
	}
}

// endAll ends all holds, and returns them in the order of their keys and owners.
func (s *holds) endAll() (all []endedHold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, list := range s.of { // order does not matter: they are sorted
		for _, h := range list {
			all = append(all, endedHold{id, h})
		}
	}
	clear(s.of)
	slices.SortStableFunc(all, func(a, b endedHold) int {
		return cmp.Or(cmp.Compare(a.id.Key, b.id.Key), cmp.Compare(a.id.Owner, b.id.Owner),
			cmp.Compare(a.id.Mode, b.id.Mode))
	})
	return all
}
