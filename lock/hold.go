package lock

import (
	"context"
	"sync/atomic"
	"time"
)

// Hold is the possession of a lock, from Acquire until Release. Work under it
// should use its Context. Several goroutines may use it.
type Hold struct {
	leaseKeeper
	token int64 // 0: none was minted
	count atomic.Int64
	sure  bool      // no request of its acquire is in flight
	since time.Time // see granted.since
	first retrier   // of the release that ends it: of its own, it would be one more allocation
}

// FencedHold is a [Hold], with all its methods, and the fencing token of a [FencedMutex], a [FairMutex] or an [RW].
type FencedHold struct{ Hold }

// Token is the fencing token of the grant: greater than the tokens of all grants before, the same for all holds of one
// owner, and never 0. A reader has the token of the last writer.
func (h *FencedHold) Token() int64 { return h.token }

// newHold is the hold that a was granted.
func newHold(ctx context.Context, a *attempt) *FencedHold {
	h := &FencedHold{Hold{token: a.granted.token, sure: !a.uncertain}}
	h.count.Store(int64(a.granted.count))
	if h.since = a.granted.since; h.since.IsZero() {
		h.since = a.granted.sent
	}
	h.begin(ctx, a, &h.Hold)
	return h
}

// Owner is the id of the owner.
func (h *Hold) Owner() string { return h.claim.owner }

// Count is how many holds the owner had, including this one, when it was granted; after Release, how many were left. On
// a quorum, only holds that were granted to this client count.
func (h *Hold) Count() int { return int(h.count.Load()) }

// Renew extends the hold to its full lease from now on. Its error is [ErrLost] if the hold has ended, and [ErrUnknown]
// if no reply came before ctx or the hold ended; until its Deadline the hold lasts even so.
func (h *Hold) Renew(ctx context.Context) error {
	return failed("renew", "lock", h.claim.name, h.renew(ctx, h.lease))
}

// Extend is Renew with another lease, only this time. It never shortens the hold.
func (h *Hold) Extend(ctx context.Context, lease time.Duration) error {
	err := checkLease(lease)
	if err == nil {
		err = h.renew(ctx, lease)
	}
	return failed("extend", "lock", h.claim.name, err)
}

// Release releases the hold. It works with a context that has ended, and takes no longer than the client's timeout.
// Its error is [ErrLost] if the hold had ended before, with [ErrNotOwner] if another owner has the lock by now;
// [ErrReleased] if it was released before; and [ErrUnknown] if no reply came: then it may be called again, and the
// hold ends with its lease at the latest.
func (h *Hold) Release(ctx context.Context) error {
	started := h.client.startTime()
	before, err := h.beginRelease()
	if err == nil {
		err = h.giveBack(ctx, before)
	}
	err = failed("release", "lock", h.claim.name, err)
	h.client.emitClaim(ctx, Released, &h.claim, h.token, started, err)
	return err
}

// giveBack releases the hold at the servers; for a plain mutex, it also wakes waiters of this client and removes old
// tombstones.
func (h *Hold) giveBack(ctx context.Context, before error) error {
	c, cl := h.client, h.claim
	plain := cl.store == c.store && c.single
	if plain {
		if q := c.queues; q.InUse() && q.Waiting(cl.freeChannel()) > 0 {
			cl.publish = q.NotifyMode()
			cl.handOver = h.mayHandOver(cl.freeChannel())
		}
		cl.oldTombstones = c.oldTombstones.take(cl.key)
		cl.tombstone = cl.tombstoneKey()
		cl.outlasts = outlasts(time.Until(h.Deadline()), c.o.Timeout)
	}
	r := &h.first
	if before != nil { // only one release has found it not ended
		r = new(retrier)
	}
	left, err := r.giveBack(ctx, c, cl)
	if left, err = h.replyAfter(before, left, err); err != nil {
		return err
	}
	h.count.Store(int64(max(left, 0)))
	if plain && h.sure {
		c.oldTombstones.put(cl.key, cl.tombstone)
	}
	return h.finishRelease(before, left)
}

func (h *Hold) onRenewed() {
	h.client.emitClaim(noCall(), Renewed, &h.claim, h.token, time.Time{}, nil)
	if h.client.o.OnRenewed != nil {
		h.client.o.OnRenewed(h)
	}
}

func (h *Hold) onLost() {
	h.client.emitClaim(noCall(), Lost, &h.claim, h.token, time.Time{}, ErrLost)
	if h.client.o.OnLost != nil {
		h.client.o.OnLost(h)
	}
}
