package locks

import (
	"context"
	"errors"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
)

// semaphore has the common methods of the semaphores of package lock.
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
type semaphoreOf func(c *lock.Client, a client.Acquire) semaphore

func plainSemaphore(c *lock.Client, a client.Acquire) semaphore {
	return c.Semaphore(a.Key, sizedBy(a)...)
}

func leasedSemaphore(c *lock.Client, a client.Acquire) semaphore {
	return c.PermitSemaphore(a.Key, append(sizedBy(a), lock.WithLease(a.Lease))...)
}

func fairSemaphore(c *lock.Client, a client.Acquire) semaphore {
	return c.FairSemaphore(a.Key, append(sizedBy(a), lock.WithLease(a.Lease))...)
}

// sizedBy says how many permits a semaphore has that does not exist, if a does.
func sizedBy(a client.Acquire) []lock.Option {
	if a.Limit == 0 {
		return nil
	}
	return []lock.Option{lock.WithTotal(a.Limit)}
}

// drain takes all permits that are free. The client keeps them under their number.
func (l *library) drain(ctx context.Context, a client.Acquire) (client.Grant, error) {
	asked := time.Now()
	p, err := l.semaphore(l.lock, a).Drain(ctx)
	if errors.Is(err, lock.ErrQueued) {
		err = behindError{err}
	}
	if err != nil {
		return client.Grant{}, err
	}
	a.Permits = p.Count()
	l.holds.add(native.IDOf(a.Hold()), p)
	l.watch(p, a.Hold())
	if err := l.checkPermits(p, a.Permits, asked); err != nil {
		return client.Grant{}, err
	}
	g := grantOf(p)
	g.Permits = a.Permits
	return g, nil
}

// forcePermits releases the last permits of a hold of this client.
func (l *library) forcePermits(ctx context.Context, ref client.Hold) (bool, error) {
	n := ref.Permits
	ref.Permits = 0
	h, _ := l.holds.innermost(ref)
	p, is := h.(*lock.Permits)
	if !is || n < 1 {
		return false, nil
	}
	ids := p.IDs()
	held, err := l.semaphore(l.lock, client.Acquire{Key: ref.Key}).ForceRelease(ctx, ids[max(0, len(ids)-n):]...)
	return held > 0, err
}
