package locktest

import (
	"context"
	"slices"
	"strings"
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

// kindOf is a kind of lock with holds of type H.
type kindOf[H Hold] interface {
	Acquire(ctx context.Context, opts ...lock.Option) (H, error)
	TryAcquire(ctx context.Context, opts ...lock.Option) (H, error)
}

// fencedKind is a kind of lock whose holds have tokens.
type fencedKind = kindOf[*lock.FencedHold]

func holds(of func(c *lock.Client, name string) fencedKind, opts ...lock.Option) acquirer {
	return func(ctx context.Context, c *lock.Client, name string, o AcquireOptions, wait bool) (Hold, error) {
		h, err := acquireFrom(ctx, of(c, name), o, wait, opts)
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

func acquireFrom[H any](ctx context.Context, l interface {
	Acquire(ctx context.Context, opts ...lock.Option) (H, error)
	TryAcquire(ctx context.Context, opts ...lock.Option) (H, error)
}, o AcquireOptions, wait bool, opts []lock.Option) (H, error) {
	acquire := l.TryAcquire
	if wait {
		acquire = l.Acquire
	}
	return acquire(ctx, slices.Concat(opts, []lock.Option{lock.WithOwner(o.Owner), lock.WithLease(o.Lease)})...)
}

// plainHold is a hold without a token.
type plainHold struct{ *lock.Hold }

func (plainHold) Token() int64 { return 0 }

// plainMutex acquires a mutex that mints no tokens.
func plainMutex(ctx context.Context, c *lock.Client, name string, o AcquireOptions, wait bool) (Hold, error) {
	h, err := acquireFrom(ctx, c.Mutex(name), o, wait, []lock.Option{lock.WithReentry()})
	if err != nil {
		return nil, err
	}
	return plainHold{h}, nil
}

// multiHold is a hold of several locks; its token is the first one's.
type multiHold struct {
	*lock.MultiHold
	name string
}

func (h multiHold) Token() int64 {
	token, _ := h.MultiHold.Token(h.name)
	return token
}

// multi acquires two mutexes.
func multi(opts ...lock.Option) acquirer {
	return func(ctx context.Context, c *lock.Client, name string, o AcquireOptions, wait bool) (Hold, error) {
		second := "{" + name + "}:second"
		if strings.Contains(name, "{") { // it has a hash tag already
			second = name + ":second"
		}
		opts := append([]lock.Option{lock.WithReentry()}, opts...)
		return acquireParts(ctx, name, o, wait, opts, c.FencedMutex(name), c.FencedMutex(second))
	}
}

// acquireParts acquires several locks as one, of which the first has the name.
func acquireParts(ctx context.Context, name string, o AcquireOptions, wait bool, opts []lock.Option,
	parts ...lock.AnyLock) (Hold, error) {
	m, err := lock.Multi(parts...)
	if err != nil {
		return nil, err
	}
	h, err := acquireFrom(ctx, m, o, wait, opts)
	if err != nil {
		return nil, err
	}
	return multiHold{h, name}, nil
}

// multiKinds acquires one lock of each kind.
func multiKinds(ctx context.Context, c *lock.Client, name string, o AcquireOptions, wait bool) (Hold, error) {
	second, third := "{"+name+"}:second", "{"+name+"}:third"
	return acquireParts(ctx, name, o, wait, []lock.Option{lock.WithReentry()},
		c.FencedMutex(name), c.FairMutex(second), c.RW(third).Write())
}

// multiPermits acquires a mutex and the only permits of two semaphores.
func multiPermits(ctx context.Context, c *lock.Client, name string, o AcquireOptions, wait bool) (Hold, error) {
	second, third := "{"+name+"}:second", "{"+name+"}:third"
	return acquireParts(ctx, name, o, wait, nil, c.FencedMutex(name),
		c.PermitSemaphore(second, lock.WithTotal(1)).Permits(1), c.FairSemaphore(third, lock.WithTotal(2)).Permits(2))
}

// permits is a hold of permits, which have no token.
type permits struct{ *lock.Permits }

func (permits) Token() int64 { return 0 }

// onlyPermit acquires the only permit of a semaphore.
func onlyPermit[S interface {
	Acquire(ctx context.Context, n int, opts ...lock.Option) (*lock.Permits, error)
	TryAcquire(ctx context.Context, n int, opts ...lock.Option) (*lock.Permits, error)
}](of func(c *lock.Client, name string, opts ...lock.Option) S, leased bool) acquirer {
	return func(ctx context.Context, c *lock.Client, name string, o AcquireOptions, wait bool) (Hold, error) {
		opts := []lock.Option{lock.WithTotal(1)}
		if leased {
			opts = append(opts, lock.WithLease(o.Lease))
		}
		s := of(c, name, opts...)
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
}

// ownLease is the default lease of the clients under test.
const ownLease = 4 * time.Second

// options are the options of the clients under test.
func options(layout lock.Layout) lock.Options {
	return lock.Options{
		Lease: ownLease, PollMax: 2 * time.Second, Timeout: 10 * time.Second, NodeTimeout: 3 * time.Second,
		Layout: layout,
	}
}

// opener connects a client of package lock to servers of kind.
func opener(kind Topology, layout lock.Layout, acquire acquirer) func(testing.TB, []string) Locker {
	return func(t testing.TB, addrs []string) Locker {
		conns := connect(t, kind, addrs)
		l, err := on(kind, options(layout), acquire)(conns...)
		if err != nil {
			t.Fatal(err)
		}
		return &closing{Locker: l, conns: conns}
	}
}

// on makes a client of package lock on clients of the user.
func on(kind Topology, o lock.Options, acquire acquirer) func(...redis.UniversalClient) (Locker, error) {
	return func(rdbs ...redis.UniversalClient) (Locker, error) {
		var c *lock.Client
		var err error
		if kind == Quorum {
			c, err = lock.NewQuorum(o, rdbs...)
		} else {
			c, err = lock.New(rdbs[0], o)
		}
		return libraryLocker{c, acquire}, err
	}
}

// onObserved is on for one client whose events report that no server replies.
func onObserved(o lock.Options, acquire acquirer) func(redis.UniversalClient, func()) (Locker, error) {
	return func(rdb redis.UniversalClient, unreachable func()) (Locker, error) {
		o.Observe = func(e lock.Event) {
			if e.Kind == lock.Unreachable {
				unreachable()
			}
		}
		return on(Single, o, acquire)(rdb)
	}
}

func guard(ctx context.Context, rdb redis.UniversalClient, token int64, script, key string) error {
	_, err := lock.NewRedisFence(rdb, "{"+key+"}:guard").Run(ctx, token, script, []string{key})
	return err
}

func connect(t testing.TB, kind Topology, addrs []string) []redis.UniversalClient {
	t.Helper()
	limit := 3 * time.Second
	if kind == Cluster {
		limit = prompt/2 + time.Second // a wait for a hanging master exceeds the limit for a healthy one
	}
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
