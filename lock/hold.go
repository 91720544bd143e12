package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Hold is one stay in a lock, from Acquire until Release. Work under it should
// use its Context, and a guarded resource should refuse every Token older than
// one it has seen. Several goroutines may use it.
type Hold struct {
	client *Client
	claim  claim
	lease  time.Duration
	auto   bool // the watchdog renews it
	sure   bool // no request for it is on its way
	token  uint64
	asked  context.Context // of the acquire
	duty   duty            // the watchdog's

	mu       sync.Mutex
	ctx      context.Context // nil: nobody has asked for it yet
	cancel   context.CancelCauseFunc
	deadline time.Time
	count    int
	over     error       // why the hold has ended; nil while it lasts
	released bool        // a release was answered
	timer    *time.Timer // at the deadline; nil: the watchdog comes before that, and makes it
}

// ownerKey finds the owner of a lock in the context of a hold.
type ownerKey struct {
	client *Client
	name   string
}

// newHold is the hold that g grants. It is registered everywhere before its
// caller can know of it, so that no release can come before (redisson#7272).
func newHold(ctx context.Context, a *attempt, g grant) *Hold {
	h := &Hold{
		client:   a.client,
		claim:    a.claim,
		lease:    a.lease,
		auto:     a.auto,
		sure:     !a.uncertain,
		token:    g.token,
		asked:    ctx,
		deadline: g.sent.Add(validity(a.lease)),
		count:    g.count,
	}
	if q := h.client.quorum; q != nil {
		q.known.add(h.claim, 1)
	}
	if !h.auto {
		h.arm()
	}
	if a.maxHold > 0 {
		h.duty.last = g.sent.Add(a.maxHold)
	}
	if !h.client.dog.add(h, g.sent) {
		h.end(ErrClosed)
	}
	return h
}

// arm has the hold end at its deadline by itself.
func (h *Hold) arm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer == nil && h.over == nil {
		h.timer = time.AfterFunc(time.Until(h.deadline), h.expire)
	}
}

// Context ends when the hold does; context.Cause is then [ErrLost],
// [ErrReleased] or [ErrClosed]. It has the values of the context that was given
// to Acquire, but not its end, which bounded the waiting and not the work.
// An Acquire of the same lock under it is a re-entry.
func (h *Hold) Context() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil {
		key := ownerKey{h.client, h.claim.name}
		h.ctx, h.cancel = context.WithCancelCause(context.WithValue(context.WithoutCancel(h.asked), key, h.claim.owner))
		if h.over != nil {
			h.cancel(h.over)
		}
	}
	return h.ctx
}

// Name is the name of the lock.
func (h *Hold) Name() string { return h.claim.name }

// Owner is the id of the owner.
func (h *Hold) Owner() string { return h.claim.owner }

// Token is the fencing number of the grant, if [Options].Tokens or the kind of
// lock asks for one: greater than that of every grant before, the same for all
// holds of one owner. 0: the lock mints none.
func (h *Hold) Token() uint64 { return h.token }

// Count is how many holds the owner had, this one included, when it was
// granted; after Release, how many were left. On a quorum only those count that
// this client was granted.
func (h *Hold) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// Deadline is until when the hold may be relied on, on the monotonic clock. The
// watchdog and Renew move it on.
func (h *Hold) Deadline() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline
}

// Renew prolongs the hold to its full lease from now on. Its error is [ErrLost]
// if the hold has ended, and [ErrUnknown] if no answer came before ctx or the
// hold ended; until its Deadline the hold lasts even so.
func (h *Hold) Renew(ctx context.Context) error {
	for {
		if err := h.ended(); err != nil {
			return fmt.Errorf("renew lock %q: %w", h.claim.name, err)
		}
		err := h.renewOnce(ctx)
		if err == nil || errors.Is(err, ErrLost) || outcomeOf(err) == rejected {
			return wrapErr("renew", h.claim.name, err)
		}
		if !h.client.pause(ctx, h.client.backoff()) {
			return wrapErr("renew", h.claim.name, err)
		}
	}
}

// renewOnce asks for one renewal and waits for the answer no longer than ctx
// and the hold last.
func (h *Hold) renewOnce(ctx context.Context) error {
	ctx, cancel := context.WithDeadlineCause(ctx, h.Deadline(), ErrLost)
	defer cancel()
	r := h.client.store.renew(ctx, []claim{h.claim})[0]
	if r.err != nil {
		return r.err
	}
	return h.settle(r)
}

// settle takes the answer to a renewal. An answer that comes after the end of
// the hold changes nothing.
func (h *Hold) settle(r renewal) error {
	if !r.kept {
		h.lose()
		return ErrLost
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over != nil {
		return h.over
	}
	if until := r.sent.Add(validity(h.lease)); until.After(h.deadline) {
		h.deadline = until
		if h.timer != nil { // or it would wake a goroutine to learn that there is time left
			h.timer.Reset(time.Until(until))
		}
	}
	return nil
}

// Release gives the hold back. It works with a context that has ended, and
// takes no longer than the client's timeout. Its error is [ErrLost] if the hold
// had ended before, with [ErrNotOwner] if somebody else has the lock by now;
// [ErrReleased] if it was released before; and [ErrUnknown] if no answer came:
// then it may be called again, and the lease ends the hold at the latest.
func (h *Hold) Release(ctx context.Context) error {
	begun := h.client.startTime()
	err := h.giveBack(ctx)
	h.emit(Released, begun, err)
	return err
}

func (h *Hold) giveBack(ctx context.Context) error {
	before := h.end(ErrReleased)
	if h.isReleased() {
		return wrapErr("release", h.claim.name, ErrReleased)
	}
	cl := h.claim
	var tombstone string
	if plain := cl.store == nil && h.client.single; plain {
		if s := h.client.queues; s.count.Load() > 0 && s.waiting(cl.freeChannel()) > 0 {
			cl.releaseNotify = s.notifyMode(context.Background()) // known, for somebody waits
		}
		cl.oldTombstone, tombstone = h.client.oldTombstones.take(cl.name), cl.tombstoneKey()
	}
	left, err := h.client.giveBack(ctx, cl)
	if err != nil {
		return wrapErr("release", h.claim.name, err)
	}
	h.mu.Lock()
	h.released = true
	h.count = max(left, 0)
	h.mu.Unlock()
	if tombstone != "" && h.sure {
		h.client.oldTombstones.put(cl.name, tombstone)
	}
	switch {
	case left == -2:
		return wrapErr("release", h.claim.name, fmt.Errorf("%w: %w", ErrLost, ErrNotOwner))
	case left < 0 || errors.Is(before, ErrLost):
		return wrapErr("release", h.claim.name, ErrLost)
	}
	return nil
}

func (h *Hold) isReleased() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.released
}

func (h *Hold) ended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// end ends the hold on this side, once, and returns why it had ended before.
// No renewal is sent after it has returned.
func (h *Hold) end(why error) (before error) {
	h.client.dog.remove(h)
	h.mu.Lock()
	before = h.over
	cancel := h.cancel
	if before == nil {
		h.over = why
		if h.timer != nil {
			h.timer.Stop()
		}
	}
	h.mu.Unlock()
	if q := h.client.quorum; before == nil && q != nil {
		q.known.add(h.claim, -1)
	}
	if before == nil && cancel != nil {
		cancel(why)
	}
	return before
}

// lose ends the hold as lost and tells the user.
func (h *Hold) lose() {
	if h.end(ErrLost) != nil {
		return
	}
	h.emit(Lost, time.Time{}, ErrLost)
	if h.client.o.OnLost != nil {
		h.client.o.OnLost(h)
	}
}

// expire runs at what was the deadline when the timer was set.
func (h *Hold) expire() {
	h.mu.Lock()
	left := time.Until(h.deadline)
	if left > 0 && h.over == nil {
		h.timer.Reset(left)
	}
	h.mu.Unlock()
	if left <= 0 {
		h.lose()
	}
}

func wrapErr(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s lock %q: %w", doing, name, err)
}
