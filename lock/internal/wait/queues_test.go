package wait

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
	"github.com/lockchaos/lockchaos/lock/internal/random"
	"github.com/lockchaos/lockchaos/lock/internal/tasks"
)

// A refusal wakes all waiters for their holds, because each of them has to poll, and the first of other waiters.
func TestRefusalWakesThoseThatPoll(t *testing.T) {
	t.Parallel()
	bg := tasks.New(errClosed)
	rdb := redis.NewClient(&redis.Options{Addr: locktest.FreeAddr(t)}) // nothing is confirmed
	queues := NewQueues(rdb, bg, random.New(nil), time.Second, nil)
	queues.Report = func(string, error) {}
	defer func() {
		if err := bg.Close(context.Background()); err != nil {
			t.Error(err)
		}
		_ = rdb.Close()
	}()
	for hold, want := range map[string]int{"": 1, "h": 3} {
		channel := "{k}" + hold
		var all []*Waiter
		for range 3 {
			w, _ := queues.Join(channel, false)
			if hold != "" {
				queues.SetHold(w, hold)
			}
			all = append(all, w)
		}
		queues.refused(channel, redis.Nil)
		woken := 0
		for _, w := range all {
			woken += len(w.Wake)
		}
		for _, w := range all {
			queues.Leave(w, true, time.Time{})
		}
		if woken != want {
			t.Errorf("waiters with hold %q: %d were woken, want %d", hold, woken, want)
		}
	}
}
