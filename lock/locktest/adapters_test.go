package locktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// acquirer acquires one kind of lock.
type acquirer func(ctx context.Context, c *lock.Client, name string, o AcquireOptions, wait bool) (Hold, error)

// libraryLocker is a [Locker] on package lock.
type libraryLocker struct {
	client  *lock.Client
	acquire acquirer
}

func (p libraryLocker) Acquire(ctx context.Context, name string, o AcquireOptions) (Hold, error) {
	return p.acquire(ctx, p.client, name, o, true)
}

func (p libraryLocker) TryAcquire(ctx context.Context, name string, o AcquireOptions) (Hold, error) {
	return p.acquire(ctx, p.client, name, o, false)
}

func (p libraryLocker) Close(ctx context.Context) error { return p.client.Close(ctx) }

// holdLock is a kind of lock with holds of type lock.Hold.
type holdLock interface {
	Acquire(ctx context.Context, o lock.AcquireOptions) (*lock.Hold, error)
	TryAcquire(ctx context.Context, o lock.AcquireOptions) (*lock.Hold, error)
}

func holds(of func(c *lock.Client, name string) holdLock) acquirer {
	return func(ctx context.Context, c *lock.Client, name string, o AcquireOptions, wait bool) (Hold, error) {
		acquire := of(c, name).TryAcquire
		if wait {
			acquire = of(c, name).Acquire
		}
		h, err := acquire(ctx, lock.AcquireOptions{Owner: o.Owner, Lease: o.Lease})
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

// nonReentrant acquires the mutex that its owner cannot re-enter.
func nonReentrant(ctx context.Context, c *lock.Client, name string, o AcquireOptions, wait bool) (Hold, error) {
	acquire := c.Mutex(name).TryAcquire
	if wait {
		acquire = c.Mutex(name).Acquire
	}
	h, err := acquire(ctx, lock.AcquireOptions{Owner: o.Owner, Lease: o.Lease, NonReentrant: true})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// multiHold is a hold of several locks; its token is that of the first.
type multiHold struct {
	*lock.MultiHold
	name string
}

func (h multiHold) Token() uint64 { return h.MultiHold.Token(h.name) }

func multi(ctx context.Context, c *lock.Client, name string, o AcquireOptions, wait bool) (Hold, error) {
	m, err := c.Multi(name, "{"+name+"}:second")
	if err != nil {
		return nil, err
	}
	acquire := m.TryAcquire
	if wait {
		acquire = m.Acquire
	}
	h, err := acquire(ctx, lock.MultiOptions{Owner: o.Owner, Lease: o.Lease})
	if err != nil {
		return nil, err
	}
	return multiHold{h, name}, nil
}

// permits is a hold of permits, which have no token.
type permits struct{ *lock.Permits }

func (permits) Token() uint64 { return 0 }

// semaphore acquires the only permit of a semaphore, which it creates if it is absent.
func semaphore(ctx context.Context, c *lock.Client, name string, _ AcquireOptions, wait bool) (Hold, error) {
	s := c.Semaphore(name)
	if _, err := s.TrySetPermits(ctx, 1); err != nil {
		return nil, err
	}
	acquire := s.TryAcquire
	if wait {
		acquire = s.Acquire
	}
	p, err := acquire(ctx, 1)
	if err != nil {
		return nil, err
	}
	return permits{p}, nil
}

func leasedSemaphore(ctx context.Context, c *lock.Client, name string, o AcquireOptions, wait bool) (Hold, error) {
	s := c.PermitSemaphore(name)
	if _, err := s.TrySetPermits(ctx, 1); err != nil {
		return nil, err
	}
	acquire := s.TryAcquire
	if wait {
		acquire = s.Acquire
	}
	p, err := acquire(ctx, 1, lock.PermitOptions{Lease: o.Lease})
	if err != nil {
		return nil, err
	}
	return permits{p}, nil
}

// ownLease is the default lease of the clients under test.
const ownLease = 4 * time.Second

// opener connects a client of package lock to servers of kind.
func opener(kind Topology, acquire acquirer) func(testing.TB, []string) Locker {
	return func(t testing.TB, addrs []string) Locker {
		o := lock.Options{
			Lease: ownLease, PollMax: 2 * time.Second, Timeout: 10 * time.Second, NodeTimeout: time.Second, Tokens: true,
		}
		conns := connect(t, kind, addrs)
		var c *lock.Client
		var err error
		if kind == Quorum {
			c, err = lock.NewQuorum(conns, o)
		} else {
			c, err = lock.New(conns[0], o)
		}
		if err != nil {
			t.Fatal(err)
		}
		return &closing{Locker: libraryLocker{c, acquire}, conns: conns}
	}
}

func connect(t testing.TB, kind Topology, addrs []string) []redis.UniversalClient {
	t.Helper()
	const limit = 2 * time.Second
	switch kind {
	case Sentinel:
		return []redis.UniversalClient{redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "m", SentinelAddrs: addrs, DialTimeout: limit, ReadTimeout: limit,
		})}
	case Cluster:
		return []redis.UniversalClient{redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: addrs, DialTimeout: limit, ReadTimeout: limit,
		})}
	}
	var all []redis.UniversalClient
	for _, addr := range addrs {
		all = append(all, redis.NewClient(&redis.Options{Addr: addr, DialTimeout: limit, ReadTimeout: limit}))
	}
	return all
}

// closing is a Locker that closes its connections as well.
type closing struct {
	Locker
	conns []redis.UniversalClient
	once  sync.Once
}

func (c *closing) Close(ctx context.Context) error {
	err := c.Locker.Close(ctx)
	c.once.Do(func() {
		for _, rdb := range c.conns {
			_ = rdb.Close()
		}
	})
	return err
}
