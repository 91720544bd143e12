package witness

import (
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// TestSilentNodes: a node is silent when three samples in a row have missed a reply, since the first of these was sent;
// also if it has never replied.
func TestSilentNodes(t *testing.T) {
	const ms = time.Millisecond
	type sample struct {
		sent, at time.Duration
		up       bool
	}
	for name, c := range map[string]struct {
		samples []sample
		silent  time.Duration // for how long it has been when that is reported; 0: it is not
		replies bool          // is reported
	}{
		"replies": {samples: []sample{{0, 5 * ms, true}, {10 * ms, 15 * ms, true}}},
		"two late replies": {samples: []sample{
			{0, 5 * ms, true}, {10 * ms, 90 * ms, false}, {90 * ms, 200 * ms, false}, {200 * ms, 210 * ms, true},
		}},
		"from some time on": {[]sample{
			{0, 5 * ms, true}, {10 * ms, 90 * ms, false}, {90 * ms, 200 * ms, false}, {200 * ms, 300 * ms, false},
		}, 290 * ms, false},
		"from the start": {[]sample{
			{0, 100 * ms, false}, {100 * ms, 200 * ms, false}, {200 * ms, 300 * ms, false}, {300 * ms, 310 * ms, true},
		}, 300 * ms, true},
	} {
		t.Run(name, func(t *testing.T) {
			var now, silent time.Duration
			replies := false
			w := &Witness{
				Config: Config{Clock: func() time.Duration { return now }, Sampled: func(history.Sample) {}},
				latest: map[string]history.Sample{}, reported: map[string]history.Sample{}, missed: map[string]int{},
				silent: map[string]time.Duration{}, requests: requestLog{perInstance: 1, nodes: map[string]*nodeRequests{}},
			}
			w.Changed = func(before, s history.Sample) {
				if before.Up && !s.Up {
					silent = w.SilentFor(s.Node)
				}
				replies = replies || !before.Up && s.Up
			}
			for _, s := range c.samples {
				now = s.at
				role := ""
				if s.up {
					role = "slave"
				}
				w.add(history.Sample{Node: "n1", Sent: s.sent, Time: s.at, Up: s.up, Role: role}, false)
			}
			if silent != c.silent || replies != c.replies {
				t.Errorf("silent for %v, replies again %v; want %v and %v", silent, replies, c.silent, c.replies)
			}
		})
	}
}
