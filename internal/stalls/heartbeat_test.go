package stalls

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
)

// TestLateBeats: the latest beat that is no stall is how late a timer ran.
func TestLateBeats(t *testing.T) {
	b := heartbeat{note: func(string, *history.FaultValue) {}}
	for _, passed := range []time.Duration{heartbeatEvery, 170 * time.Millisecond, 2 * stalledFor, 60 * time.Millisecond} {
		b.beat(passed, passed)
	}
	if want := 120 * time.Millisecond; b.late != want {
		t.Errorf("late by %v, want %v", b.late, want)
	}
}

// TestHeartbeat: a late beat is a stall, and a wall clock that is ahead is a machine that slept.
func TestHeartbeat(t *testing.T) {
	type beat struct{ passed, wall time.Duration }
	const ms = time.Millisecond
	for _, test := range []struct {
		name  string
		beats []beat
		want  []time.Duration // FaultValue.Lasted of the notes
		slept time.Duration
	}{
		{"in time", []beat{{50 * ms, 50 * ms}, {80 * ms, 81 * ms}}, nil, 0},
		{"a busy machine", []beat{{500 * ms, 500 * ms}}, nil, 0},
		{"stopped for three seconds", []beat{{50 * ms, 50 * ms}, {3050 * ms, 3050 * ms}, {50 * ms, 50 * ms}},
			[]time.Duration{3050 * ms}, 0},
		{"the machine slept for an hour", []beat{{60 * ms, time.Hour}}, []time.Duration{60 * ms}, time.Hour - 60*ms},
		{"the clock was set back", []beat{{50 * ms, -time.Hour}}, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var notes []time.Duration
			b := heartbeat{note: func(f string, v *history.FaultValue) {
				notes = append(notes, v.Lasted)
				if f != history.HarnessStalled || v.Phase != history.Noted || v.Target != "harness" || v.Detail == "" {
					t.Errorf("note %s, %+v", f, v)
				}
			}}
			for _, beat := range test.beats {
				b.beat(beat.passed, beat.wall)
			}
			if diff := cmp.Diff(test.want, notes); diff != "" || b.slept != test.slept {
				t.Errorf("slept %v, notes (-want +got):\n%s", b.slept, diff)
			}
		})
	}
}
