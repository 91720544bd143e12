package lock

import "context"

// Semaphore limits how many permits are held at a time. Its holds have no lease: the permits of a crashed holder stay
// held until [Semaphore.ForceRelease] ([Semaphore.State] lists them; redisson#2045, redisson#4462). If that is not
// acceptable, use a [PermitSemaphore]. Permits whose release is lost in a failover stay held too, because only grants
// wait for replicas. It is not fair: a waiter for few permits may pass one for many. It is kept on one master. Several
// goroutines may use it.
//
// A semaphore named pool is the hash pool, in which free + the sum of all h: is
// always total:
//
//	kind      "semaphore"
//	total     permits there are; it has no expiry
//	free      permits that are not held; negative after the total was lowered below what is held
//	h:<hold>  permits of one hold
//	          and, after the slot of a cluster has migrated, replies to requests, until they expire
//
//	{pool}:tombstone:<id>  short-lived: the reply to a request, in case it arrives again
//	{pool}:free            the channel that publishes how many permits are free, as "+n"
type Semaphore struct{ named }

// Semaphore is the semaphore of that name; [WithTotal] sets how many permits it has. It sends no request and needs no
// closing.
func (c *Client) Semaphore(name string, opts ...Option) *Semaphore {
	return &Semaphore{c.named(name, opts)}
}

func (s *Semaphore) pool() pool { return pool{s.named, s.client.semaphores} }

// TrySetPermits sets up a semaphore of n permits, unless it exists: then it is left
// as it is, even if no permit is free (redisson#4678), and set is false. n may be 0.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int) (set bool, err error) {
	return s.pool().trySet(ctx, n)
}

// SetPermits sets the total to n, which may be 0. Permits that are held stay held, even if they are more than n: then
// none is granted until enough have been released.
func (s *Semaphore) SetPermits(ctx context.Context, n int) error { return s.pool().replace(ctx, n) }

// AddPermits adds n to the total, or removes permits if n is negative, and returns
// the new total. Its error is [ErrPermits] if that is negative, and [ErrAbsent] if
// the semaphore does not exist.
func (s *Semaphore) AddPermits(ctx context.Context, n int) (total int, err error) {
	return s.pool().add(ctx, n)
}

// State returns the permits of the semaphore and their holders; [ErrAbsent] if it does not exist.
func (s *Semaphore) State(ctx context.Context) (SemaphoreState, error) { return s.pool().state(ctx) }

// ForceRelease releases holds by their ids, regardless of their owner, and returns how many permits these had. The
// holders learn of it when they release: [ErrLost].
func (s *Semaphore) ForceRelease(ctx context.Context, ids ...string) (permits int, err error) {
	return s.pool().force(ctx, ids)
}

// Acquire waits until n permits are free and takes them all at once. Its error is [ErrNoPermits] if ctx ended before,
// [ErrPermits] if n is less than one or more than the total, [ErrAbsent] if the semaphore does not exist, and
// [ErrUnknown] if permits may have been taken and could not be released.
func (s *Semaphore) Acquire(ctx context.Context, n int, opts ...Option) (*Permits, error) {
	return s.pool().acquire(ctx, n, maxCount, true, opts)
}

// TryAcquire takes n permits if they are free now. Errors are those of Acquire.
func (s *Semaphore) TryAcquire(ctx context.Context, n int, opts ...Option) (*Permits, error) {
	return s.pool().acquire(ctx, n, maxCount, false, opts)
}

// Drain takes all free permits, at least one. Its error is [ErrHeld] if none is free, else that of Acquire. It first
// asks how many are free and then takes as many: permits that are released in between stay free.
func (s *Semaphore) Drain(ctx context.Context, opts ...Option) (*Permits, error) {
	return s.pool().drain(ctx, maxCount, opts)
}

// Permits is n permits as one of the locks of [Multi]. The semaphore may have [WithTotal], and no other options.
func (s *Semaphore) Permits(n int) AnyLock { return &somePermits{s.pool(), n, maxCount} }

// Do calls work with n permits, as [Mutex.Do].
func (s *Semaphore) Do(ctx context.Context, n int, work func(ctx context.Context) error, opts ...Option) error {
	return s.pool().do(ctx, n, maxCount, work, opts)
}

// PermitSemaphore is a semaphore whose permits are leased: those of a crashed holder become free when the lease
// expires, by the server's clock. Each permit has an id, which may be passed to another process for it to release. It
// is not fair and is kept on one master, as [Semaphore]. Several goroutines may use it.
//
// A semaphore named pool is the hash pool, in which free + the size of the sorted
// set is always total, but not while its slot migrates:
//
//	kind   "permits"
//	total  permits there are; it has no expiry
//	free   permits that are not held, except for those that have expired and were not yet taken back
//	       and, if it was set up while the slot of a cluster migrated, the reply to that, until it expires
//
//	{pool}:permits         sorted set: each permit that is held, and when it expires, in ms of the server's clock;
//	                       it expires with the last of them
//	{pool}:tombstone:<id>  short-lived: the reply to a request, in case it arrives again
//	{pool}:free            the channel that publishes how many permits are free, as "+n"
type PermitSemaphore struct{ named }

// PermitSemaphore is the semaphore with leases of that name; [WithTotal] sets how many permits it has. It sends no
// request and needs no closing.
func (c *Client) PermitSemaphore(name string, opts ...Option) *PermitSemaphore {
	return &PermitSemaphore{c.named(name, opts)}
}

// maxLeased is how many permits one acquire may take: each has an id of its own.
const maxLeased = 10000

func (s *PermitSemaphore) pool() pool { return pool{s.named, s.client.permits} }

// TrySetPermits is like [Semaphore.TrySetPermits].
func (s *PermitSemaphore) TrySetPermits(ctx context.Context, n int) (set bool, err error) {
	return s.pool().trySet(ctx, n)
}

// SetPermits is like [Semaphore.SetPermits].
func (s *PermitSemaphore) SetPermits(ctx context.Context, n int) error {
	return s.pool().replace(ctx, n)
}

// AddPermits is like [Semaphore.AddPermits].
func (s *PermitSemaphore) AddPermits(ctx context.Context, n int) (total int, err error) {
	return s.pool().add(ctx, n)
}

// State is like [Semaphore.State].
func (s *PermitSemaphore) State(ctx context.Context) (SemaphoreState, error) {
	return s.pool().state(ctx)
}

// ForceRelease releases permits by their ids, regardless of their holder, and returns how
// many of them were held.
func (s *PermitSemaphore) ForceRelease(ctx context.Context, ids ...string) (permits int, err error) {
	return s.pool().force(ctx, ids)
}

// Acquire waits until n permits are free and takes them all at once; n is at
// most 10,000. Errors are those of [Semaphore.Acquire].
func (s *PermitSemaphore) Acquire(ctx context.Context, n int, opts ...Option) (*Permits, error) {
	return s.pool().acquire(ctx, n, maxLeased, true, opts)
}

// TryAcquire takes n permits if they are free now. Errors are those of Acquire.
func (s *PermitSemaphore) TryAcquire(ctx context.Context, n int, opts ...Option) (*Permits, error) {
	return s.pool().acquire(ctx, n, maxLeased, false, opts)
}

// Drain is like [Semaphore.Drain]; it takes at most 10,000 permits.
func (s *PermitSemaphore) Drain(ctx context.Context, opts ...Option) (*Permits, error) {
	return s.pool().drain(ctx, maxLeased, opts)
}

// Permits is like [Semaphore.Permits].
func (s *PermitSemaphore) Permits(n int) AnyLock { return &somePermits{s.pool(), n, maxLeased} }

// Do calls work with n permits, as [Mutex.Do].
func (s *PermitSemaphore) Do(ctx context.Context, n int, work func(ctx context.Context) error,
	opts ...Option) error {
	return s.pool().do(ctx, n, maxLeased, work, opts)
}
