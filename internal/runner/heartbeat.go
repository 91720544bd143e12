package runner

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The harness notices that it did not run (Ctrl-Z, a machine that slept or had no processor to spare) by a heartbeat
// that comes late.
const (
	heartbeatEvery = 50 * time.Millisecond
	stalledFor     = 500 * time.Millisecond // half of the slack of the checkers
)

// heartbeat writes the stalls of the harness into the history.
type heartbeat struct {
	clock func() time.Duration // of the history; it runs while the harness is stopped
	wall  func() time.Time     // without a monotonic reading; it runs while the machine sleeps, too
	note  func(v *history.FaultValue)
	slept time.Duration // in total; the clock of the history stopped meanwhile
	late  time.Duration // of the latest beat that is no stall
}

// run notes every stall until ctx ends.
func (b *heartbeat) run(ctx context.Context, ticks <-chan time.Time) {
	last, lastWall := b.clock(), b.wall()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		now, nowWall := b.clock(), b.wall()
		b.beat(now-last, nowWall.Sub(lastWall))
		last, lastWall = now, nowWall
	}
}

// beat takes the time since the last beat on both clocks.
func (b *heartbeat) beat(passed, wall time.Duration) {
	if passed <= stalledFor {
		b.late = max(b.late, passed-heartbeatEvery)
	} else {
		b.note(&history.FaultValue{Phase: history.Noted, Target: "harness", Lasted: passed,
			Detail: "the harness did not run for " + format.Duration(passed)})
	}
	if jump := wall - passed; jump > stalledFor {
		b.slept += jump
		b.note(&history.FaultValue{Phase: history.Noted, Target: "harness", Lasted: passed,
			Detail: "the machine slept, or its clock was set forward, by " + format.Duration(jump)})
	}
}

// watchHarness runs a heartbeat until ctx ends. Virtual time passes only while the harness runs.
func (s *stage) watchHarness(ctx context.Context) {
	if s.run.Backend.Facts().Deterministic {
		return
	}
	ticker := time.NewTicker(heartbeatEvery)
	defer ticker.Stop()
	b := heartbeat{
		clock: s.clock, wall: func() time.Time { return time.Now().Round(0) },
		note: func(v *history.FaultValue) {
			s.record.Note(history.Nemesis, history.HarnessStalled, "", &history.Value{Fault: v})
		},
	}
	b.run(ctx, ticker.C)
	s.slept, s.late = b.slept, b.late
}
