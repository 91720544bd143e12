package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestPipeWhoseSendersHang: calls behind senders that hang go out over another connection, without a further call over
// one more, and with further calls over as many as there may be. What waits behind those was never sent: a caller that
// leaves knows that for certain.
func TestPipeWhoseSendersHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bg := newBackground()
		hang, sent := make(chan struct{}), 0
		var mu sync.Mutex
		p := &pipe{bg: bg, send: func(_ context.Context, calls []call) []answer {
			mu.Lock()
			sent += len(calls)
			mu.Unlock()
			<-hang
			return make([]answer, len(calls))
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		results := make(chan error, maxSenders+3)
		ask := func() {
			wg.Go(func() { results <- p.do(ctx, call{}).err })
			synctest.Wait()
		}
		expect := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if sent != want {
				t.Errorf("%s: %d calls were sent, want %d", when, sent, want)
			}
		}
		for range minSenders + 1 {
			ask()
		}
		expect("at once", minSenders)
		<-time.After(senderHangs + time.Millisecond)
		expect("when the senders hang", minSenders+1)
		ask()
		ask()
		expect("right after that", minSenders+1)
		<-time.After(senderHangs + time.Millisecond)
		expect("when that one hangs too", minSenders+1)
		for range maxSenders - minSenders - 1 {
			ask() // the first goes out together with the two
			<-time.After(senderHangs + time.Millisecond)
		}
		expect("over all connections", maxSenders+2)
		ask()
		<-time.After(10 * senderHangs)
		expect("with no connection left", maxSenders+2)
		cancel()
		outcomes := make(map[outcome]int)
		for range maxSenders + 3 {
			outcomes[outcomeOf(<-results)]++
		}
		if outcomes[unknown] != maxSenders+2 || outcomes[notExecuted] != 1 {
			t.Errorf("outcomes %v, want %d unknown and 1 not executed", outcomes, maxSenders+2)
		}
		close(hang)
		wg.Wait()
		if err := bg.close(context.Background()); err != nil {
			t.Error(err)
		}
		if a := p.do(context.Background(), call{}); !errors.Is(a.err, ErrClosed) {
			t.Errorf("after close: %v, want ErrClosed", a.err)
		}
	})
}

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
			got, err := c.node.do(context.Background(), call{script: echo, keys: []string{"k"}, args: []any{want}})
			if err != nil || got != want {
				t.Errorf("reply %v, %v, want %s", got, err, want)
			}
			if i%50 == 0 {
				rdb.ScriptFlush(context.Background())
			}
		})
	}
	wg.Wait()
	eventually(t, testTimeout, "the senders have ended", func() bool {
		c.node.first.plain.mu.Lock()
		defer c.node.first.plain.mu.Unlock()
		return c.node.first.plain.senders == 0
	})
}

// A caller that sends its call itself leaves at the end of its context or soon after; the
// next one does not send by itself.
func TestDirectCallIsBounded(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	p := startProxy(t, s.Addr)
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, ContextTimeoutEnabled: true, ReadTimeout: time.Minute})
	defer rdb.Close()
	c := newTestClient(t, rdb, Options{Timeout: 300 * time.Millisecond})
	release(t, acquire(t, c.Mutex("warm")))
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
	if c.node.first.plain.beginDirect(context.Background(), &call{keys: []string{"cut"}}) {
		t.Error("the next caller would send by itself to a server that hangs")
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
