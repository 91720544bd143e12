package sessiontest

import (
	"context"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock"
)

// Conformance runs the tests of package locktest on every kind of lock, where its faults do not need Redis. With -short
// it tests only the mutex.
func Conformance(t *testing.T, start func(testing.TB) *Proxied) {
	for kind, lockOf := range map[string]func(c Client, name string) Lock{
		"mutex":     func(c Client, name string) Lock { return c.Mutex(name) },
		"writer":    func(c Client, name string) Lock { return c.Writer(name) },
		"semaphore": func(c Client, name string) Lock { return c.Permits(name, 3, 3) },
		"multi": func(c Client, name string) Lock {
			if name == "" {
				return c.Multi(name)
			}
			return c.Multi(name, name+"-2")
		},
	} {
		t.Run(kind, func(t *testing.T) {
			if testing.Short() && kind != "mutex" {
				t.Skip("SKIPPED with -short")
			}
			var s *Proxied
			locktest.Run(t, locktest.Spec{
				Servers: func(t testing.TB) locktest.Servers {
					s = start(t)
					return servers{s}
				},
				Open: func(t testing.TB, addrs []string) locktest.Locker {
					return locker{s.Open(t, addrs[0], Options{}), lockOf}
				},
				AlwaysRenews: true, ErrHeld: lock.ErrHeld, ErrLost: lock.ErrLost, Fenced: true, WakeWithin: Timeout,
			})
		})
	}
}

// locker is one kind of lock. Its lease is the client's, so the leases of requests are ignored.
type locker struct {
	client Client
	lockOf func(c Client, name string) Lock
}

func (l locker) Close(ctx context.Context) error { return l.client.Close(ctx) }

func (l locker) Acquire(ctx context.Context, name string, o locktest.AcquireOptions) (locktest.Hold, error) {
	return l.lockOf(l.client, name).Acquire(ctx, o.Owner)
}

func (l locker) TryAcquire(ctx context.Context, name string, o locktest.AcquireOptions) (locktest.Hold, error) {
	return l.lockOf(l.client, name).TryAcquire(ctx, o.Owner)
}

// servers is a server behind a proxy.
type servers struct{ *Proxied }

func (s servers) Addrs() []string { return []string{s.Proxy.Addr} }
func (s servers) Requests() int64 { return s.Proxy.Sent() }
func (s servers) Conns() int      { return s.Proxy.Conns() }

// Left are the entries of locks.
func (s servers) Left(t testing.TB) []string {
	t.Helper()
	all, err := s.Entries(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return all
}
