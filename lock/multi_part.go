package lock

import (
	"context"
	"fmt"
	"time"
)

// AnyLock is one of the locks of a [MultiLock]: a [Mutex], a [FencedMutex], a [FairMutex], a [RWSide], or permits of a
// semaphore ([Semaphore.Permits], [PermitSemaphore.Permits], [FairSemaphore.Permits]). A [Latch] is no lock.
type AnyLock interface{ part() part }

// part is one of several locks.
type part struct {
	named
	fenced bool
	// oneMaster means that the lock is not kept on several masters.
	oneMaster bool
	// bundled locks are mutexes, which one script can take.
	bundled bool
	// permits is the number of permits of a semaphore; 0: it is another lock. It takes no more than most at once.
	permits, most int
	// take acquires the lock with these settings in place of its own.
	take func(ctx context.Context, s *settings, wait bool) (partHold, error)
}

// partHold is a [Hold] or [Permits] of a [MultiHold].
type partHold interface {
	Renew(ctx context.Context) error
	Extend(ctx context.Context, lease time.Duration) error
	Release(ctx context.Context) error
	base() *leaseKeeper
}

var (
	_ partHold = (*Hold)(nil)
	_ partHold = (*Permits)(nil)
)

// base is the client's side of the hold.
func (k *leaseKeeper) base() *leaseKeeper { return k }

// check refuses options of the lock itself, but for the total of a semaphore, and a wrong number of permits.
func (p part) check() error {
	own, err := p.options.given, error(nil)
	if p.most > 0 {
		own &^= optTotal
		err = checkCount(p.permits, 1, p.most)
	}
	if own != 0 {
		return fmt.Errorf("%q has options of its own (%s): give them to Acquire", p.name, own)
	}
	if err == nil {
		err = p.options.check("a semaphore", optTotal)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", p.name, err)
	}
	return nil
}

func takeFenced(ctx context.Context, l fencedLock, wait bool) (partHold, error) {
	acquire := l.TryAcquire
	if wait {
		acquire = l.Acquire
	}
	h, err := acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &h.Hold, nil
}

func (m *Mutex) part() part {
	return part{named: m.named, fenced: m.fenced, oneMaster: m.fenced, bundled: true,
		take: func(ctx context.Context, s *settings, wait bool) (partHold, error) {
			return takeFenced(ctx, &FencedMutex{Mutex{named: m.named.with(s), fenced: m.fenced}}, wait)
		}}
}

func (m *FencedMutex) part() part { return m.mutex.part() }

func (m *FairMutex) part() part {
	return part{named: m.named, fenced: true, oneMaster: true,
		take: func(ctx context.Context, s *settings, wait bool) (partHold, error) {
			return takeFenced(ctx, &FairMutex{m.named.with(s)}, wait)
		}}
}

func (s *RWSide) part() part {
	return part{named: s.lock.named, fenced: true, oneMaster: true,
		take: func(ctx context.Context, o *settings, wait bool) (partHold, error) {
			return takeFenced(ctx, &RWSide{&RW{s.lock.named.with(o), s.lock.prefer}, s.write}, wait)
		}}
}

// somePermits are permits of a semaphore as one lock.
type somePermits struct {
	pool
	n int
}

func (p *somePermits) part() part {
	return part{named: p.named, oneMaster: true, permits: p.n, most: p.limit(), take: p.take}
}

// take takes the permits: they have no owner, and of a [Semaphore] no lease.
func (p *somePermits) take(ctx context.Context, s *settings, wait bool) (partHold, error) {
	own := &settings{total: p.options.total, backoff: s.backoff}
	if p.store.leased {
		own.lease = s.lease
	}
	permits, err := pool{p.named.with(own), p.store}.acquire(ctx, p.n, wait, nil)
	if err != nil {
		return nil, err
	}
	return permits, nil
}
