package stalls

import (
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// TestElections: a promotion during a stall of the harness or after it is due to the stall, unless a fault on a server
// had come before, or the stall was short or long over.
func TestElections(t *testing.T) {
	at := func(seconds float64, f string, v history.FaultValue) history.Event {
		return history.Event{Time: time.Duration(seconds * float64(time.Second)), Process: history.Nemesis, F: f,
			Value: &history.Value{Fault: &v}}
	}
	stall := func(until, lasted float64) history.Event {
		return at(until, history.HarnessStalled, history.FaultValue{Phase: history.Noted, Target: "harness",
			Lasted: time.Duration(lasted * float64(time.Second))})
	}
	promoted := func(when float64) history.Event {
		return at(when, history.NodePromoted, history.FaultValue{Phase: history.Noted, Target: "n2"})
	}
	fault := func(when float64, class, target string) history.Event {
		return at(when, "fault", history.FaultValue{Phase: history.Injected, Class: class, Target: target})
	}
	const because = "The harness did not run for 3.00 s, and n2 was promoted at 4.400 s because of it"
	for _, test := range []struct {
		name   string
		events []history.Event
		want   string
	}{
		{"after it", []history.Event{stall(4, 3), promoted(4.4)}, because},
		{"seen before the stall is noted", []history.Event{promoted(4.4), stall(4.41, 3)}, because},
		{"a cut of the replicas was in force",
			[]history.Event{fault(0.3, history.FaultCuts, "n2>n1"), stall(4, 3), promoted(4.4)}, because},
		{"a client had been paused",
			[]history.Event{fault(0.3, history.FaultPauses, "client:1"), stall(4, 3), promoted(4.4)}, because},
		{"the master had been killed",
			[]history.Event{fault(0.3, history.FaultKills, "n1"), stall(4, 3), promoted(4.4)}, ""},
		{"long after it", []history.Event{stall(4, 3), promoted(15)}, ""},
		{"before it", []history.Event{promoted(0.9), stall(4, 3)}, ""},
		{"a short stall", []history.Event{stall(4, 0.6), promoted(4.4)}, ""},
		{"no stall", []history.Event{promoted(4.4)}, ""},
	} {
		var e Elections
		for _, event := range test.events {
			e.Add(event)
		}
		if got := e.Text(); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
