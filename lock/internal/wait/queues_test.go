package wait

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A refusal wakes all waiters for their holds, because each of them has to poll, and the first of other waiters.
func TestRefusalWakesThoseThatPoll(t *testing.T) {
	t.Parallel()
	queues := newQueues(t)
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
