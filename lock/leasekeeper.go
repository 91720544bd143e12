package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// leaseKeeper is the client's side of a hold of any kind: until when it is valid, whether and why it has ended, and the
// context that ends with it. The watchdog renews it, or a timer ends it at its deadline.
type leaseKeeper struct {
	client     *Client
	holder     holder
	claim      claim
	lease      time.Duration   // 0: there is none
	auto       bool            // the watchdog renews it
	acquireCtx context.Context // the parent of the context
	renewal    renewalState    // guarded by the watchdog's mutex

	mu       sync.Mutex
	ctx      context.Context // nil: Context was not called yet
	cancel   context.CancelCauseFunc
	done     chan struct{}   // nil: Done was not called yet
	then     func(why error) // called once when the hold has ended; nil: nobody asked for that
	deadline time.Time       // zero: there is none
	over     error           // why the hold has ended; nil while it lasts
	released bool            // a release was replied to
	timer    *time.Timer     // at the deadline; nil: the watchdog acts before that, and makes it
}

// holder is the Hold or the Permits of a lease keeper.
type holder interface {
	onRenewed() // by the watchdog
	onLost()
}

// ownerKey is a lock, whose owner the context of a hold has.
type ownerKey struct {
	client *Client
	name   string
}

// owners are the owners in a context, the last one first.
type owners struct {
	lock  ownerKey
	owner string
	next  *owners // nil: there are no more
}

// ownersKey finds them in a context; to look for it needs no memory.
type ownersKey struct{}

func withOwner(ctx context.Context, lock ownerKey, owner string) context.Context {
	next, _ := ctx.Value(ownersKey{}).(*owners)
	return context.WithValue(ctx, ownersKey{}, &owners{lock, owner, next})
}

// ownerIn is the owner of a lock in the context of a hold; empty: it has none.
func ownerIn(ctx context.Context, lock ownerKey) string {
	o, _ := ctx.Value(ownersKey{}).(*owners)
	for o != nil && o.lock != lock {
		o = o.next
	}
	if o == nil {
		return ""
	}
	return o.owner
}

// begin starts the lease that a was granted and registers the hold everywhere. It comes before the caller of a knows of
// the hold, so that no release can come earlier (redisson#7272).
func (k *leaseKeeper) begin(ctx context.Context, a *attempt, h holder) {
	k.client, k.holder, k.claim, k.acquireCtx = a.client, h, a.claim, ctx
	k.lease, k.auto = a.lease, a.auto
	if k.lease > 0 {
		k.deadline = a.granted.sent.Add(validity(k.lease))
	}
	if q := k.client.quorum; q != nil {
		q.known.Add(k.claim.owned(), 1)
	}
	if k.lease > 0 && !k.auto {
		k.arm()
	}
	if a.maxHold > 0 {
		k.renewal.last = a.granted.sent.Add(a.maxHold)
	}
	if !k.client.dog.add(k, a.granted.sent) {
		k.end(ErrClosed)
	}
}

// arm makes the hold end at its deadline by itself.
func (k *leaseKeeper) arm() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer == nil && k.over == nil {
		k.timer = time.AfterFunc(time.Until(k.deadline), k.expire)
	}
}

// Context is a child of the context that was given to Acquire, which also ends when the hold does; context.Cause is
// then [ErrLost], [ErrReleased] or [ErrClosed]. When the parent ends first, the lock is held until Release. Under the
// context of a [Hold], an Acquire of the same lock is refused with [ErrReentered], or, with [WithReentry], a re-entry.
// The context of [Permits] without a lease does not end when they are released by force.
func (k *leaseKeeper) Context() context.Context { // made when it is first asked for
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx == nil {
		ctx := k.acquireCtx
		if k.claim.owner != "" {
			ctx = withOwner(ctx, ownerKey{k.client, k.claim.key}, k.claim.owner)
		}
		k.ctx, k.cancel = context.WithCancelCause(ctx)
		if k.over != nil {
			k.cancel(k.over)
		}
	}
	return k.ctx
}

// Done is closed when the hold ends, regardless of the context that was passed to Acquire; Err says why.
func (k *leaseKeeper) Done() <-chan struct{} { // made when it is first asked for
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done == nil {
		k.done = make(chan struct{})
		if k.over != nil {
			close(k.done)
		}
	}
	return k.done
}

// whenEnded has f called once, when the hold ends or at once.
func (k *leaseKeeper) whenEnded(f func(why error)) {
	k.mu.Lock()
	why := k.over
	if why == nil {
		k.then = f
	}
	k.mu.Unlock()
	if why != nil {
		f(why)
	}
}

// Name is the name of the lock or the semaphore.
func (k *leaseKeeper) Name() string { return k.claim.name }

// Deadline is when the validity of the hold ends, on the monotonic clock; zero: it has no lease. The watchdog, Renew
// and Extend extend it.
func (k *leaseKeeper) Deadline() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.deadline
}

// Err is why the hold has ended: [ErrLost], [ErrReleased] or [ErrClosed]; nil while it lasts.
func (k *leaseKeeper) Err() error {
	k.mu.Lock()
	why, late := k.over, !k.deadline.IsZero() && !time.Now().Before(k.deadline)
	k.mu.Unlock()
	if why == nil && late { // the timer has not noticed yet, as after a pause of the process
		if why = k.end(ErrLost); why == nil {
			k.client.bg.Start(k.holder.onLost)
			return ErrLost
		}
	}
	return why
}

// renew extends the hold to lease from now on, and retries until there is a reply or ctx or the hold ends.
func (k *leaseKeeper) renew(ctx context.Context, lease time.Duration) error {
	for {
		if err := k.Err(); err != nil {
			return err
		}
		err := k.renewOnce(ctx, lease)
		if err == nil || errors.Is(err, ErrLost) || isFinal(err) {
			return err
		}
		if !k.client.pause(ctx, k.client.backoff()) {
			return err
		}
	}
}

// renewOnce waits for the reply no longer than ctx and the hold last.
func (k *leaseKeeper) renewOnce(ctx context.Context, lease time.Duration) error {
	ctx, cancel := context.WithDeadlineCause(ctx, k.Deadline(), ErrLost)
	defer cancel()
	cl := k.claim
	cl.lease = milliseconds(lease)
	r := cl.store.renew(ctx, []claim{cl})[0]
	if r.err != nil {
		return r.err
	}
	return k.settle(r, lease)
}

// settle applies the reply to a renewal. A reply that comes after the end of the hold changes nothing.
func (k *leaseKeeper) settle(r renewal, lease time.Duration) error {
	if !r.kept {
		k.lose()
		return ErrLost
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over != nil {
		return k.over
	}
	if deadline := r.sent.Add(validity(lease)); deadline.After(k.deadline) {
		k.deadline = deadline
		if k.timer != nil { // it would fire before the deadline otherwise
			k.timer.Reset(time.Until(deadline))
		}
	}
	return nil
}

// beginRelease ends the hold before it is released at the server, and returns why
// it had ended before; its error is [ErrReleased] if a release was replied to.
func (k *leaseKeeper) beginRelease() (before, err error) {
	before = k.end(ErrReleased)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.released {
		err = ErrReleased
	}
	return before, err
}

// replyAfter is the reply to a release. After the end of the hold, the key may be another program's.
func (k *leaseKeeper) replyAfter(before error, left int, err error) (int, error) {
	d := k.Deadline()
	if (errors.Is(before, ErrLost) || !d.IsZero() && !time.Now().Before(d)) && errors.Is(err, ErrForeign) {
		return codeNotOwner, nil
	}
	return left, err
}

// finishRelease is called with the reply of the server, left, and returns the result of the release.
func (k *leaseKeeper) finishRelease(before error, left int) error {
	k.mu.Lock()
	k.released = true
	k.mu.Unlock()
	switch {
	case left == codeNotOwner:
		return fmt.Errorf("%w: %w", ErrLost, ErrNotOwner)
	case left < 0 || errors.Is(before, ErrLost):
		return ErrLost
	}
	return nil
}

// end ends the hold on this side, once, and returns why it had ended before. No renewal is sent after it has returned.
func (k *leaseKeeper) end(why error) (before error) {
	k.client.dog.remove(k)
	k.mu.Lock()
	before = k.over
	cancel, done, then := k.cancel, k.done, k.then
	if before == nil {
		k.over = why
		if k.timer != nil {
			k.timer.Stop()
		}
	}
	k.mu.Unlock()
	if before != nil {
		return before
	}
	if q := k.client.quorum; q != nil {
		q.known.Add(k.claim.owned(), -1)
	}
	if cancel != nil {
		cancel(why)
	}
	if done != nil {
		close(done)
	}
	if then != nil {
		then(why)
	}
	return nil
}

// lose ends the hold as lost and notifies the user.
func (k *leaseKeeper) lose() {
	if k.end(ErrLost) == nil {
		k.holder.onLost()
	}
}

// expire runs at the deadline that was known when the timer was set.
func (k *leaseKeeper) expire() {
	k.mu.Lock()
	left := time.Until(k.deadline)
	if left > 0 && k.over == nil {
		k.timer.Reset(left)
	}
	k.mu.Unlock()
	if left <= 0 {
		k.lose()
	}
}
