package lock

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestEndHasPrecedence: a select chooses at random among ready cases, but a waiter that is woken when its context or
// its client ends must not send another request.
func TestEndHasPrecedence(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, end := range map[string]struct {
		ctx    context.Context
		closed bool
	}{"context": {canceled, false}, "client": {t.Context(), true}} {
		c := newTestClient(t, redis.NewClient(&redis.Options{Addr: freeAddr(t)}), Options{})
		if end.closed {
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			woken := make(chan struct{}, 1)
			woken <- struct{}{}
			if c.bg.Sleep(end.ctx, 0, woken) {
				t.Fatalf("%s: background.sleep reports a wake-up after the end", name)
			}
			w := &waitLoop{client: c, channel: "ends", mode: chained}
			w.waiter, _ = c.queues.Join(w.channel, true)
			w.waiter.WakeUp(0)
			if w.sleep(end.ctx, time.Hour, prepared{}) {
				t.Fatalf("%s: the waiter sends another request after the end", name)
			}
			c.queues.Leave(w.waiter, false, time.Time{})
		}
	}
}
