package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// An acquire that arrives after it was undone acquires nothing and does not queue.
// Regression: redisson#5019
func TestLateAcquireOfEachKind(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	for name, s := range map[string]store{"fair": c.fair, "read": c.readers, "write": c.writers} {
		cl := claim{key: name, owner: "o", id: name + "-1", lease: 30000, waiterTTL: 3000}
		if left, err := s.release(ctx, cl); left != codeNotHeld || err != nil {
			t.Fatalf("%s: release of what is not held: %d, %v", name, left, err)
		}
		if _, err := s.acquire(ctx, cl); !errors.Is(err, ErrReleased) {
			t.Errorf("%s: late acquire: %v, want ErrReleased", name, err)
		}
		mustBeRemoved(t, rdb, name)
	}
}

// A retried acquire is promised its lease from then on.
func TestRetriedAcquireOfEachKindKeepsWholeLease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	for name, s := range map[string]store{"fair": c.fair, "read": c.readers, "write": c.writers} {
		cl := claim{key: name, owner: "o", id: name + "-1", lease: 30000}
		for range 2 {
			g, err := s.acquire(ctx, cl)
			if err != nil || !g.ok || g.count != 1 {
				t.Fatalf("%s: acquire: %+v, %v", name, g, err)
			}
			ttl := rdb.PTTL(ctx, name).Val()
			if promised := time.Until(g.sent.Add(validity(30 * time.Second))); ttl < promised {
				t.Errorf("%s: the server keeps the lease for %v, promised %v", name, ttl, promised)
			}
			// As if the first reply had taken so long.
			rdb.PExpire(ctx, name, 5*time.Second)
			rdb.ZAddXX(ctx, tagged(name, "leases"), redis.Z{
				Score: float64((serverTime(t, rdb) + 5*time.Second).Milliseconds()), Member: cl.id,
			})
		}
	}
}

// A preferred writer that waits longer than its first heartbeat lasts still keeps readers
// out.
func TestPreferredWriterWaitsAsLongAsItLikes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{PollMax: maxHeartbeat}) // without one for three times as long it is dead
	r := acquire(t, c.RW("long").Read())
	served := acquireLater(ctx, t, c.RW("long").PreferWriters().Write())
	asleep(t, c, "{long}:write", 1)
	end := serverTime(t, rdb) + 3*maxHeartbeat + time.Second
	eventually(t, testTimeout, "longer than the first heartbeat lasts", func() bool {
		mustBeHeld(t, c.RW("long").Read())
		return serverTime(t, rdb) > end
	})
	release(t, r)
	release(t, within(t, testTimeout, "the writer", served))
}

// Close ends the waiters and holders of every kind.
func TestCloseEndsEachKind(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	for name, kind := range map[string]func(c *Client) fencedTaker{
		"fair":  func(c *Client) fencedTaker { return c.FairMutex("fair") },
		"write": func(c *Client) fencedTaker { return c.RW("write").Write() },
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(rdb, Options{})
			if err != nil {
				t.Fatal(err)
			}
			h := acquire(t, kind(c))
			failed := make(chan error, 1)
			go func() {
				_, err := kind(c).Acquire(ctx)
				failed <- err
			}()
			channel := map[string]string{"fair": "{fair}:grant", "write": "{write}:write"}[name]
			asleep(t, c, channel, 1)
			closeClient(t, c)
			if err := within(t, testTimeout, "the waiter's error", failed); !errors.Is(err, ErrClosed) {
				t.Errorf("waiter: %v, want ErrClosed", err)
			}
			if got := context.Cause(h.Context()); !errors.Is(got, ErrClosed) {
				t.Errorf("holder: %v, want ErrClosed", got)
			}
			if _, err := kind(c).TryAcquire(ctx); !errors.Is(err, ErrClosed) {
				t.Errorf("after close: %v, want ErrClosed", err)
			}
		})
	}
}

// The token counter is lost, as in a failover: the next token is still greater, and a
// re-entry keeps its token.
// Regression: Redisson's fenced lock (tokens repeat after a failover)
func TestEachKindTokenGrowsThoughTheCounterIsLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	for _, tt := range []struct {
		name  string
		kind  fencedTaker
		inner bool // a re-entry has the token of the first hold
	}{{"fair", c.FairMutex("fair"), true}, {"rw", c.RW("rw").Write(), true}, {"rw", c.RW("rw").Read(), false}} {
		h := acquire(t, tt.kind)
		rdb.Del(ctx, tagged(tt.name, "token"))
		if tt.inner {
			inner, err := tt.kind.Acquire(h.Context(), WithReentry())
			if err != nil || inner.token != h.token {
				t.Errorf("%s: inner hold %+v, error %v, want token %d", tt.name, inner, err, h.token)
			}
			release(t, inner)
		}
		release(t, h)
		next := acquire(t, tt.kind)
		if next.token <= h.token {
			t.Errorf("%s: token %d after %d", tt.name, next.token, h.token)
		}
		release(t, next)
	}
}
