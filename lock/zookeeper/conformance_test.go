package zookeeper

import (
	"context"
	"testing"
	"time"

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
					c, err := Open(addrs, Options{Session: longSession, Timeout: testTimeout})
					if err != nil {
						t.Fatal(err)
					}
					return &conformanceLocker{c, acquire}
				},
				AlwaysRenews: true, ErrHeld: lock.ErrHeld, ErrLost: lock.ErrLost, Fenced: true, WakeWithin: testTimeout,
			})
		})
	}
}

type acquireFunc func(ctx context.Context, c *Client, name, owner string, wait bool) (*Hold, error)

// conformanceLocker is one kind of lock. Leases are sessions, so those of requests are ignored.
type conformanceLocker struct {
	*Client
	acquire acquireFunc
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

// Left are the nodes below those of the locks, which are containers and stay for a while.
func (s *conformanceServers) Left(t testing.TB) (all []string) {
	t.Helper()
	locks, _, err := s.admin.Children(defaultRoot)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range locks {
		nodes, _, _ := s.admin.Children(defaultRoot + "/" + name) // it may be gone
		for _, node := range nodes {
			all = append(all, name+"/"+node)
		}
	}
	return all
}

// TestRenewed: a hold outlasts its session timeout, because its client renews the session.
func TestRenewed(t *testing.T) {
	s := startServer(t)
	renewed := make(chan time.Time, 1)
	c := s.client(t, Options{Session: shortSession, OnRenewed: func(h *Hold) {
		select {
		case renewed <- h.Deadline():
		default:
		}
	}})
	h := acquire(t, c.Mutex("orders"), "a")
	first := h.Deadline()
	for later := range renewed {
		if later.After(first.Add(shortSession)) {
			break
		}
	}
	if err := h.Err(); err != nil {
		t.Errorf("the hold has ended: %v", err)
	}
	release(t, h)
}
