package lock

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Readers that overlap forever starve a writer, unless it keeps new ones out
// (redisson#5379).
func TestPreferredWriterIsNotStarved(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, patient)
	rw := c.RW("full")
	r := acquire(t, rw.Read(), WithOwner("old"), WithReentry())
	served := acquireLater(ctx, t, rw.PreferWriters().Write())
	asleep(t, c, "{full}:write", 1)
	if _, err := rw.Read().TryAcquire(ctx); !errors.Is(err, ErrHeld) {
		t.Errorf("a new reader: %v, want ErrHeld", err)
	}
	again, err := rw.Read().TryAcquire(ctx, WithOwner("old"), WithReentry())
	if err != nil {
		t.Fatalf("an old reader once more: %v: it would wait for itself", err)
	}
	release(t, r)
	release(t, again)
	w := within(t, testTimeout, "the writer", served)
	late := acquireLater(ctx, t, rw.Read())
	asleep(t, c, "{full}:read", 1)
	release(t, w)
	release(t, within(t, testTimeout, "the late reader", late))
	mustBeRemoved(t, rdb, "full")
}

// Without the preference, a reader joins the others although a writer waits.
func TestReadersJoinUnlessAWriterIsPreferred(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, patient)
	r := acquire(t, c.RW("open").Read())
	served := acquireLater(ctx, t, c.RW("open").Write())
	asleep(t, c, "{open}:write", 1)
	release(t, acquire(t, c.RW("open").Read()))
	release(t, r)
	release(t, within(t, testTimeout, "the writer", served))
}

// A preferred writer that stops waiting lets the readers in that it kept out: at once if
// it removes its intent, and after three heartbeats if it died.
func TestPreferredWriterThatLeaves(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	t.Run("gives-up", func(t *testing.T) {
		c := newTestClient(t, rdb, patient)
		rw := c.RW("gone")
		r := acquire(t, rw.Read())
		ctx, cancel := context.WithCancel(context.Background())
		failed := make(chan error, 1)
		go func() {
			_, err := rw.PreferWriters().Write().Acquire(ctx)
			failed <- err
		}()
		asleep(t, c, "{gone}:write", 1)
		served := acquireLater(context.Background(), t, rw.Read())
		asleep(t, c, "{gone}:read", 1)
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) || !Definite(err) {
			t.Errorf("error %v, want a definite Canceled", err)
		}
		release(t, within(t, testTimeout, "the reader", served))
		release(t, r)
		mustBeRemoved(t, rdb, "gone")
	})
	t.Run("dies", func(t *testing.T) {
		c := newTestClient(t, rdb, Options{})
		r := acquire(t, c.RW("dies").Read())
		dead := claim{key: "dies", owner: "dead", id: "1", lease: 10_000, waiterTTL: 3000}
		if g, err := c.writers.acquire(context.Background(), dead); err != nil || g.ok {
			t.Fatalf("acquire: %+v, %v", g, err)
		}
		end := time.Duration(rdb.ZScore(context.Background(), "{dies}:intents", "1").Val()) * time.Millisecond
		h := acquire(t, c.RW("dies").Read())
		if now := serverTime(t, rdb); now < end || end == 0 {
			t.Errorf("the reader came at %v, want after the dead one's time, %v", now, end)
		}
		release(t, h)
		release(t, r)
	})
}

// refusing makes scripts fail as if no connection could be made.
type refusing struct {
	on      atomic.Bool
	refused chan struct{} // holds one
}

func (r *refusing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *refusing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *refusing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if r.on.Load() && cmd.Name() == "evalsha" {
			select {
			case r.refused <- struct{}{}:
			default:
			}
			return &net.OpError{Op: "dial", Err: errors.New("refused by the test")}
		}
		return next(ctx, cmd)
	}
}

// A waiter is woken, cannot reach the server, and leaves: the wake-up goes to the next,
// which would sleep beside a free lock.
// Regression: redisson#4744
func TestWakeUpOfOneThatLeavesIsPassedOn(t *testing.T) {
	for kind, tt := range map[string]struct {
		of      func(c *Client) fencedTaker
		channel string
	}{
		"mutex":  {func(c *Client) fencedTaker { return c.FencedMutex("pass") }, "{pass}:free"},
		"writer": {func(c *Client) fencedTaker { return c.RW("pass").Write() }, "{pass}:write"},
	} {
		t.Run(kind, func(t *testing.T) {
			s := startRedis(t)
			holder := newTestClient(t, s.Dial(t), Options{})
			rdb, r := s.Dial(t), &refusing{refused: make(chan struct{}, 1)}
			rdb.AddHook(r)
			c := newTestClient(t, rdb, patient)
			h := acquire(t, tt.of(holder))
			ctx, cancel := context.WithCancel(context.Background())
			failed := make(chan error, 1)
			go func() {
				_, err := tt.of(c).Acquire(ctx, WithOwner("leaver"), WithReentry())
				failed <- err
			}()
			asleep(t, c, tt.channel, 1)
			served := acquireLater(context.Background(), t, tt.of(c), WithOwner("next"), WithReentry())
			asleep(t, c, tt.channel, 2)
			r.on.Store(true)
			release(t, h)
			within(t, testTimeout, "the woken one's question", r.refused)
			cancel()
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want Canceled", err)
			}
			r.on.Store(false)
			release(t, within(t, testTimeout, "the next", served))
		})
	}
}
