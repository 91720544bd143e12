package locks

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/lock"
)

// This file is about calls that two goroutines of one owner make at the same time (option calls of a scenario).

// twicePatience is for how long the second acquire of an owner may take after the first was granted: a waiter whose
// owner was granted the lock elsewhere learns of it by its next request, which comes after poll at the latest. One that
// asks rarely is not waited for.
func twicePatience(poll time.Duration) time.Duration {
	if poll > 0 && poll <= 500*time.Millisecond {
		return poll + 100*time.Millisecond
	}
	return 300 * time.Millisecond
}

// headStart is by how much the first of two calls is sent before the second.
const headStart = 100 * time.Microsecond

// headStart returns after that time.
func (l *library) headStart() {
	time.Sleep(headStart)
	l.settle()
}

// settle lets other events of an instant of virtual time come first, such as the end of a lease.
func (l *library) settle() {
	if l.order != nil {
		l.order("", nil)
	}
}

// acquired is the result of a function that acquires: a hold, or the [Grant] of one.
type acquired[T any] struct {
	got T
	err error
}

// minRest is for how long a hold is to last when the acquire returns.
const minRest = 400 * time.Millisecond

// isTwice chooses the acquires that are made twice: some acquires by which an owner that may hold the lock several
// times waits for its first hold.
func (l *library) isTwice(a client.Acquire) bool {
	lease := cmp.Or(a.Lease, l.lease) // of the first hold, while the second is waited for
	if !l.varied || !l.reentrant || l.several || a.Scoped || a.Wait == 0 || lease < twicePatience(l.poll)+minRest {
		return false
	}
	n, _ := l.holds.levels(a.Key, a.Owner)
	return n == 0 && isOneInFour("twice ", a.Owner)
}

// acquireTwice acquires a for its owner in two goroutines. If both are granted, it releases one of the grants: the
// first one's for half of the owners.
func (l *library) acquireTwice(parent context.Context, a client.Acquire) (held, error) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	got := make(chan acquired[held], 2)
	for range 2 {
		go func() {
			h, err := l.acquire(ctx, l.lock, a)
			got <- acquired[held]{h, err}
		}()
		l.headStart()
	}
	first := <-got
	var patience <-chan time.Time
	if first.err == nil {
		patience = time.After(twicePatience(l.poll))
	}
	var second acquired[held]
	select {
	case second = <-got:
	case <-patience:
		l.settle()
		select {
		case second = <-got:
		default:
			cancel()
			second = <-got
		}
	}
	if isEven(a.Owner) {
		first, second = second, first
	}
	h, err := l.join(ctx, first, second)
	if err == nil && errors.Is(h.Err(), lock.ErrLost) { // the second one took longer than its lease
		l.forgetAcquired(h)
		return l.acquire(parent, l.lock, a)
	}
	return h, err
}

// forgetAcquired drops the event of the acquire of a hold that is not kept.
func (l *library) forgetAcquired(h held) {
	if one, ok := holdOf(h); ok {
		l.events.take(lock.Acquired, one)
	}
}

// join makes one hold of the results of two acquires of one owner: it keeps the first, if both were granted.
func (l *library) join(ctx context.Context, first, second acquired[held]) (held, error) {
	switch {
	case first.err != nil && second.err != nil && certainty(first.err) < certainty(second.err):
		return nil, first.err
	case first.err != nil && second.err != nil:
		return nil, second.err
	case errors.Is(first.err, lock.ErrUnknown): // its hold may be left
		return nil, errors.Join(first.err, second.got.Release(context.WithoutCancel(ctx)))
	case first.err != nil:
		return second.got, second.err
	case errors.Is(second.err, lock.ErrUnknown):
		return nil, errors.Join(second.err, first.got.Release(context.WithoutCancel(ctx)))
	case second.err != nil:
		return first.got, nil
	}
	keep, other := first.got, second.got
	if err := sameToken(ctx, keep, other); err != nil {
		return nil, err
	}
	l.forgetAcquired(other)
	err := other.Release(context.WithoutCancel(ctx))
	if wrong := l.checkReleased(other, err); wrong != nil {
		return nil, wrong
	}
	if errors.Is(err, lock.ErrUnknown) {
		return nil, errors.Join(err, keep.Release(context.WithoutCancel(ctx)))
	}
	return keep, nil
}

// certainty ranks the errors of an acquire: 0 if the outcome is unknown, 1 if a grant may have been undone, 2 if there
// was no grant.
func certainty(err error) int {
	switch {
	case errors.Is(err, lock.ErrUnknown):
		return 0
	case lock.Undone(err):
		return 1
	}
	return 2
}

// sameToken compares the tokens of two holds that one owner has at the same time: servers that renew both have both.
func sameToken(ctx context.Context, a, b held) error {
	x, y := tokenOf(a), tokenOf(b)
	if x == y || a.Renew(ctx) != nil || b.Renew(ctx) != nil {
		return nil
	}
	return contradiction("two holds that one owner has at the same time have the tokens %d and %d", x, y)
}

// longestRest is the longest rest of a lease that a renewal beside a release extends.
const longestRest = 2 * time.Second

// renewBeside renews a hold that is about to be released. check is called when it was: a reply that comes after the end
// of a hold must not move its deadline.
func (l *library) renewBeside(ctx context.Context, h *lock.Hold) (check func() error) {
	rest := time.Until(h.Deadline())
	if h.Err() != nil || rest <= 0 || rest > longestRest {
		return func() error { return nil }
	}
	ended, replied := make(chan time.Time, 1), make(chan struct{})
	go func() {
		<-h.Done()
		ended <- h.Deadline()
	}()
	go func() {
		defer close(replied)
		_ = h.Extend(ctx, rest*9/8+20*time.Millisecond) // regardless of its error: the deadline shows its effect
	}()
	l.headStart()
	return func() error {
		<-replied
		at := <-ended
		if after := h.Deadline(); after.After(at) {
			return contradiction("a renewal whose reply came after the end of the hold moved its deadline by %v", after.Sub(at))
		}
		return nil
	}
}

// releaseHeld releases a hold. A client that uses contexts releases it again if no reply came, as it may; with option
// calls it renews some holds at the same time.
func (l *library) releaseHeld(ctx context.Context, h held) error {
	check := func() error { return nil }
	one, single := holdOf(h)
	if single && l.varied && isEven(one.Owner()) {
		check = l.renewBeside(ctx, one)
	}
	err := h.Release(ctx)
	if wrong := check(); wrong != nil {
		return wrong
	}
	if !single || !l.contexts || !errors.Is(err, lock.ErrUnknown) {
		return err
	}
	l.events.take(lock.Released, one)
	again := h.Release(ctx)
	if errors.Is(again, lock.ErrReleased) {
		return contradiction("a release without a reply is repeated, and says that the hold was released before: %v", again)
	}
	if again == nil {
		return nil
	}
	return err // whatever its error: the first request may still be executed, or was
}
