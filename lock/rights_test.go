package lock

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// limitedClient is a client whose user has rights for some keys and channels only, and how often its waiters were
// refused a subscription.
func limitedClient(t *testing.T, s *server, o Options, rights ...any) (*Client, *atomic.Int32) {
	t.Helper()
	rules := append([]any{"ACL", "SETUSER", "app", "on", ">secret", "+@all", "resetkeys", "resetchannels"}, rights...)
	if err := s.Dial(t).Do(context.Background(), rules...).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, Username: "app", Password: "secret"})
	t.Cleanup(func() { _ = rdb.Close() })
	refused := new(atomic.Int32)
	o.Observe = func(e Event) {
		if e.Kind == Polling {
			refused.Add(1)
		}
	}
	return newTestClient(t, rdb, o), refused
}

// acquireFunc acquires a lock and returns its release.
type acquireFunc = func(ctx context.Context) (release func(context.Context) error, err error)

// handOver has one waiter wait for the lock of that name, which is released when it has a subscription.
func handOver(t *testing.T, s *server, name string, acquire acquireFunc) {
	t.Helper()
	ctx, admin := context.Background(), s.Dial(t)
	release, err := acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		release, err := acquire(ctx)
		if err == nil {
			err = release(ctx)
		}
		served <- err
	}()
	eventually(t, testTimeout, "the waiter has subscribed", func() bool {
		return len(admin.PubSubChannels(ctx, "*{"+name+"}*").Val()) > 0
	})
	if err := release(ctx); err != nil {
		t.Error(err)
	}
	if err := within(t, testTimeout, "the waiter is served", served); err != nil {
		t.Error(err)
	}
}

// TestDocumentedRights: the rights that docs/explanation/locks.md names suffice for every kind of lock.
func TestDocumentedRights(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	c, refused := limitedClient(t, s, Options{}, "~lock:*", "~{lock:*", "&{lock:*")
	held := func(h *FencedHold, err error) (func(context.Context) error, error) {
		if err != nil {
			return nil, err
		}
		return h.Release, nil
	}
	permits := func(p *Permits, err error) (func(context.Context) error, error) {
		if err != nil {
			return nil, err
		}
		return p.Release, nil
	}
	for name, acquire := range map[string]acquireFunc{
		"lock:mutex": func(ctx context.Context) (func(context.Context) error, error) {
			return held(c.FencedMutex("lock:mutex").Acquire(ctx))
		},
		"lock:fair": func(ctx context.Context) (func(context.Context) error, error) {
			return held(c.FairMutex("lock:fair").Acquire(ctx))
		},
		"lock:rw": func(ctx context.Context) (func(context.Context) error, error) {
			return held(c.RW("lock:rw").Write().Acquire(ctx))
		},
		"lock:semaphore": func(ctx context.Context) (func(context.Context) error, error) {
			return permits(c.Semaphore("lock:semaphore", WithTotal(1)).Acquire(ctx, 1))
		},
		"lock:permits": func(ctx context.Context) (func(context.Context) error, error) {
			return permits(c.PermitSemaphore("lock:permits", WithTotal(1)).Acquire(ctx, 1))
		},
		"lock:fair-permits": func(ctx context.Context) (func(context.Context) error, error) {
			return permits(c.FairSemaphore("lock:fair-permits", WithTotal(1)).Acquire(ctx, 1))
		},
	} {
		t.Run(name, func(t *testing.T) { handOver(t, s, name, acquire) })
	}
	if n := refused.Load(); n > 0 {
		t.Errorf("%d subscriptions were refused", n)
	}
}

// TestDocumentedRightsOfRedisson is the same in Redisson's layout.
func TestDocumentedRightsOfRedisson(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	c, refused := limitedClient(t, s, Options{Layout: Redisson}, "~lock:*", "~redisson_unlock_latch:{lock:*",
		"~redisson_lock_token:{lock:*", "&redisson_lock__channel:{lock:*")
	handOver(t, s, "lock:orders", func(ctx context.Context) (func(context.Context) error, error) {
		h, err := c.FencedMutex("lock:orders").Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return h.Release, nil
	})
	if n := refused.Load(); n > 0 {
		t.Errorf("%d subscriptions were refused", n)
	}
}
