package client

import (
	"context"
	"errors"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/lock"
)

// Drainer is implemented by a [Locker] whose [Spec] has the capability [CanDrain].
type Drainer interface {
	// Drain takes all permits that are free, at least one, and reports how many; Permits of a are ignored.
	Drain(ctx context.Context, a Acquire) (g Grant, permits int, err error)
}

// PermitForcer is implemented by a [Locker] whose [Spec] has the capability [CanForcePermits].
type PermitForcer interface {
	// ForcePermits releases as many permits of h as h.Permits says, regardless of its owner, and reports whether any of
	// them was held. The rest is left to the owner.
	ForcePermits(ctx context.Context, h Hold) (held bool, err error)
}

// PermitChanger is implemented by a [Locker] whose [Spec] has the capability [CanChangePermits].
type PermitChanger interface {
	// ChangePermits adds permits to a semaphore, or removes them if by is negative, and returns how many there are then.
	ChangePermits(ctx context.Context, key string, by int) (total int, err error)
}

var (
	_ Drainer       = (*library)(nil)
	_ PermitForcer  = (*library)(nil)
	_ PermitChanger = (*library)(nil)
)

// semaphore is what the semaphores of package lock have in common.
type semaphore interface {
	permitSource
	permitTotal
}

type permitSource interface {
	Acquire(ctx context.Context, n int, opts ...lock.Option) (*lock.Permits, error)
	TryAcquire(ctx context.Context, n int, opts ...lock.Option) (*lock.Permits, error)
	Drain(ctx context.Context, opts ...lock.Option) (*lock.Permits, error)
}

type permitTotal interface {
	State(ctx context.Context) (lock.SemaphoreState, error)
	ForceRelease(ctx context.Context, ids ...string) (permits int, err error)
	AddPermits(ctx context.Context, n int) (total int, err error)
	SetPermits(ctx context.Context, n int) error
}

// semaphoreOf returns the semaphore that a is about.
type semaphoreOf func(c *lock.Client, a Acquire) semaphore

func plainSemaphore(c *lock.Client, a Acquire) semaphore {
	return c.Semaphore(a.Key, sizedBy(a)...)
}

func leasedSemaphore(c *lock.Client, a Acquire) semaphore {
	return c.PermitSemaphore(a.Key, append(sizedBy(a), lock.WithLease(a.Lease))...)
}

func fairSemaphore(c *lock.Client, a Acquire) semaphore {
	return c.FairSemaphore(a.Key, append(sizedBy(a), lock.WithLease(a.Lease))...)
}

// sizedBy says how many permits a semaphore has that does not exist, if a does.
func sizedBy(a Acquire) []lock.Option {
	if a.Limit == 0 {
		return nil
	}
	return []lock.Option{lock.WithTotal(a.Limit)}
}

// Drain takes all permits that are free. The client keeps them under their number.
func (l *library) Drain(ctx context.Context, a Acquire) (Grant, int, error) {
	asked := time.Now()
	p, err := l.semaphore(l.lock, a).Drain(ctx)
	if errors.Is(err, lock.ErrQueued) {
		err = behindError{err}
	}
	if err != nil {
		return Grant{}, 0, err
	}
	a.Permits = p.Count()
	l.holds.add(a.hold().id(), p)
	l.watch(p, a.hold())
	if err := l.checkPermits(p, a.Permits, asked); err != nil {
		return Grant{}, 0, err
	}
	return grantOf(p), a.Permits, nil
}

// ForcePermits releases the last permits of a hold of this client.
func (l *library) ForcePermits(ctx context.Context, what Hold) (bool, error) {
	n := what.Permits
	what.Permits = 0
	h, _ := l.holds.innermost(what)
	p, is := h.(*lock.Permits)
	if !is || n < 1 {
		return false, nil
	}
	ids := p.IDs()
	held, err := l.semaphore(l.lock, Acquire{Key: what.Key}).ForceRelease(ctx, ids[max(0, len(ids)-n):]...)
	return held > 0, err
}

// ChangePermits changes how many permits a semaphore has.
func (l *library) ChangePermits(ctx context.Context, key string, by int) (int, error) {
	return l.semaphore(l.lock, Acquire{Key: key}).AddPermits(ctx, by)
}

// drain executes a try with drain.
func (n *native) drain(ctx context.Context, r Request, a Acquire) Reply {
	l, ok := offers[Drainer](n.locker)
	if !ok || !n.row.Can.Has(CanDrain) {
		return notOffered(r)
	}
	if m, is := n.locker.(*member); is {
		m.note(a.Owner)
	}
	g, permits, err := l.Drain(ctx, a)
	reply := n.reply(r, g, err)
	reply.Permits = permits
	return reply
}

// force executes op force-release.
func (n *native) force(ctx context.Context, r Request) Reply {
	var held bool
	var err error
	some, canSome := offers[PermitForcer](n.locker)
	all, canAll := offers[Forcer](n.locker)
	switch {
	case r.Permits > 0 && canSome && n.row.Can.Has(CanForcePermits):
		held, err = some.ForcePermits(ctx, r.hold())
	case r.Permits == 0 && canAll && n.row.Can.Has(CanForceRelease):
		held, err = all.ForceRelease(ctx, r.Key)
	default:
		return notOffered(r)
	}
	if err == nil && !held {
		err = ErrNotHeld
	}
	return n.reply(r, Grant{}, err)
}

// changePermits executes op add-permits and op drop-permits.
func (n *native) changePermits(ctx context.Context, r Request) Reply {
	by := max(1, r.Permits)
	if r.Op == history.DropPermits {
		by = -by
	}
	return with(n, r, CanChangePermits, func(l PermitChanger) (Grant, error) {
		return counted(l.ChangePermits(ctx, r.Key, by))
	})
}
