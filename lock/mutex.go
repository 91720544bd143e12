package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Mutex is a lock that one owner holds at a time, as often as it likes: it is
// free again when each hold was released. Several goroutines may use it.
type Mutex struct {
	client *Client
	name   string
	spin   bool
	fenced bool
}

// AcquireOptions of one acquire. The zero value is a good start.
type AcquireOptions struct {
	// Owner is who is to hold the lock. An owner that holds it already holds it
	// once more. Empty is the owner of the hold whose context was given, if it
	// is of this lock, and else a new one, unlike any other.
	Owner string
	// Lease is for how long the hold lasts unless it is renewed by hand; at
	// least 10 ms. 0 is the client's lease, which the watchdog renews.
	Lease time.Duration
	// Longest is for how long the watchdog renews the hold at most; after that, it
	// ends with its lease, as lost. So a holder that lives and is stuck does not keep
	// the lock for good: the documentation of RedLock asks for such a bound. 0 is none.
	// It means nothing where a Lease is given.
	MaxHold time.Duration
	// Sole refuses, with [ErrReentered], an owner that holds the lock already; a
	// [RW], in whatever way.
	NonReentrant bool
}

// Acquire waits for the lock until ctx ends. Its error is [ErrHeld] if another
// owner had it all the time, [ErrNoQuorum] or what the server or the network said
// if it could not be asked, and [ErrUnknown] if the lock may have been granted
// and could not be given back: then its lease ends it.
func (m *Mutex) Acquire(ctx context.Context, o AcquireOptions) (*Hold, error) {
	a, err := m.attempt(ctx, o)
	if err != nil {
		return nil, wrapErr("acquire", m.name, err)
	}
	h, err := a.run(ctx)
	return h, wrapErr("acquire", m.name, err)
}

// TryAcquire takes the lock if it is free now. Errors are those of Acquire.
func (m *Mutex) TryAcquire(ctx context.Context, o AcquireOptions) (*Hold, error) {
	a, err := m.attempt(ctx, o)
	if err != nil {
		return nil, wrapErr("try lock", m.name, err)
	}
	h, err := a.now(ctx)
	return h, wrapErr("try", m.name, err)
}

// attempt is one call of Acquire or TryAcquire.
type attempt struct {
	client    *Client
	claim     claim
	lease     time.Duration
	auto      bool          // the watchdog is to renew it
	maxHold   time.Duration // for so long at most; 0: without end
	newOwner  bool          // the owner is new, so it holds nothing yet
	uncertain bool          // a request of unknown outcome was sent
	last      error
	started   time.Time
	spin      bool    // wait in no line
	waiter    *waiter // in the line of waiters; nil: not yet, or there is none
}

func (m *Mutex) attempt(ctx context.Context, o AcquireOptions) (*attempt, error) {
	if err := checkName(m.name); err != nil {
		return nil, err
	}
	a := &attempt{client: m.client, lease: o.Lease, spin: m.spin, started: m.client.startTime()}
	if a.auto = o.Lease == 0; a.auto {
		a.lease = m.client.o.Lease
	}
	if err := checkLease(a.lease); err != nil {
		return nil, err
	}
	if a.maxHold = o.MaxHold; a.maxHold < 0 {
		return nil, fmt.Errorf("longest hold %v is negative: give a positive duration, or 0 for no limit", a.maxHold)
	}
	owner := o.Owner
	if owner == "" {
		owner, _ = ctx.Value(ownerKey{m.client, m.name}).(string)
	}
	id := m.client.random.id()
	if a.newOwner = owner == ""; a.newOwner {
		owner = id
	}
	a.claim = claim{name: m.name, owner: owner, id: id, lease: milliseconds(a.lease), nonReentrant: o.NonReentrant, fence: m.fenced}
	return a, nil
}

// tries is how often a request is sent that must not wait: a connection from
// the pool may have died unnoticed.
const tries = 3

func (a *attempt) now(ctx context.Context) (*Hold, error) {
	for i := 1; ; i++ {
		h, _, err := a.ask(ctx)
		switch {
		case h != nil:
			return h, nil
		case err == nil:
			return nil, a.giveUp(ctx, ErrHeld)
		case i == tries || isFinal(err) || !a.client.pause(ctx, a.client.backoff()):
			return nil, a.giveUp(ctx, a.because(ctx))
		}
	}
}

// run asks until the lock is granted. While it is held, it waits in line: asks,
// takes a place, asks again (the lock may have become free in between) unless others
// do so before it or the server has still to confirm the subscription, and
// then sleeps until it is told that the lock is free, for no longer than the
// other owner's lease and PollMax.
func (a *attempt) run(ctx context.Context) (*Hold, error) {
	granted, unasked := false, false
	defer func() { a.quit(granted, unasked) }()
	if a.lines() {
		a.claim.notify = a.client.queues.notifyMode(ctx)
		var others bool
		if a.client.queues.count.Load() > 0 {
			a.waiter, others = a.client.queues.joinBehind(a.claim.freeChannel())
		}
		if others && a.newOwner && !a.sleep(ctx, a.client.o.PollMax) {
			return nil, a.giveUp(ctx, a.because(ctx))
		}
	}
	for n := 0; ; n++ {
		h, ttl, err := a.ask(ctx)
		unasked = err != nil
		switch {
		case h != nil:
			granted = true
			return h, nil
		case err != nil && isFinal(err):
			return nil, a.giveUp(ctx, err)
		case err == nil && a.lines() && a.waiter == nil:
			served := false
			if a.waiter, served = a.client.queues.joinLast(a.claim.freeChannel()); !served {
				continue
			}
		}
		if !a.sleep(ctx, a.delay(n, ttl, err)) {
			return nil, a.giveUp(ctx, a.because(ctx))
		}
	}
}

// ask sends one request. Neither a hold nor an error: another owner has the
// lock for ttl.
func (a *attempt) ask(ctx context.Context) (*Hold, time.Duration, error) {
	if !a.client.single {
		a.renumber() // several masters: an id that was not granted is spent
	}
	g, err := a.client.store.acquire(ctx, a.claim)
	switch {
	case err != nil:
		a.uncertain = a.uncertain || outcomeOf(err) == unknown || outcomeOf(err) == underReplicated
		if a.last == nil || ctx.Err() == nil { // a question that was cut short says less than the answer before it
			a.last = err
		}
		return nil, 0, err
	case !g.ok:
		a.last = ErrHeld
		return nil, g.ttl, nil
	case time.Until(g.sent.Add(validity(a.lease))) <= 0:
		a.last = &requestError{notExecuted, errors.New("the answer came after the lease was over")}
		a.client.forget(a.claim)
		a.renumber()
		return nil, 0, a.last
	}
	a.emit(Acquired, g.token, nil)
	return newHold(ctx, a, g), 0, nil
}

// renumber makes what was asked before and what is asked next two different holds.
func (a *attempt) renumber() {
	a.claim.id = a.client.random.id()
}

// delay is for how long to sleep before asking again.
func (a *attempt) delay(n int, ttl time.Duration, err error) time.Duration {
	r := a.client.random
	if err != nil {
		return a.client.backoff()
	}
	if a.spin { // full jitter, and no more than the other owner has left
		limit := min(time.Millisecond<<min(n, 7), a.client.o.PollMax)
		if ttl > 0 {
			limit = min(limit, ttl)
		}
		return max(r.between(0, limit), 200*time.Microsecond)
	}
	if a.waiter == nil { // several masters: a delay drawn by chance parts those who split the vote
		limit := min(10*time.Millisecond<<min(n, 5), a.client.o.PollMax)
		return r.between(limit/4, limit)
	}
	// Who is further back asks later: what the first of the line finds out by
	// asking helps all of them, and a thousand need not ask each second.
	ahead := time.Duration(a.client.queues.ahead(a.waiter))
	limit := a.client.o.PollMax
	if limit < time.Hour/1000 {
		limit *= 1 + min(ahead, 1000)
	}
	if ttl < 0 {
		return limit
	}
	return min(ttl+ahead*time.Millisecond+r.between(time.Millisecond, 5*time.Millisecond), limit)
}

// lines is whether those who wait stand in line.
func (a *attempt) lines() bool { return a.client.queues != nil && !a.spin }

// sleep waits until told or for d. It is false when ctx or the client has ended.
func (a *attempt) sleep(ctx context.Context, d time.Duration) bool {
	if a.waiter == nil {
		return a.client.pause(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-a.waiter.wake:
		return true
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-a.client.bg.ctx.Done():
	}
	return false
}

// quit gives the place up. Who asked in vain may have been woken, and has not
// found out what for: the next in the line is to (redisson#4744).
func (a *attempt) quit(granted, unasked bool) {
	if a.waiter == nil {
		return
	}
	if unasked {
		a.client.queues.passOn(a.waiter)
	}
	a.client.queues.leave(a.waiter, granted)
}

// because is why an attempt that has not got the lock ends.
func (a *attempt) because(ctx context.Context) error {
	why := context.Cause(ctx)
	if a.client.bg.ctx.Err() != nil {
		why = ErrClosed
	}
	switch {
	case a.last == nil && why == nil:
		return ErrHeld
	case a.last == nil:
		return why
	case why == nil || errors.Is(a.last, why):
		return a.last
	}
	return fmt.Errorf("%w: %w", a.last, why)
}

// undoGrace is for how long the caller of an acquire that has failed is kept
// waiting for proof that nothing is left behind.
const undoGrace = 250 * time.Millisecond

// giveUp undoes what may have been done and returns why, marked with
// [ErrUnknown] unless it is certain that nothing was or will be granted.
func (a *attempt) giveUp(ctx context.Context, why error) error {
	err := a.undo(ctx, why)
	a.emit(NotAcquired, 0, err)
	return err
}

func (a *attempt) undo(ctx context.Context, why error) error {
	if !a.uncertain {
		return why
	}
	why = definiteError{why} // the fate of a single request is not that of the whole
	if !a.client.single {
		return fmt.Errorf("%w: %w", ErrUnknown, why) // the quorum is at it already
	}
	undone := make(chan error, 1)
	if !a.client.bg.start(func() {
		_, err := a.client.giveBack(ctx, a.claim)
		undone <- err
	}) {
		return fmt.Errorf("%w: %w", ErrUnknown, why)
	}
	timer := time.NewTimer(a.client.grace)
	defer timer.Stop()
	select {
	case err := <-undone:
		if err == nil {
			return why
		}
	case <-timer.C:
	}
	return fmt.Errorf("%w: %w", ErrUnknown, why)
}

// forget gives cl back without waiting for it.
func (c *Client) forget(cl claim) {
	c.bg.start(func() { _, _ = c.giveBack(c.bg.ctx, cl) })
}
