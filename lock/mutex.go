package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Mutex is a lock that one owner holds at a time, as often as it likes: it is free
// again when each hold was released. Several goroutines may use it.
type Mutex struct {
	client *Client
	name   string
	spin   bool
	fenced bool
}

// AcquireOptions of one acquire. The zero value is a good start.
type AcquireOptions struct {
	// Owner is who is to hold the lock. An owner that holds it may hold it once
	// more. Empty is the owner of the hold whose context was given, if it is of this
	// lock, and else a new one, unlike any other.
	Owner string
	// Lease is for how long the hold lasts unless Renew is called; at least 10 ms.
	// 0 is the client's lease, which the watchdog renews.
	Lease time.Duration
	// MaxHold is for how long the watchdog renews the hold at most; after that, it
	// ends with its lease, as lost. So a holder that is alive but stuck does not keep
	// the lock for good: the documentation of RedLock asks for such a bound. 0 is no
	// limit. It has no effect if Lease is given.
	MaxHold time.Duration
	// NonReentrant refuses, with [ErrReentered], an owner that holds the lock; of a
	// [RW], in either mode.
	NonReentrant bool
}

// Acquire waits for the lock until ctx ends. Its error is [ErrHeld] if another
// owner had it all the time, [ErrNoQuorum] or that of the server or the network if
// there was no reply, and [ErrUnknown] if the lock may have been granted and could
// not be released: then its lease ends it.
func (m *Mutex) Acquire(ctx context.Context, o AcquireOptions) (*Hold, error) {
	a, err := m.attempt(ctx, o)
	if err == nil && a.mode == chained {
		a.claim.notify = m.client.queues.notifyMode(ctx)
		if m.client.queues.count.Load() > 0 {
			a.channel = a.claim.freeChannel()
		}
	}
	return acquireHold(ctx, m.name, true, a, err)
}

// TryAcquire takes the lock if it is free now. Errors are those of Acquire.
func (m *Mutex) TryAcquire(ctx context.Context, o AcquireOptions) (*Hold, error) {
	a, err := m.attempt(ctx, o)
	return acquireHold(ctx, m.name, false, a, err)
}

// acquireHold carries out an attempt at a lock, unless its arguments were refused with err.
func acquireHold(ctx context.Context, name string, wait bool, a *attempt, err error) (*Hold, error) {
	if err == nil {
		err = a.acquire(ctx, wait)
	}
	switch {
	case err == nil:
		return newHold(ctx, a), nil
	case wait:
		return nil, failed("acquire", "lock", name, err)
	}
	return nil, failed("try to acquire", "lock", name, err)
}

// attempt is one call of Acquire or TryAcquire, of a lock or of permits.
type attempt struct {
	waitLoop
	claim   claim
	lease   time.Duration // 0: there is none
	auto    bool          // the watchdog is to renew it
	maxHold time.Duration
	byHold  bool // the waiter is woken by its hold only
	started time.Time
	granted granted
}

// granted is what a server has granted.
type granted struct {
	token uint64
	count int       // holds of the owner
	sent  time.Time // when the request was sent: the lease counts from here
}

var _ requester = (*attempt)(nil)

func (m *Mutex) attempt(ctx context.Context, o AcquireOptions) (*attempt, error) {
	c := m.client
	if err := checkName(m.name); err != nil {
		return nil, err
	}
	lease, auto, err := c.leaseOf(o.Lease)
	if err != nil {
		return nil, err
	}
	if o.MaxHold < 0 {
		return nil, fmt.Errorf("maximum hold %v is negative: give a positive duration, or 0 for no limit", o.MaxHold)
	}
	owner, id := o.Owner, c.random.id()
	if owner == "" {
		owner, _ = ctx.Value(ownerKey{c, m.name}).(string)
	}
	newOwner := owner == ""
	if newOwner {
		owner = id
	}
	a := &attempt{
		waitLoop: waitLoop{client: c, patient: newOwner},
		lease:    lease, auto: auto, maxHold: o.MaxHold, started: c.startTime(),
		claim: claim{
			name: m.name, owner: owner, id: id, lease: milliseconds(lease), store: c.store,
			nonReentrant: o.NonReentrant, fenced: m.fenced,
		},
	}
	switch {
	case m.spin:
		a.mode = spinning
	case c.single:
		a.mode = chained
	}
	return a, nil
}

// leaseOf is the lease of a hold that asks for lease, 0: for the client's, and
// whether the watchdog renews it.
func (c *Client) leaseOf(lease time.Duration) (time.Duration, bool, error) {
	if lease == 0 {
		return c.o.Lease, true, nil
	}
	return lease, false, checkLease(lease)
}

// acquire carries out the attempt, and undoes what it may have done if it fails.
func (a *attempt) acquire(ctx context.Context, wait bool) error {
	var err error
	if wait {
		err = a.run(ctx, a)
	} else {
		err = a.once(ctx, a)
	}
	if err == nil {
		return nil
	}
	switch {
	case a.uncertain && a.client.single:
		err = a.client.undo(ctx, err, func(ctx context.Context) error {
			_, err := a.client.giveBack(ctx, a.claim)
			return err
		})
	case a.uncertain: // the quorum withdraws its claims itself
		err = fmt.Errorf("%w: %w", ErrUnknown, definiteError{err})
	}
	a.client.emitClaim(NotAcquired, &a.claim, 0, a.started, err)
	return err
}

// request asks the servers once.
func (a *attempt) request(ctx context.Context) (turn, error) {
	c := a.client
	if !c.single {
		a.claim.id = c.random.id() // a claim that a quorum has not granted is withdrawn for good
	}
	if a.byHold && a.waiter != nil {
		c.queues.setHold(a.waiter, a.claim.id)
	}
	g, err := a.claim.store.acquire(ctx, a.claim)
	switch {
	case err != nil:
		return turn{}, err
	case !g.ok:
		a.uncertain = a.uncertain || a.claim.waiterTTL > 0 // the waiter is queued at the server
		if a.channel == "" && a.claim.notify != notifyNone {
			a.channel = a.claim.freeChannel()
		}
		return turn{ttl: g.ttl, spare: g.spare, why: g.why}, nil
	case a.lease > 0 && time.Until(g.sent.Add(validity(a.lease))) <= 0:
		// The next request of this hold is granted a whole lease, or the failed acquire releases it. A request
		// of another hold would re-enter it. On a quorum, each request has a hold of its own.
		a.uncertain = true
		if late := a.claim; !c.single {
			c.bg.start(func() { _, _ = c.giveBack(c.bg.ctx, late) })
		}
		return turn{}, &requestError{notExecuted, errors.New("the reply came after the lease had expired")}
	}
	a.granted = g.granted
	c.emitClaim(Acquired, &a.claim, g.token, a.started, nil)
	return turn{done: true}, nil
}
