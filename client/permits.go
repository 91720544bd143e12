package client

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// Drainer is implemented by a [Locker] whose [Spec] states [promise.ManagesPermits].
type Drainer interface {
	// Drain takes all permits that are free, at least one, and reports how many; Permits of a are ignored.
	Drain(ctx context.Context, a Acquire) (g Grant, permits int, err error)
}

// PermitForcer is implemented by a [Locker] whose [Spec] states [promise.ForceReleasePermits].
type PermitForcer interface {
	// ForcePermits releases as many permits of h as h.Permits says, regardless of its owner, and reports whether any of
	// them was held. The rest is left to the owner.
	ForcePermits(ctx context.Context, h Hold) (held bool, err error)
}

// PermitChanger is implemented by a [Locker] whose [Spec] states [promise.ManagesPermits].
type PermitChanger interface {
	// ChangePermits adds permits to a semaphore, or removes them if by is negative, and returns how many there are then.
	ChangePermits(ctx context.Context, key string, by int) (total int, err error)
}

// drain executes a try with drain.
func (n *native) drain(ctx context.Context, r Request, a Acquire) Reply {
	l, ok := offers[Drainer](n.locker)
	if !ok || !n.row.Can.Has(promise.ManagesPermits) {
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
	case r.Permits > 0 && canSome && n.row.Can.Has(promise.ForceReleasePermits):
		held, err = some.ForcePermits(ctx, r.Hold())
	case r.Permits == 0 && canAll:
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
	return with(n, r, func(l PermitChanger) (Grant, error) {
		return counted(l.ChangePermits(ctx, r.Key, by))
	})
}
