package etcd

import (
	"context"
	"errors"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/lock/locktest"
)

// TestConformance: every kind of lock does what package locktest expects of one, where its faults do not need Redis.
func TestConformance(t *testing.T) {
	for name, acquire := range map[string]acquireFunc{
		"mutex": func(ctx context.Context, c *Client, name, owner string, wait bool) (*Hold, error) {
			return c.Mutex(name).queue.acquire(ctx, owner, wait)
		},
		"writer": func(ctx context.Context, c *Client, name, owner string, wait bool) (*Hold, error) {
			return c.RW(name).Write().queue.acquire(ctx, owner, wait)
		},
		"semaphore": func(ctx context.Context, c *Client, name, owner string, wait bool) (*Hold, error) {
			return c.Semaphore(name, 3).acquire(ctx, owner, 3, wait)
		},
		"multi": func(ctx context.Context, c *Client, name, owner string, wait bool) (*Hold, error) {
			if name == "" {
				return c.Multi(name).queue.acquire(ctx, owner, wait)
			}
			return c.Multi(name, name+"-2").queue.acquire(ctx, owner, wait)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "mutex" {
				t.Skip("SKIPPED with -short")
			}
			locktest.Run(t, locktest.Spec{
				Servers: func(t testing.TB) locktest.Servers { return &conformanceServers{startServer(t)} },
				Open: func(t testing.TB, addrs []string) locktest.Locker {
					etcd := connect(t, addrs[0])
					return &conformanceLocker{open(t, etcd, Options{}), sync.OnceValue(etcd.Close), acquire}
				},
				AlwaysRenews: true, ErrHeld: lock.ErrHeld, ErrLost: lock.ErrLost, Fenced: true, WakeWithin: testTimeout,
			})
		})
	}
}

type acquireFunc func(ctx context.Context, c *Client, name, owner string, wait bool) (*Hold, error)

// conformanceLocker is one kind of lock. Its lease is that of the client, so those of requests are ignored.
type conformanceLocker struct {
	*Client
	disconnect func() error
	acquire    acquireFunc
}

// Close ends the lease and closes the connection.
func (l *conformanceLocker) Close(ctx context.Context) error {
	return errors.Join(l.Client.Close(ctx), l.disconnect())
}

func (l *conformanceLocker) Acquire(
	ctx context.Context, name string, o locktest.AcquireOptions,
) (locktest.Hold, error) {
	return asHold(l.acquire(ctx, l.Client, name, o.Owner, true))
}

func (l *conformanceLocker) TryAcquire(
	ctx context.Context, name string, o locktest.AcquireOptions,
) (locktest.Hold, error) {
	return asHold(l.acquire(ctx, l.Client, name, o.Owner, false))
}

func asHold(h *Hold, err error) (locktest.Hold, error) {
	if err != nil {
		return nil, err
	}
	return h, nil
}

// conformanceServers is a server behind a relay.
type conformanceServers struct{ *server }

func (s *conformanceServers) Addrs() []string { return []string{s.relay.Addr} }
func (s *conformanceServers) Requests() int64 { return s.relay.Sent.Load() }
func (s *conformanceServers) Conns() int      { return int(s.relay.Open.Load()) }

// Left are the keys of locks.
func (s *conformanceServers) Left(t testing.TB) (all []string) {
	t.Helper()
	found, err := s.admin.Get(t.Context(), defaultRoot+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		all = append(all, string(kv.Key))
	}
	return all
}
