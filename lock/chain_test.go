package lock

import (
	"context"
	"testing"
	"time"
)

// Only the first waiter of a client asks the server, and learns when the lease ends. When it leaves, the next one asks:
// the lease is shortened meanwhile, which nobody else learns.
func TestNextWaiterLearnsTheLease(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, m *Mutex, cancel func(), first <-chan *Hold){
		"the first gave up": func(_ *testing.T, _ *Mutex, cancel func(), _ <-chan *Hold) { cancel() },
		"the first holds, and is forgotten": func(t *testing.T, m *Mutex, _ func(), first <-chan *Hold) {
			if _, err := m.ForceRelease(context.Background()); err != nil {
				t.Fatal(err)
			}
			within(t, testTimeout, "the first", first)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startRedis(t)
			rdb := s.Dial(t)
			dead := newTestClient(t, rdb, Options{}).Mutex("chain")
			c := newTestClient(t, s.Dial(t), Options{PollMax: time.Hour})
			acquire(t, dead, WithLease(time.Hour)) // never released
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			first := acquireLater(ctx, t, c.Mutex("chain"), WithLease(500*time.Millisecond))
			asleep(t, c, "{chain}:free", 1)
			second := acquireLater(context.Background(), t, c.Mutex("chain"))
			asleep(t, c, "{chain}:free", 2)
			rdb.PExpire(context.Background(), "chain", 1500*time.Millisecond)
			leave(t, dead, cancel, first)
			release(t, within(t, testTimeout, "the second", second))
		})
	}
}

// The first in the queue of a fair mutex retries when the lease has ended. When it leaves, the next one is woken to
// learn that.
func TestFairNextLearnsTheLease(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	rdb := s.Dial(t)
	c := newTestClient(t, s.Dial(t), Options{PollMax: time.Hour})
	c.maxHeartbeat = time.Hour
	m := c.FairMutex("chain")
	acquire(t, newTestClient(t, s.Dial(t), Options{}).FairMutex("chain"), WithLease(time.Hour))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	acquireLater(ctx, t, m, WithOwner("first"))
	asleep(t, c, "{chain}:grant", 1)
	second := acquireLater(context.Background(), t, m, WithOwner("second"))
	asleep(t, c, "{chain}:grant", 2)
	rdb.PExpire(context.Background(), "chain", 1500*time.Millisecond)
	cancel()
	release(t, within(t, testTimeout, "the second", second))
}
