package lock

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// A release publishes only if there are waiters, in this client or others: in a cluster,
// such a message goes to every node (redisson#3349).
func TestReleasePublishesOnlyForWaiters(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	rdb := s.Dial(t)
	never := Options{PollMax: time.Hour} // without the message no waiter would be served
	here, there := newTestClient(t, rdb, never), newTestClient(t, s.Dial(t), never)
	for range 3 {
		release(t, acquire(t, here.Mutex("job")))
	}
	h := acquire(t, here.Mutex("job"))
	if _, err := there.Mutex("job").TryAcquire(context.Background()); err == nil {
		t.Fatal("granted twice")
	}
	release(t, h)
	if n := locktest.Calls(t, rdb, "publish", "spublish"); n != 0 {
		t.Errorf("%d messages, and there was no waiter", n)
	}
	for name, c := range map[string]*Client{"another client": there, "the same client": here} {
		before := locktest.Calls(t, rdb, "publish", "spublish")
		h := acquire(t, here.Mutex("job"))
		served := acquireLater(context.Background(), t, c.Mutex("job"))
		waitSubscribed(t, c, "{job}:free")
		release(t, h)
		release(t, within(t, testTimeout, name+" is served", served))
		if n := locktest.Calls(t, rdb, "publish", "spublish") - before; n == 0 {
			t.Errorf("%s: no message was published", name)
		}
	}
}

// The message of a release is the number of clients that it reaches. A release without the right to count publishes 0.
func TestReleaseCountsClients(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	ctx := context.Background()
	limited, _ := limitedClient(t, s, Options{}, "~*", "&*", "-pubsub")
	for want, holder := range map[string]*Client{"2": newTestClient(t, s.Dial(t), Options{}), "0": limited} {
		name := "job" + want
		channel := "{" + name + "}:free"
		heard := s.Dial(t).Subscribe(ctx, channel)
		t.Cleanup(func() { _ = heard.Close() })
		if _, err := heard.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		there := newTestClient(t, s.Dial(t), Options{PollMax: time.Hour})
		h := acquire(t, holder.Mutex(name))
		served := acquireLater(ctx, t, there.Mutex(name))
		waitSubscribed(t, there, channel)
		release(t, h)
		m, err := heard.ReceiveMessage(ctx)
		if err != nil || m.Payload != want {
			t.Errorf("message %v, %v, want %s", m, err, want)
		}
		release(t, within(t, testTimeout, "the waiter is served", served))
	}
}

// The mark of a waiter is deleted with the hash that it was left in: the next holder still notifies the remaining
// waiters, in all clients; if these are many, after a delay.
func TestMarksOutliveHandovers(t *testing.T) {
	t.Parallel()
	for clients, waiters := range map[int]int{4: 10, 50: 2} {
		t.Run(strconv.Itoa(clients), func(t *testing.T) {
			t.Parallel()
			waitersAreServed(t, clients, waiters)
		})
	}
}

func waitersAreServed(t *testing.T, clients, waiters int) {
	t.Helper()
	s := startRedis(t)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for range clients {
		c := newTestClient(t, s.Dial(t), Options{PollMax: time.Hour})
		for range waiters {
			wg.Go(func() {
				for range 5 {
					h, err := c.Mutex("job").Acquire(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					if err := h.Release(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
}

// A client that acquires and releases one lock repeatedly leaves a few tombstones, not one
// for each time; and a retried release still gets its reply.
func TestTombstonesDoNotPileUp(t *testing.T) {
	t.Parallel()
	direct, p, c := behindProxy(t, Options{})
	pair := func() {
		t.Helper()
		release(t, acquire(t, c.Mutex("job")))
	}
	tombstones := func() int {
		n := 0
		for _, key := range direct.Keys(context.Background(), "*").Val() {
			if strings.HasPrefix(key, "{job}:tombstone:") {
				n++
			}
		}
		return n
	}
	for i := range 5 * tombstoneBatch {
		pair()
		if n := tombstones(); n > tombstoneBatch {
			t.Fatalf("%d tombstones after %d releases, want %d or fewer", n, i+1, tombstoneBatch)
		}
	}
	h := acquire(t, c.Mutex("job"))
	p.lose(1)
	release(t, h)
	pair()
	// An acquire that may still be in flight must find the tombstone of its hold, so it is not
	// removed.
	p.lose(1)
	late := acquire(t, c.Mutex("job"))
	release(t, late)
	for range 2 * tombstoneBatch {
		pair()
	}
	if n := direct.Exists(context.Background(), late.claim.tombstoneKey()).Val(); n != 1 {
		t.Error("the tombstone of a hold whose acquire was sent twice was removed")
	}
}
