package wait

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock/internal/random"
	"github.com/lockchaos/lockchaos/lock/internal/tasks"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// newQueues returns queues whose subscriptions are never confirmed.
func newQueues(t *testing.T) *Queues {
	t.Helper()
	bg := tasks.New(errClosed)
	rdb := redis.NewClient(&redis.Options{Addr: locktest.FreeAddr(t)})
	queues := NewQueues(rdb, bg, random.New(nil), time.Second, nil)
	queues.Report = func(string, error) {}
	t.Cleanup(func() {
		if err := bg.Close(context.Background()); err != nil {
			t.Error(err)
		}
		_ = rdb.Close()
	})
	return queues
}

// pending is the wake-up that w has not used, or -1.
func pending(w *Waiter) time.Duration {
	select {
	case after := <-w.Wake:
		return after
	default:
		return -1
	}
}

// A message that reaches many clients makes each of them send one request, after a delay. Any other wake-up
// ends the delay.
func TestMessageToManyClients(t *testing.T) {
	t.Parallel()
	queues := newQueues(t)
	first, _ := queues.Join("{k}", true)
	second, _ := queues.Join("{k}", true)
	sleep := func() { queues.FallAsleep(first, wire.Call{}, true) }
	for payload, longest := range map[string]time.Duration{"0": 0, "32": 0, "x": 0, "100": 5 * time.Millisecond,
		"1000": 500 * time.Millisecond, "1000000": 500 * time.Millisecond} {
		sleep()
		queues.message("{k}", payload)
		if after := pending(first); after < 0 || after > longest || longest > 0 && after == 0 {
			t.Errorf("message %q: the request follows after %v, want at most %v", payload, after, longest)
		}
		if longest > 0 {
			queues.message("{k}", payload)
		}
		if again, other := pending(first), pending(second); again >= 0 || other >= 0 {
			t.Errorf("message %q during the delay: wake-ups %v and %v, want none", payload, again, other)
		}
		queues.Awake(first)
	}
	handed := func(wire.Call) *Handed { return &Handed{} }
	wakers := map[string]func(){
		"a message to all":         func() { queues.message("{k}", wakeAllPayload) },
		"a waiter that leaves":     func() { first.WakeUp(0) },
		"a request sent for it":    func() { queues.HandOver("{k}", handed) },
		"a new subscription":       func() { queues.confirmed("{k}") },
		"a message to few":         func() { queues.message("{k}", "2") },
		"the end of subscriptions": func() { queues.refused("{k}", redis.Nil) },
	}
	for name, wake := range wakers {
		for _, consumed := range []bool{false, true} {
			sleep()
			queues.message("{k}", "1000")
			if consumed {
				pending(first)
			}
			wake()
			if after := pending(first); after != 0 {
				t.Errorf("%s (the waiter waits for its delay: %v): its wake-up has delay %v, want 0", name, consumed, after)
			}
			pending(second)
			queues.TakeHanded(first)
			queues.Awake(first)
		}
	}
}

// A wake-up that comes during a request is for the next one, and nothing is handed over to a waiter whose request is on
// its way.
func TestMessageDuringRequest(t *testing.T) {
	t.Parallel()
	queues := newQueues(t)
	w, _ := queues.Join("{k}", true)
	queues.FallAsleep(w, wire.Call{}, true)
	queues.Awake(w)
	queues.message("{k}", "1000")
	if queues.HandOver("{k}", func(wire.Call) *Handed { return &Handed{} }) {
		t.Error("a second request was sent for a waiter whose request is on its way")
	}
	queues.FallAsleep(w, wire.Call{}, true)
	if pending(w) <= 0 {
		t.Error("the wake-up is lost")
	}
}

// A client without waiters does not stay among the subscribers that a release counts.
func TestMessageToManyEndsIdleSubscription(t *testing.T) {
	t.Parallel()
	queues := newQueues(t)
	w, _ := queues.Join("{k}", true)
	queues.Leave(w, true, time.Time{})
	if queues.message("{k}", "32"); !queues.wanted(time.Now())["{k}"] {
		t.Error("after a message to few clients it is not subscribed any more")
	}
	if queues.message("{k}", "33"); queues.wanted(time.Now())["{k}"] {
		t.Error("after a message to many clients it is still subscribed")
	}
}
