package lock

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// PermitSemaphore is a semaphore whose permits are leased: those of a holder
// that crashed come back by themselves when the lease is over, by the clock of
// the server. Each permit has an id, which may be handed to another process for it to
// give back. It is not fair and is kept on one master, as [Semaphore]. Several
// goroutines may use it.
//
// A semaphore named pool is the hash pool, in which free + the size of the
// sorted set is always total:
//
//	kind   "permits"
//	total  permits there are; it has no expiry
//	free   permits that nobody has, but for those that are over and not yet taken back
//
//	{pool}:permits     sorted set: each permit that is out, and when it is over, in ms of the server's clock
//	{pool}:tombstone:<id>  short-lived: what was answered to a request, should it come again
//	{pool}:free        the channel that says how many permits are free, as "+n"
type PermitSemaphore struct {
	client *Client
	name   string
}

// PermitSemaphore is the semaphore with leases of that name. It costs nothing and needs no closing.
func (c *Client) PermitSemaphore(name string) *PermitSemaphore {
	return &PermitSemaphore{client: c, name: name}
}

// PermitOptions of one acquire. The zero value is a good start.
type PermitOptions struct {
	// Lease is for how long the permits last unless they are renewed by hand; at
	// least 10 ms. 0 is the client's lease, renewed every third of it.
	Lease time.Duration
}

// maxLeased is how many permits one acquire may take: each has an id of its own.
const maxLeased = 10000

func (s *PermitSemaphore) pool() pool { return pool{s.client, s.name, "permits"} }

// TrySetPermits is as [Semaphore.TrySetPermits].
func (s *PermitSemaphore) TrySetPermits(ctx context.Context, n int) (set bool, err error) {
	return s.pool().try(ctx, n)
}

// SetPermits is as [Semaphore.SetPermits].
func (s *PermitSemaphore) SetPermits(ctx context.Context, n int) error { return s.pool().put(ctx, n) }

// AddPermits is as [Semaphore.AddPermits].
func (s *PermitSemaphore) AddPermits(ctx context.Context, n int) (total int, err error) {
	return s.pool().add(ctx, n)
}

// State is as [Semaphore.State].
func (s *PermitSemaphore) State(ctx context.Context) (SemaphoreState, error) {
	return s.pool().state(ctx)
}

// ForceRelease gives back permits by their ids, whoever they are of, and says
// how many of them were out.
func (s *PermitSemaphore) ForceRelease(ctx context.Context, ids ...string) (permits int, err error) {
	return s.pool().force(ctx, func(ctx context.Context, request string) (int, error) {
		return s.release(ctx, request, ids)
	})
}

// Acquire waits until n permits are free and takes them all at once; n is at
// most 10000. Errors are those of [Semaphore.Acquire].
func (s *PermitSemaphore) Acquire(ctx context.Context, n int, o PermitOptions) (*Permits, error) {
	p, err := s.take(ctx, n, o, s.client.await)
	return p, failed("acquire", "permits", s.name, err)
}

// TryAcquire takes n permits if they are free now. Errors are those of Acquire.
func (s *PermitSemaphore) TryAcquire(ctx context.Context, n int, o PermitOptions) (*Permits, error) {
	p, err := s.take(ctx, n, o, func(ctx context.Context, _ string, ask asker) error { return s.client.now(ctx, ask) })
	return p, failed("try", "permits", s.name, err)
}

func (s *PermitSemaphore) take(ctx context.Context, n int, o PermitOptions, how patience) (*Permits, error) {
	if err := s.client.checkCounted(s.name); err != nil {
		return nil, err
	}
	if err := checkCount(n, 1); err != nil {
		return nil, err
	}
	if n > maxLeased {
		return nil, fmt.Errorf("%w: %d: give at most %d", ErrPermits, n, maxLeased)
	}
	t := &taking{pool: s.pool(), permits: n, lease: o.Lease, auto: o.Lease == 0}
	if t.auto {
		t.lease = s.client.o.Lease
	}
	if err := checkLease(t.lease); err != nil {
		return nil, err
	}
	id := s.client.random.id()
	for i := range n {
		t.ids = append(t.ids, id+"."+strconv.Itoa(i+1))
	}
	s.bind(t, id)
	return t.run(ctx, how)
}

// bind makes t ask for its ids, give them back and renew them.
func (s *PermitSemaphore) bind(t *taking, id string) {
	t.ask = func(ctx context.Context) ([]int64, error) {
		return s.client.keeps(ctx, 3, call{
			script: counted.lease,
			keys: []string{s.name, s.pool().permitsKey(),
				tagged(s.name, "tombstone:"+id), tagged(s.name, "free")},
			args: withIDs(milliseconds(t.lease), t.ids),
		})
	}
	t.back = func(ctx context.Context) (bool, error) {
		n, err := s.release(ctx, id, t.ids)
		return n == len(t.ids), err
	}
	t.renew = func(ctx context.Context, lease time.Duration) (bool, error) {
		got, err := s.client.counts(ctx, 1, call{
			script: counted.renew,
			keys:   []string{s.name, s.pool().permitsKey(), tagged(s.name, "free")},
			args:   withIDs(milliseconds(lease), t.ids),
		})
		return err == nil && got[0] == 1, err
	}
}

func (s *PermitSemaphore) release(ctx context.Context, request string, ids []string) (int, error) {
	got, err := s.client.counts(ctx, 2, call{
		script: counted.giveBack,
		keys: []string{s.name, s.pool().permitsKey(),
			tagged(s.name, "tombstone:"+request), tagged(s.name, "free")},
		args: withIDs(s.client.o.tombstoneTTL(), ids),
	})
	if err != nil {
		return 0, err
	}
	return int(got[0]), nil
}

func withIDs(first int64, ids []string) []any {
	args := make([]any, 0, 1+len(ids))
	args = append(args, first)
	for _, id := range ids {
		args = append(args, id)
	}
	return args
}
