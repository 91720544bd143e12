package lock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Concurrent calls go out together, each gets its own reply, and no goroutine stays.
func TestPipeReturnsEachCallerItsReply(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	echo := newScript("return ARGV[1]")
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			want := fmt.Sprint(i)
			got, err := c.node.Do(context.Background(), wire.Call{Script: echo, Keys: []string{"k"}, Args: []any{want}})
			if err != nil || got != want {
				t.Errorf("reply %v, %v, want %s", got, err, want)
			}
			if i%50 == 0 {
				rdb.ScriptFlush(context.Background())
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := c.bg.Close(ctx); err != nil {
		t.Errorf("a sender has not ended: %v", err)
	}
}

// A caller that sends its call itself leaves at the end of its context or soon after.
func TestDirectCallIsBounded(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.Addr)
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, ContextTimeoutEnabled: true, ReadTimeout: time.Minute})
	defer rdb.Close()
	c := newTestClient(t, rdb, Options{Timeout: 300 * time.Millisecond})
	warmUp(t, rdb)
	p.hang()
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Mutex("cut").TryAcquire(ctx)
		failed <- err
	}()
	within(t, testTimeout, "a reply that is lost", p.Dropped)
	cancel()
	if err := within(t, testTimeout, "the end", failed); !errors.Is(err, ErrUnknown) {
		t.Errorf("error %v, want ErrUnknown", err)
	}
}

// A release ends with its timeout although go-redis dials a server that is not heard, for as long as it takes.
func TestReleaseDoesNotWaitForDial(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	var hang atomic.Bool
	letGo := make(chan struct{})
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, DialerRetries: 1,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if hang.Load() {
				<-letGo
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}})
	defer rdb.Close()
	defer close(letGo)
	c := newTestClient(t, rdb, Options{})
	h := acquire(t, c.Mutex("m"), WithLease(time.Hour))
	c.o.Timeout = 500 * time.Millisecond
	hang.Store(true)
	s.Dial(t).ClientKillByFilter(t.Context(), "TYPE", "normal")
	released := make(chan error, 1)
	go func() { released <- h.Release(context.Background()) }()
	if err := within(t, testTimeout, "the end of the release", released); err == nil {
		t.Error("released, want an error: the server was not reached")
	}
}

// On several masters a majority decides who has the lock, and releases it.
func TestInspectAndForceOnQuorum(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var rdbs []redis.UniversalClient
	for range 3 {
		rdbs = append(rdbs, startRedis(t).Dial(t))
	}
	c, err := NewQuorum(Options{}, rdbs...)
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, c)
	h := acquire(t, c.Mutex("most"), WithOwner("x"), WithReentry(), WithLease(time.Minute))
	for i, rdb := range rdbs { // the last of them may be late
		eventually(t, testTimeout, fmt.Sprintf("master %d has it", i+1), func() bool {
			return rdb.Exists(ctx, "most").Val() == 1
		})
	}
	rdbs[0].Del(ctx, "most")
	if got, err := c.Mutex("most").Inspect(ctx); err != nil || got.Owner != "x" || got.Count != 1 {
		t.Errorf("state %+v, %v, want x once", got, err)
	}
	if had, err := c.Mutex("most").ForceRelease(ctx); !had || err != nil {
		t.Errorf("force: %v, %v", had, err)
	}
	if got, err := c.Mutex("most").Inspect(ctx); err != nil || got.Owner != "" {
		t.Errorf("state %+v, %v, want a free lock", got, err)
	}
	if err := h.Release(ctx); !errors.Is(err, ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
	if _, err := c.Mutex("most").Acquire(ctx, WithOwner("y")); err != nil {
		t.Fatal(err)
	}
	once := []Option{WithOwner("y")}
	if _, err := c.Mutex("most").Acquire(ctx, once...); !errors.Is(err, ErrReentered) {
		t.Errorf("re-entry: %v, want ErrReentered", err)
	}
}
