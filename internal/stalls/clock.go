package stalls

import (
	"context"
	"sync"
	"time"
)

// Clock has two times of a run: the time of its history, and the time of its plan, which stops while the harness is
// stopped. Two faults are then never closer together than planned, however long somebody stops the harness, and the run
// is not over when it continues. The time of the plan includes the first stalledFor of each stall, because a heartbeat
// may be that late without one. Without a [Watch], both times are the same.
type Clock struct {
	History func() time.Duration // runs while the harness is stopped

	mu     sync.Mutex
	beats  bool          // a Watch is running
	last   time.Duration // beat
	missed time.Duration // of all stalls that are over, the parts that do not count
}

// Now is the time of the plan.
func (c *Clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.History()
	return now - c.missed - c.stall(now)
}

// stall is the part of a stall until now that does not count.
func (c *Clock) stall(now time.Duration) time.Duration {
	if !c.beats {
		return 0
	}
	return max(0, now-c.last-stalledFor)
}

// beat counts a stall that ended at now; beats is whether another beat will follow.
func (c *Clock) beat(now time.Duration, beats bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missed += c.stall(now)
	c.last, c.beats = now, beats
}

// Wait reports whether done was closed before the end of ctx and before the plan's time had advanced by d.
func (c *Clock) Wait(ctx context.Context, done <-chan struct{}, d time.Duration) bool {
	for end := c.Now() + d; d > 0; d = end - c.Now() { // a stall delays the end
		t := time.NewTimer(d)
		select {
		case <-done:
			t.Stop()
			return true
		case <-ctx.Done():
			t.Stop()
			return false
		case <-t.C:
		}
	}
	return false
}

// Sleep reports whether the plan's time has advanced by d before the end of ctx.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	return !c.Wait(context.Background(), ctx.Done(), d)
}
