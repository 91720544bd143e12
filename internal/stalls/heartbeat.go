package stalls

import (
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

// heartbeat finds the stalls of the harness.
type heartbeat struct {
	note  func(f string, v *history.FaultValue)
	slept time.Duration // in total; the clock of the history stopped meanwhile
	late  time.Duration // of the latest beat that is no stall
}

// beat takes the time since the last beat on both clocks.
func (b *heartbeat) beat(passed, wall time.Duration) {
	if passed <= stalledFor {
		b.late = max(b.late, passed-heartbeatEvery)
	} else {
		b.stalled(passed, "the harness did not run for "+format.Duration(passed))
	}
	if jump := wall - passed; jump > stalledFor {
		b.slept += jump
		b.stalled(passed, "the machine slept, or its clock was set forward, by "+format.Duration(jump))
	}
}

func (b *heartbeat) stalled(lasted time.Duration, detail string) {
	b.note(history.HarnessStalled,
		&history.FaultValue{Phase: history.Noted, Target: "harness", Lasted: lasted, Detail: detail})
}
