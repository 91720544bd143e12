package lock

import (
	"context"
	"time"
)

// Semaphore lets so many permits be out at a time. Its holders have no lease:
// the permits of one that crashed stay out until somebody gives them back by
// [Semaphore.ForceRelease] ([Semaphore.State] says whose they are; redisson#2045,
// redisson#4462); where that will not do, use a [PermitSemaphore]. It is not
// fair: whoever wants few permits may pass one that wants many. It is kept on
// one master. Several goroutines may use it.
//
// A semaphore named pool is the hash pool, in which free + the sum of all h: is
// always total:
//
//	kind      "semaphore"
//	total     permits there are; it has no expiry
//	free      permits that nobody has; negative after the total was lowered below what is out
//	h:<hold>  permits of one hold
//
//	{pool}:tombstone:<id>  short-lived: what was answered to a request, should it come again
//	{pool}:free        the channel that says how many permits are free, as "+n"
type Semaphore struct {
	client *Client
	name   string
}

// Semaphore is the semaphore of that name. It costs nothing and needs no closing.
func (c *Client) Semaphore(name string) *Semaphore { return &Semaphore{client: c, name: name} }

func (s *Semaphore) pool() pool { return pool{s.client, s.name, "semaphore"} }

// TrySetPermits sets up a semaphore of n permits, unless it is there: then it
// is left as it is, even if no permit is free (redisson#4678), and set is false.
// n may be 0.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int) (set bool, err error) {
	return s.pool().try(ctx, n)
}

// SetPermits makes n the total; n may be 0. Permits that are out stay out, even
// if they are more than n: then none is given until enough have come back.
func (s *Semaphore) SetPermits(ctx context.Context, n int) error { return s.pool().put(ctx, n) }

// AddPermits makes the total greater by n, or less if n is negative, and says
// what it is then. Its error is [ErrPermits] if that is less than none, and
// [ErrAbsent] if the semaphore is not there.
func (s *Semaphore) AddPermits(ctx context.Context, n int) (total int, err error) {
	return s.pool().add(ctx, n)
}

// State is what the semaphore has and who holds it; [ErrAbsent] if it is not there.
func (s *Semaphore) State(ctx context.Context) (SemaphoreState, error) { return s.pool().state(ctx) }

// ForceRelease gives back the permits of holds, by their ids, whoever they are
// of, and says how many permits came back. The holders learn it when they release: [ErrLost].
func (s *Semaphore) ForceRelease(ctx context.Context, ids ...string) (permits int, err error) {
	return s.pool().force(ctx, func(ctx context.Context, request string) (int, error) {
		permits, _, err := s.release(ctx, request, ids)
		return permits, err
	})
}

// Acquire waits until n permits are free and takes them all at once. Its error
// is [ErrNoPermits] if ctx ended before, [ErrPermits] if n is less than one or
// more than there are in all, [ErrAbsent] if the semaphore is not there, and
// [ErrUnknown] if permits may have been taken and could not be given back.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Permits, error) {
	p, err := s.take(ctx, n, s.client.await)
	return p, failed("acquire", "semaphore", s.name, err)
}

// TryAcquire takes n permits if they are free now. Errors are those of Acquire.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Permits, error) {
	p, err := s.take(ctx, n, func(ctx context.Context, _ string, ask asker) error { return s.client.now(ctx, ask) })
	return p, failed("try", "semaphore", s.name, err)
}

func (s *Semaphore) take(ctx context.Context, n int, how patience) (*Permits, error) {
	if err := s.client.checkCounted(s.name); err != nil {
		return nil, err
	}
	if err := checkCount(n, 1); err != nil {
		return nil, err
	}
	id := s.client.random.id()
	t := &taking{pool: s.pool(), permits: n, ids: []string{id}}
	t.ask = func(ctx context.Context) ([]int64, error) {
		return s.client.keeps(ctx, 3, call{
			script: counted.acquire,
			keys:   []string{s.name, tagged(s.name, "tombstone:"+id)},
			args:   []any{id, n},
		})
	}
	t.back = func(ctx context.Context) (bool, error) {
		_, holds, err := s.release(ctx, id, t.ids)
		return holds == 1, err
	}
	return t.run(ctx, how)
}

func (s *Semaphore) release(ctx context.Context, request string, ids []string) (permits, holds int, err error) {
	args := []any{s.client.o.tombstoneTTL()}
	for _, id := range ids {
		args = append(args, id)
	}
	got, err := s.client.counts(ctx, 2, call{
		script: counted.release,
		keys:   []string{s.name, tagged(s.name, "tombstone:"+request), tagged(s.name, "free")},
		args:   args,
	})
	if err != nil {
		return 0, 0, err
	}
	return int(got[0]), int(got[1]), nil
}

// Permits are permits of a semaphore, from Acquire until Release. Several
// goroutines may use it.
type Permits struct {
	lease   *leaseKeeper
	pool    pool
	permits int
	ids     []string
	back    func(ctx context.Context) (held bool, err error)
}

// Context ends when the permits are given back or lost, or the client is closed;
// context.Cause is then [ErrReleased], [ErrLost] or [ErrClosed]. It has the values of the
// context that was given to Acquire, but not its end. Without a lease nothing
// tells that the permits were taken away by force.
func (p *Permits) Context() context.Context { return p.lease.ctx }

// Name is the name of the semaphore.
func (p *Permits) Name() string { return p.pool.name }

// Count is how many permits these are.
func (p *Permits) Count() int { return p.permits }

// IDs are the ids under which an observer sees the permits: one for each permit
// of a [PermitSemaphore], one for all of them of a [Semaphore].
func (p *Permits) IDs() []string { return append([]string(nil), p.ids...) }

// Deadline is until when the permits may be relied on, on the monotonic clock;
// zero: they have no lease. The watchdog, Renew and Extend move it on.
func (p *Permits) Deadline() time.Time { return p.lease.until() }

// Renew prolongs the permits to their full lease from now on. Its error is
// [ErrLost] if they are not held any more, and [ErrUnknown] if no answer came.
// It does nothing for permits without a lease.
func (p *Permits) Renew(ctx context.Context) error {
	p.lease.mu.Lock()
	lease := p.lease.lease
	p.lease.mu.Unlock()
	return p.Extend(ctx, lease)
}

// Extend is Renew for another lease, this once. It never shortens.
func (p *Permits) Extend(ctx context.Context, lease time.Duration) error {
	err := p.lease.ended()
	if err == nil && p.lease.renew != nil {
		if err = checkLease(lease); err == nil {
			err = p.lease.prolong(ctx, lease)
		}
	}
	return failed("renew permits of", p.pool.kind, p.pool.name, err)
}

// Release gives the permits back, even if ctx has ended. Its error is [ErrLost]
// if they were not held any more, [ErrReleased] if they were given back before:
// nothing is given back twice (redisson#5066). After [ErrUnknown] it may be
// called again.
func (p *Permits) Release(ctx context.Context) error {
	begun := p.pool.client.startTime()
	err := failed("release permits of", p.pool.kind, p.pool.name, p.lease.giveBack(ctx, p.back))
	p.emit(Released, begun, err)
	return err
}
