package sim_test

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestReceived: a sample says how often each client has dialed the node, its requests by key, and its subscriptions,
// without the harness's requests. Counters outlast a restart; dials of a node that is down count.
func TestReceived(t *testing.T) {
	simulate(t, single(), func(w *world) {
		w.Sample(w.ctx, "n1", []string{"orders"})
		r := w.client(0)
		for range 3 {
			w.ok(r.Set(w.ctx, "orders", "v", 0).Err())
		}
		script := "redis.call('GET', KEYS[1]) return redis.call('GET', KEYS[2])"
		w.ok(r.Eval(w.ctx, script, []string{"other", "orders"}).Err())
		w.ok(r.Get(w.ctx, "orders").Err())
		subscription := r.Subscribe(w.ctx, "free")
		_, err := subscription.Receive(w.ctx)
		w.ok(err)
		all := w.Sample(w.ctx, "n1", []string{"orders"}).Received
		if len(all) != 1 || all[0].Client != 0 || all[0].Keys["orders"] != 5 || len(all[0].Keys) != 1 ||
			all[0].Dials != 2 || all[0].Open != 2 || all[0].Channels != 1 || all[0].Commands < 6 {
			t.Fatalf("five requests and a subscription on two connections: %+v", all)
		}
		before := all[0]
		w.ok(r.Get(w.ctx, "orders").Err())
		all = w.Sample(w.ctx, "n1", []string{"orders"}).Received
		if before.Keys["orders"] != 5 || all[0].Keys["orders"] != 6 {
			t.Errorf("one more request: %+v, the sample before it %+v", all[0], before)
		}
		w.ok(subscription.Close())
		w.ok(w.Kill(w.ctx, "n1"))
		for range 3 { // the first uses a connection that was reset
			if err := r.Get(w.ctx, "orders").Err(); err == nil || errors.Is(err, redis.Nil) {
				t.Fatalf("a node that is down replied: %v", err)
			}
		}
		all = w.Sample(w.ctx, "n1", []string{"orders"}).Received
		if len(all) != 1 || all[0].Dials <= before.Dials || all[0].Keys["orders"] != 6 || all[0].Open+all[0].Channels != 0 {
			t.Fatalf("after the node was killed: %+v", all)
		}
	})
}
