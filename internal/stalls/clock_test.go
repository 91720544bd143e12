package stalls

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestPlanStopsInStalls: of a stall, the time of the plan has the first half second, while it lasts and when it is
// over. It never goes back, and it runs like the other one without a heartbeat.
func TestPlanStopsInStalls(t *testing.T) {
	const ms = time.Millisecond
	var now time.Duration
	c := Clock{History: func() time.Duration { return now }}
	for i, step := range []struct{ at, plan time.Duration }{
		{200 * ms, 200 * ms}, {250 * ms, 250 * ms}, // the harness runs
		{700 * ms, 700 * ms},   // a late beat
		{4700 * ms, 1200 * ms}, // a stall of four seconds
		{4750 * ms, 1250 * ms},
	} {
		now = step.at
		if got := c.Now(); got != step.plan {
			t.Errorf("at %v it is %v of the plan, want %v", now, got, step.plan)
		}
		c.beat(now, i < 4)
		if got := c.Now(); got != step.plan {
			t.Errorf("after the beat at %v it is %v of the plan, want %v", now, got, step.plan)
		}
	}
	if now += time.Hour; c.Now() != 1250*ms+time.Hour {
		t.Errorf("without beats it is %v of the plan after an hour", c.Now())
	}
}

// TestTimersWaitForThePlan: a stall delays timers by its length, except for its first half second.
func TestTimersWaitForThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := Clock{History: func() time.Duration { return time.Since(start) }}
		c.beat(0, true)
		time.AfterFunc(time.Hour, func() { c.beat(time.Hour, false) })
		if !c.Sleep(t.Context(), 3*time.Second) || c.History() != time.Hour+2500*time.Millisecond {
			t.Errorf("slept until %v", c.History())
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if c.Sleep(ctx, time.Minute) {
			t.Error("the end of the context did not end the sleep")
		}
		done := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(done) })
		if c.Wait(ctx, done, time.Minute) || c.Sleep(ctx, 0) {
			t.Error("it waited although the context had ended")
		}
		if c.Wait(t.Context(), done, time.Millisecond) || !c.Wait(t.Context(), done, time.Minute) {
			t.Error("done was not seen in time")
		}
	})
}
