package lock

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// server is a redis-server of its own on a free loopback port.
type server = locktest.Server

// Tests run on busy machines, so these limits do not measure speed. What must not happen
// within such a time is prevented by other means, such as a poll limit of an hour.
const (
	// testTimeout is for events that must happen without help.
	testTimeout = time.Minute
	// replyTimeout is for one reply of a server that may be stopped on purpose.
	replyTimeout = 3 * time.Second
	// waitTimeout is for a wait that is to time out, after the first reply has come.
	waitTimeout = 4 * time.Second
	// watchedLease is renewed in time even if the machine is stopped for a while.
	watchedLease = 10 * time.Second
)

func startRedis(t testing.TB, args ...string) *server {
	t.Helper()
	return locktest.StartServer(t, args...)
}

func dialRedis(t testing.TB, addr string) *redis.Client {
	t.Helper()
	return locktest.Dial(t, addr)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func freeAddr(t testing.TB) string {
	t.Helper()
	return locktest.FreeAddr(t)
}

func newTestClient(t testing.TB, rdb redis.UniversalClient, o Options) *Client {
	t.Helper()
	c, err := New(rdb, o)
	if err != nil {
		t.Fatal(err)
	}
	settle(c)
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

// warmUp loads scripts and opens a connection of rdb, for a client whose own limits are short.
func warmUp(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	release(t, acquire(t, newTestClient(t, rdb, Options{}).Mutex("warm")))
}

// settle gives c limits for a busy machine, and no heartbeats if it does not poll.
func settle(c *Client) {
	c.grace = testTimeout
	if c.o.PollMax == time.Hour {
		c.maxHeartbeat = time.Hour
	}
}

func closeClient(t testing.TB, c *Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// eventually repeats cond until it is true, and fails the test after limit.
func eventually(t testing.TB, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	locktest.Eventually(t, limit, what, cond)
}

// acquire acquires any lock with holds.
func acquire[H anyHold](t testing.TB, m taker[H], opts ...Option) *Hold {
	t.Helper()
	h, err := m.Acquire(context.Background(), append(opts, WithWait(testTimeout))...)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return h.bare()
}

func release(t testing.TB, h interface {
	Release(ctx context.Context) error
}) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Fatalf("release: %v", err)
	}
}

// hashOf is the hash of a lock as an observer sees it.
func hashOf(t testing.TB, rdb *redis.Client, name string) map[string]string {
	t.Helper()
	m, err := rdb.HGetAll(context.Background(), name).Result()
	if err != nil {
		t.Fatalf("hgetall %s: %v", name, err)
	}
	return m
}

func mustExist(t testing.TB, rdb *redis.Client, name string, want bool) {
	t.Helper()
	n, err := rdb.Exists(context.Background(), name).Result()
	if err != nil {
		t.Fatal(err)
	}
	if (n == 1) != want {
		t.Fatalf("key %q exists: %v, want %v", name, n == 1, want)
	}
}
