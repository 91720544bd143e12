package lock

import (
	"context"
	"sync/atomic"
	"time"
)

// Hold is the possession of a lock, from Acquire until Release. Work under it
// should use its Context, and a guarded resource should refuse every Token older
// than one it has seen. Several goroutines may use it.
type Hold struct {
	leaseKeeper
	token uint64
	count atomic.Int64
	sure  bool // no request of its acquire is in flight
}

// newHold is the hold that a was granted.
func newHold(ctx context.Context, a *attempt) *Hold {
	h := &Hold{token: a.granted.token, sure: !a.uncertain}
	h.count.Store(int64(a.granted.count))
	h.begin(ctx, a, h)
	return h
}

// Context ends when the hold does; context.Cause is then [ErrLost],
// [ErrReleased] or [ErrClosed]. It has the values of the context that was given to
// Acquire, but not its end, which bounded the wait and not the work. An Acquire of
// the same lock under it is a re-entry.
func (h *Hold) Context() context.Context { return h.context() }

// Name is the name of the lock.
func (h *Hold) Name() string { return h.claim.name }

// Owner is the id of the owner.
func (h *Hold) Owner() string { return h.claim.owner }

// Token is the fencing token of the grant, if [Options].Tokens or the kind of lock
// asks for one: greater than that of every grant before, the same for all holds of
// one owner. 0: the lock mints none.
func (h *Hold) Token() uint64 { return h.token }

// Count is how many holds the owner had, this one included, when it was granted;
// after Release, how many were left. On a quorum only those count that this client
// was granted.
func (h *Hold) Count() int { return int(h.count.Load()) }

// Deadline is until when the hold is valid, on the monotonic clock. The watchdog
// and Renew extend it.
func (h *Hold) Deadline() time.Time { return h.validUntil() }

// Renew prolongs the hold to its full lease from now on. Its error is [ErrLost]
// if the hold has ended, and [ErrUnknown] if no reply came before ctx or the hold
// ended; until its Deadline the hold lasts even so.
func (h *Hold) Renew(ctx context.Context) error {
	return failed("renew", "lock", h.claim.name, h.renew(ctx, h.lease))
}

// Release releases the hold. It works with a context that has ended, and takes no
// longer than the client's timeout. Its error is [ErrLost] if the hold had ended
// before, with [ErrNotOwner] if another owner has the lock by now; [ErrReleased] if
// it was released before; and [ErrUnknown] if no reply came: then it may be called
// again, and the lease ends the hold at the latest.
func (h *Hold) Release(ctx context.Context) error {
	started := h.client.startTime()
	before, err := h.beginRelease()
	if err == nil {
		err = h.giveBack(ctx, before)
	}
	err = failed("release", "lock", h.claim.name, err)
	h.client.emitClaim(Released, &h.claim, h.token, started, err)
	return err
}

// giveBack releases the hold at the servers; that of a plain mutex wakes waiters of
// this client and removes an old tombstone.
func (h *Hold) giveBack(ctx context.Context, before error) error {
	c, cl := h.client, h.claim
	plain := cl.store == c.store && c.single
	if plain {
		if q := c.queues; q.count.Load() > 0 && q.waiting(cl.freeChannel()) > 0 {
			cl.publish = q.notifyMode(context.Background()) // probed before, by the waiters
		}
		cl.oldTombstone = c.oldTombstones.take(cl.name)
	}
	left, err := c.giveBack(ctx, cl)
	if err != nil {
		return err
	}
	h.count.Store(int64(max(left, 0)))
	if plain && h.sure {
		c.oldTombstones.put(cl.name, cl.tombstoneKey())
	}
	return h.finishRelease(before, left)
}

func (h *Hold) onRenewed() {
	h.client.emitClaim(Renewed, &h.claim, h.token, time.Time{}, nil)
	if h.client.o.OnRenewed != nil {
		h.client.o.OnRenewed(h)
	}
}

func (h *Hold) onLost() {
	h.client.emitClaim(Lost, &h.claim, h.token, time.Time{}, ErrLost)
	if h.client.o.OnLost != nil {
		h.client.o.OnLost(h)
	}
}
