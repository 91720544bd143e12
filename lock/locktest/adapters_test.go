package locktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// acquirer asks c for one kind of lock.
type acquirer func(ctx context.Context, c *lock.Client, name string, o Ask, wait bool) (Hold, error)

// program is package lock behind the suite's words, whatever the kind.
type program struct {
	client  *lock.Client
	acquire acquirer
}

func (p program) Acquire(ctx context.Context, name string, o Ask) (Hold, error) {
	return p.acquire(ctx, p.client, name, o, true)
}

func (p program) TryAcquire(ctx context.Context, name string, o Ask) (Hold, error) {
	return p.acquire(ctx, p.client, name, o, false)
}

func (p program) Close(ctx context.Context) error { return p.client.Close(ctx) }

// taker is a kind of lock that gives out holds.
type taker interface {
	Acquire(ctx context.Context, o lock.AcquireOptions) (*lock.Hold, error)
	TryAcquire(ctx context.Context, o lock.AcquireOptions) (*lock.Hold, error)
}

func takes(of func(c *lock.Client, name string) taker) acquirer {
	return func(ctx context.Context, c *lock.Client, name string, o Ask, wait bool) (Hold, error) {
		take := of(c, name).TryAcquire
		if wait {
			take = of(c, name).Acquire
		}
		h, err := take(ctx, lock.AcquireOptions{Owner: o.Owner, Lease: o.Lease})
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

// sole is the mutex that its owner holds once.
func sole(ctx context.Context, c *lock.Client, name string, o Ask, wait bool) (Hold, error) {
	take := c.Mutex(name).TryAcquire
	if wait {
		take = c.Mutex(name).Acquire
	}
	h, err := take(ctx, lock.AcquireOptions{Owner: o.Owner, Lease: o.Lease, NonReentrant: true})
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

func several(ctx context.Context, c *lock.Client, name string, o Ask, wait bool) (Hold, error) {
	m, err := c.Multi(name, "{"+name+"}:second")
	if err != nil {
		return nil, err
	}
	take := m.TryAcquire
	if wait {
		take = m.Acquire
	}
	h, err := take(ctx, lock.MultiOptions{Owner: o.Owner, Lease: o.Lease})
	if err != nil {
		return nil, err
	}
	return multiHold{h, name}, nil
}

// permits is a hold of permits, which have no token.
type permits struct{ *lock.Permits }

func (permits) Token() uint64 { return 0 }

// A semaphore of one permit is a mutex; whoever comes first sets it up.
func permit(ctx context.Context, c *lock.Client, name string, _ Ask, wait bool) (Hold, error) {
	s := c.Semaphore(name)
	if _, err := s.TrySetPermits(ctx, 1); err != nil {
		return nil, err
	}
	take := s.TryAcquire
	if wait {
		take = s.Acquire
	}
	p, err := take(ctx, 1)
	if err != nil {
		return nil, err
	}
	return permits{p}, nil
}

func leasedPermit(ctx context.Context, c *lock.Client, name string, o Ask, wait bool) (Hold, error) {
	s := c.PermitSemaphore(name)
	if _, err := s.TrySetPermits(ctx, 1); err != nil {
		return nil, err
	}
	take := s.TryAcquire
	if wait {
		take = s.Acquire
	}
	p, err := take(ctx, 1, lock.PermitOptions{Lease: o.Lease})
	if err != nil {
		return nil, err
	}
	return permits{p}, nil
}

// ownLease is what the clients under test give to holds that ask for none.
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
		return &closing{Locker: program{c, acquire}, conns: conns}
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

// closing closes the connections with the Locker.
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
