package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wait"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Mutex is a lock that one owner holds at a time. Several goroutines may use it: each Acquire is an owner of its own
// unless [WithOwner] or the context of a hold says otherwise. With [WithReentry], an owner may hold it several times;
// it is free again when each hold has been released. Its holds have no fencing token, see [FencedMutex].
type Mutex struct {
	named
	fenced bool
}

// Acquire waits for the lock until ctx ends. Its error is [ErrHeld] if another owner had the lock throughout,
// [ErrReentered] if this owner has it, [ErrNoQuorum] or the error of the server or the network if there was no reply,
// and [ErrUnknown] if the lock may have been granted and could not be released: then the hold ends with its lease. If
// ctx ended the wait, the error is also ctx's ([context.Cause]). The context of the hold is a child of ctx: to bound
// only the wait, use [WithWait].
func (m *Mutex) Acquire(ctx context.Context, opts ...Option) (*Hold, error) {
	return held(m.acquire(ctx, opts))
}

func (m *Mutex) acquire(ctx context.Context, opts []Option) (*FencedHold, error) {
	a, err := m.attempt(ctx, opts)
	if err == nil {
		a.claim.plain = a.client.single && a.claim.isPlain()
		a.claim.setOnly = a.sleepsFirst && a.mode == chained
	}
	if err == nil && a.mode == chained {
		a.claim.notify = m.client.queues.NotifyMode()
		if m.client.queues.InUse() {
			a.channel = a.claim.freeChannel()
			a.claim.plain = a.claim.plain && m.client.queues.Waiting(a.channel) == 0
		}
	}
	return acquireHold(ctx, m.name, true, a, err)
}

// TryAcquire takes the lock if it is free now. Errors are as of Acquire.
func (m *Mutex) TryAcquire(ctx context.Context, opts ...Option) (*Hold, error) {
	return held(m.tryAcquire(ctx, opts))
}

func (m *Mutex) tryAcquire(ctx context.Context, opts []Option) (*FencedHold, error) {
	a, err := m.attempt(ctx, opts)
	return acquireHold(ctx, m.name, false, a, err)
}

// Do acquires the lock, calls work with the context of the hold, and releases the lock, even if work panics. Its error
// is Acquire's, or work's joined with Release's: with [ErrLost], work may not have been alone.
func (m *Mutex) Do(ctx context.Context, work func(ctx context.Context) error, opts ...Option) error {
	h, err := m.Acquire(ctx, opts...)
	if err != nil {
		return err
	}
	return do(ctx, h, work)
}

// do calls work under a hold, and releases it.
func do(ctx context.Context, h interface {
	Context() context.Context
	Release(ctx context.Context) error
}, work func(ctx context.Context) error) (err error) {
	defer func() { err = errors.Join(err, h.Release(ctx)) }()
	return work(h.Context())
}

// acquireHold carries out an attempt at a lock, unless its arguments were refused with err.
func acquireHold(ctx context.Context, name string, wait bool, a *attempt, err error) (*FencedHold, error) {
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

// held is a hold without its token.
func held(h *FencedHold, err error) (*Hold, error) {
	if err != nil {
		return nil, err
	}
	return &h.Hold, nil
}

// attempt is one call of Acquire or TryAcquire, of a lock or of permits.
type attempt struct {
	waitLoop
	claim        claim
	lease        time.Duration // 0: there is none
	auto         bool          // the watchdog is to renew it
	maxHold      time.Duration
	maxWait      time.Duration // 0: no limit
	byHold       bool          // the waiter is woken by its hold only
	started      time.Time
	granted      granted
	maybeGranted maybeGranted
}

// granted is the grant of a server.
type granted struct {
	token int64
	count int       // holds of the owner
	sent  time.Time // when the request was sent: the lease counts from here
	since time.Time // when its client was granted the lock without a release by itself; zero: when it was sent
}

var _ requester = (*attempt)(nil)

func (m *Mutex) attempt(ctx context.Context, opts []Option) (*attempt, error) {
	c, s := m.client, m.options.with(opts)
	if m.fenced && !c.single {
		return nil, ErrOneMaster
	}
	kind, known := "a mutex", mutexOptions
	if c.o.Layout == Redisson {
		kind, known = "a mutex in Redisson's layout", mutexOptions&^optMetadata
		if err := checkRedissonOwner(s.owner); err != nil {
			return nil, err
		}
	}
	a, err := c.attempt(ctx, m.named, c.store, s, kind, known)
	if err != nil {
		return nil, err
	}
	a.claim.fenced = m.fenced
	switch {
	case s.polling:
		a.mode = spinning
	case c.single:
		a.mode = chained
	}
	return a, nil
}

// attempt is an attempt at a lock of a kind that has a use for the options known.
func (c *Client) attempt(ctx context.Context, n named, in store, s *settings, kind string,
	known optionSet) (*attempt, error) {
	err := s.check(kind, known)
	if err == nil {
		err = checkName(n.key)
	}
	if err != nil {
		return nil, err
	}
	lease, auto, err := c.leaseOf(s.lease)
	if err != nil {
		return nil, err
	}
	value := c.random.Value()
	owner, id := s.owner, value[len("h:"):]
	if owner == "" {
		owner = ownerIn(ctx, ownerKey{c, n.key})
	}
	newOwner := owner == ""
	if newOwner && c.o.Layout == Redisson {
		id = c.newOwner()
	}
	if newOwner {
		owner = id
	}
	return &attempt{
		waitLoop: waitLoop{
			client: c, name: n.name, sleepsFirst: newOwner && s.tries == 0, tries: s.tries, retryDelay: s.delay,
			lasts: lease, backoff: s.backoff,
		},
		lease: lease, auto: auto, maxHold: s.maxHold, maxWait: s.wait, started: c.startTime(),
		claim: claim{
			name: n.name, key: n.key, owner: owner, id: id, value: value, lease: milliseconds(lease), store: in,
			nonReentrant: !s.reentrant && !newOwner, metadata: s.metadata, layout: c.o.Layout,
		},
	}, nil
}

// newOwner is an owner unlike any other.
func (c *Client) newOwner() string {
	if c.o.Layout == Redisson {
		return c.uuid + ":" + strconv.FormatUint(c.random.Number(), 10)
	}
	return c.random.ID()
}

// leaseOf is the lease of a hold that asks for lease, 0: for the client's, and whether the watchdog renews it.
func (c *Client) leaseOf(lease time.Duration) (time.Duration, bool, error) {
	if lease == 0 {
		return c.o.Lease, true, nil
	}
	return lease, false, checkLease(lease)
}

// acquire carries out the attempt, and undoes its possible effect if it fails.
func (a *attempt) acquire(ctx context.Context, wait bool) error {
	var err error
	if wait {
		limited, cancel := limitWait(ctx, a.maxWait)
		err = a.run(limited, a)
		cancel()
	} else {
		err = a.once(ctx, a)
	}
	if err == nil {
		return nil
	}
	switch {
	case a.uncertain && a.client.single:
		err = a.takeBack(ctx, err)
	case a.uncertain: // the quorum withdraws its claims itself
		err = fmt.Errorf("%w: %w", ErrUnknown, definiteError{err: err})
	}
	a.client.emitClaim(ctx, NotAcquired, &a.claim, 0, a.started, err)
	return err
}

// limitWait is ctx, which ends after limit unless that is 0.
func limitWait(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

// takeBack releases the possible grant of the attempt, which failed because of why. If there was nothing to release,
// and a grant cannot have expired before, the lock was never held.
func (a *attempt) takeBack(ctx context.Context, why error) error {
	absent := false
	err := a.undo(ctx, why, func(ctx context.Context) error {
		left, err := a.client.giveBack(ctx, a.claim)
		absent = left < 0
		return err
	})
	if Definite(err) && absent && !a.maybeGranted.mayHaveExpired(time.Now()) {
		return definiteError{err: why}
	}
	return err
}

// request asks the servers once.
func (a *attempt) request(ctx context.Context) (turn, error) {
	c := a.client
	if !c.single {
		a.claim.id = c.random.ID() // a claim that a quorum has not granted is withdrawn for good
	}
	if a.byHold && a.waiter != nil {
		c.queues.SetHold(a.waiter, a.claim.id)
	}
	sent := time.Now()
	var sentBefore *wait.Handed
	if a.waiter != nil {
		sentBefore = c.queues.TakeHanded(a.waiter)
	}
	if sentBefore != nil {
		sent, a.claim.plain = sentBefore.Sent, false
	}
	a.claim.handed = sentBefore
	g, err := a.claim.store.acquire(ctx, a.claim)
	a.claim.handed = nil
	a.maybeGranted.note(&a.claim, sent, err)
	a.claim.late = a.claim.late || a.claim.plain && err != nil && outcomeOf(err).MayHaveHappened()
	onlySET := a.claim.plain && err == nil && g.plain != nil // others are refused by the script
	a.claim.plain, a.claim.words = false, g.plain
	switch {
	case err != nil:
		return turn{}, err
	case !g.ok:
		if onlySET {
			a.claim.words = nil
			a.channel = a.claim.freeChannel()
			return turn{why: g.why, again: true}, nil
		}
		a.uncertain = a.uncertain || a.claim.waiterTTL > 0 // the waiter is queued at the server
		if a.channel == "" && a.claim.notify != wait.NotifyNone {
			a.channel = a.claim.freeChannel()
		}
		return turn{ttl: g.ttl, fewerFit: g.fewerFit, why: g.why}, nil
	case a.lease > 0 && time.Until(g.sent.Add(validity(a.lease))) <= 0:
		// The next request of this hold is granted a whole lease, or the failed acquire releases it. A request
		// of another hold would re-enter it. On a quorum, each request has a hold of its own.
		a.maybeGranted.always = true
		a.uncertain = true
		if late := a.claim; !c.single {
			c.bg.Start(func() { _, _ = c.giveBack(c.bg.Context, late) })
		}
		return turn{}, &requestError{wire.NotExecuted, errors.New("the reply came after the lease had expired")}
	}
	a.granted = g.granted
	if sentBefore != nil {
		a.granted.since = sentBefore.Since
	}
	c.emitClaim(ctx, Acquired, &a.claim, g.token, a.started, nil)
	return turn{done: true}, nil
}
