package lock

import "context"

// FairSemaphore is a [PermitSemaphore] that serves its waiters in the order of their arrival, by the clock of the
// server. The first waiter waits until enough permits are free for it, and those behind it wait too, even for fewer
// permits: small requests cannot starve a large one, but permits may be free meanwhile. TryAcquire does not queue and
// overtakes no waiter. A waiter sends a heartbeat every PollMax, and at least every 2 s; after three times as long
// without one it is skipped. Several goroutines may use it.
//
// The keys are those of a permit semaphore, so that both kinds of one name share their permits, but the order is kept
// only if all use the fair one. Beside them, for a semaphore named pool:
//
//	{pool}:queue    list of the waiters, each a hold, a space and the number of permits, in order of arrival
//	{pool}:waiters  sorted set of the same, by the time in ms at which they expire without a heartbeat
//
// The channel {pool}:free also publishes the hold of the first waiter when it may be served.
type FairSemaphore struct{ named }

// FairSemaphore returns the fair semaphore of that name; [WithTotal] sets how many permits it has. It sends no request
// and needs no closing.
func (c *Client) FairSemaphore(name string, opts ...Option) *FairSemaphore {
	return &FairSemaphore{c.named(name, opts)}
}

func (s *FairSemaphore) pool() pool { return pool{s.named, s.client.fairPermits} }

// TrySetPermits is like [Semaphore.TrySetPermits].
func (s *FairSemaphore) TrySetPermits(ctx context.Context, n int) (set bool, err error) {
	return s.pool().trySet(ctx, n)
}

// SetPermits is like [Semaphore.SetPermits]. A waiter for more than the new total is refused with [ErrPermits].
func (s *FairSemaphore) SetPermits(ctx context.Context, n int) error { return s.pool().replace(ctx, n) }

// AddPermits is like [Semaphore.AddPermits].
func (s *FairSemaphore) AddPermits(ctx context.Context, n int) (total int, err error) {
	return s.pool().add(ctx, n)
}

// State is like [Semaphore.State].
func (s *FairSemaphore) State(ctx context.Context) (SemaphoreState, error) {
	return s.pool().state(ctx)
}

// ForceRelease is like [PermitSemaphore.ForceRelease].
func (s *FairSemaphore) ForceRelease(ctx context.Context, ids ...string) (permits int, err error) {
	return s.pool().force(ctx, ids)
}

// Acquire waits for its turn, and until n permits are free, and takes them all at once; n is at most 10,000. When ctx
// ends, it leaves the queue. Errors are those of [Semaphore.Acquire]; after [ErrUnknown], a waiter may also stay in the
// queue until it is skipped after three heartbeats.
func (s *FairSemaphore) Acquire(ctx context.Context, n int, opts ...Option) (*Permits, error) {
	return s.pool().acquire(ctx, n, maxLeased, true, opts)
}

// TryAcquire takes n permits if they are free now and nobody waits: its error is [ErrQueued] if enough are free
// but others wait.
func (s *FairSemaphore) TryAcquire(ctx context.Context, n int, opts ...Option) (*Permits, error) {
	return s.pool().acquire(ctx, n, maxLeased, false, opts)
}

// Drain is like [PermitSemaphore.Drain], if nobody waits: its error is [ErrQueued] if permits are free but others wait.
func (s *FairSemaphore) Drain(ctx context.Context, opts ...Option) (*Permits, error) {
	return s.pool().drain(ctx, maxLeased, opts)
}

// Permits is like [Semaphore.Permits].
func (s *FairSemaphore) Permits(n int) AnyLock { return &somePermits{s.pool(), n, maxLeased} }

// Do calls work with n permits, as [Mutex.Do].
func (s *FairSemaphore) Do(ctx context.Context, n int, work func(ctx context.Context) error, opts ...Option) error {
	return s.pool().do(ctx, n, maxLeased, work, opts)
}
