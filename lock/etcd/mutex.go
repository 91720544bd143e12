package etcd

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/lock/internal/queues"
)

// Mutex is a lock that one owner holds at a time, first come, first served. Several goroutines may use it: each Acquire
// is an owner of its own. It is not reentrant.
type Mutex struct{ queue queue }

// Mutex returns the lock of that name: the keys that begin with Options.Root/name//. The name must have no slash.
func (c *Client) Mutex(name string) *Mutex {
	return &Mutex{queue{c, []string{name}, queues.Exclusive(), 0}}
}

// Acquire waits for the lock until ctx ends. Its error is [lock.ErrHeld] if others had the lock all the time,
// [lock.ErrClosed], the error of the servers, or [lock.ErrUnknown] if it was not certain in time that the key of the
// acquire is gone: then the key is removed in the background, or ends with the lease. The context of the hold is a
// child of ctx. owner is stored as the value of the key, for people and tools; it may be empty.
func (m *Mutex) Acquire(ctx context.Context, owner string) (*Hold, error) {
	return m.queue.acquire(ctx, owner, true)
}

// TryAcquire takes the lock if it is free now. It may be refused because of another TryAcquire, which has a place in
// the queue until it is refused itself. Errors are as of Acquire.
func (m *Mutex) TryAcquire(ctx context.Context, owner string) (*Hold, error) {
	return m.queue.acquire(ctx, owner, false)
}

// RW is a readers-writer lock, first come, first served: a reader waits for earlier writers, a writer for everyone
// before it. So neither starves. It is not reentrant: a reader that waits to write waits for itself.
type RW struct {
	client *Client
	name   string
}

// RW returns the readers-writer lock of that name. A [Mutex] of the same name is a writer.
func (c *Client) RW(name string) *RW { return &RW{c, name} }

// Read returns the side of the readers, which hold the lock together. Their tokens do not order them.
func (l *RW) Read() *Mutex { return &Mutex{queue{l.client, []string{l.name}, queues.Shared(), 0}} }

// Write returns the side of the writers.
func (l *RW) Write() *Mutex { return l.client.Mutex(l.name) }

// Multi returns a lock of several names, which is held when all of them are. A request enters all queues by one
// transaction, so requests cannot deadlock, whatever the order of their names, and a failed request has held either
// all locks or none. A name that is given twice counts once. A transaction of etcd has at most 128 operations (its
// option max-txn-ops), and one request makes two for each name.
func (c *Client) Multi(first string, more ...string) *Mutex {
	return &Mutex{queue{c, queues.Names(first, more), queues.Exclusive(), 0}}
}

// Semaphore is a number of permits, first come, first served: a small request does not overtake a large one. The
// permits of a request are granted together or not at all, so requests for several cannot deadlock, as they can where
// each permit is a lock of its own.
type Semaphore struct {
	client *Client
	name   string
	total  int
}

// Semaphore returns the semaphore of that name. Every client must give it the same total.
func (c *Client) Semaphore(name string, total int) *Semaphore { return &Semaphore{c, name, total} }

// Acquire waits for n permits until ctx ends. Its error is [lock.ErrPermits] if there are not so many in total;
// otherwise as [Mutex.Acquire].
func (s *Semaphore) Acquire(ctx context.Context, owner string, n int) (*Hold, error) {
	return s.acquire(ctx, owner, n, true)
}

// TryAcquire takes n permits if they are free now, and nobody waits.
func (s *Semaphore) TryAcquire(ctx context.Context, owner string, n int) (*Hold, error) {
	return s.acquire(ctx, owner, n, false)
}

func (s *Semaphore) acquire(ctx context.Context, owner string, n int, wait bool) (*Hold, error) {
	if err := queues.CheckPermits(n, s.total); err != nil {
		return nil, fmt.Errorf("acquire permits of %q: %w", s.name, err)
	}
	q := queue{s.client, []string{s.name}, queues.Permits(n, s.total), n}
	return q.acquire(ctx, owner, wait)
}
