package locks

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// Operate implements [client.Operator]: the operations that some kinds of lock of package lock have.
func (l *library) Operate(ctx context.Context, r client.Request) (g client.Grant, err error) {
	switch r.Op {
	case history.Acquire:
		return l.acquireUntilClosed(ctx, r.Acquire, r.Close)
	case history.Try:
		return l.drain(ctx, r.Acquire)
	case history.Arm:
		return l.arm(ctx, r.Key, r.Count)
	case history.CountDown:
		return l.countDown(ctx, r.Key, r.Owner, r.Token)
	case history.Await:
		return client.Grant{Token: r.Token}, l.await(ctx, r.Key, r.Token)
	case history.Delete:
		return g, l.deleteLatch(ctx, r.Key)
	case history.Resize:
		return g, l.semaphore(l.lock, client.Acquire{Key: r.Key}).SetPermits(ctx, r.Limit)
	case history.AddPermits, history.DropPermits:
		g.Count, err = l.changePermits(ctx, r)
	case history.ForceRelease:
		return g, l.forceRelease(ctx, r)
	case history.Guard:
		return g, l.present(ctx, r.Key, r.Token)
	case history.Inspect:
		return l.inspection(ctx, r.Key)
	case history.InspectOwner:
		g.Count, err = l.inspectOwner(ctx, r.Hold())
	case history.CountWaiters:
		g.Count, err = l.countWaiters(ctx, r.Key)
	case history.Reopen:
		return g, l.closeAndOpen(ctx)
	default:
		return g, fmt.Errorf("no lock of this library has operation %s", r.Op)
	}
	return g, err
}

// changePermits adds permits to a semaphore, or removes some, and returns how many there are then.
func (l *library) changePermits(ctx context.Context, r client.Request) (total int, err error) {
	by := max(1, r.Permits)
	if r.Op == history.DropPermits {
		by = -by
	}
	return l.semaphore(l.lock, client.Acquire{Key: r.Key}).AddPermits(ctx, by)
}

// forceRelease takes the lock from all who hold it, or some permits from one owner.
func (l *library) forceRelease(ctx context.Context, r client.Request) (err error) {
	var held bool
	if r.Permits > 0 {
		held, err = l.forcePermits(ctx, r.Hold())
	} else {
		held, err = l.force(ctx, l.lock, r.Key)
	}
	if err == nil && !held {
		err = client.ErrNotHeld
	}
	return err
}

// inspection reports who holds the lock, or the state of a latch. Half of the clients know the holder by its metadata,
// as operators do.
func (l *library) inspection(ctx context.Context, key string) (client.Grant, error) {
	if l.inspect == nil {
		return l.latchState(ctx, key)
	}
	owner, g, err := l.inspect(ctx, l, key)
	g.Owner = owner
	return g, err
}
