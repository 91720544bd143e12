package stalls

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
)

// fakeHalts is a table of processes: their states at the present beat.
type fakeHalts struct {
	halted map[int]string
	waited map[int]time.Duration
}

func (f *fakeHalts) Find([]int)                   {}
func (f *fakeHalts) Halted(pid int) string        { return f.halted[pid] }
func (f *fakeHalts) Waited(pid int) time.Duration { return f.waited[pid] }

// TestHaltedClients: a process that two beats see halted is noted once for each of its clients, from the last beat that
// saw it run to the first that sees it run again. One beat that is not late, or a fault that has stopped it, is none.
func TestHaltedClients(t *testing.T) {
	type note struct {
		Target, Detail string
		Lasted         time.Duration
	}
	const stopped = "stopped by a signal"
	const late = "late" // no beat, but time that passes before the next one
	for _, test := range []struct {
		name   string
		states []string // of process 7, by beat
		paused []bool   // whether a fault stops it at that beat
		waited time.Duration
		want   []note
	}{
		{"runs", []string{"", "", ""}, nil, 0, nil},
		{"one late beat", []string{"", late, stopped, late, ""}, nil, 0, []note{
			{"client:0", stopped + ", not by a fault of the run", 2*heartbeatEvery + 2*stalledFor},
			{"client:1", stopped + ", not by a fault of the run", 2*heartbeatEvery + 2*stalledFor}}},
		{"one beat", []string{"", stopped, ""}, nil, 0, nil},
		{"three beats", []string{"", stopped, stopped, stopped, "", ""}, nil, 0, []note{
			{"client:0", stopped + ", not by a fault of the run", 4 * heartbeatEvery},
			{"client:1", stopped + ", not by a fault of the run", 4 * heartbeatEvery}}},
		{"by a fault", []string{"", stopped, stopped, stopped, ""}, []bool{false, true, true, true}, 0, nil},
		{"until the end", []string{"", stopped, stopped}, nil, 0, []note{
			{"client:0", stopped + ", not by a fault of the run", 2 * heartbeatEvery},
			{"client:1", stopped + ", not by a fault of the run", 2 * heartbeatEvery}}},
		{"waits a little", make([]string, 21), nil, stalledFor, nil},
		{"waits for a processor", make([]string, 21), nil, 1500 * time.Millisecond, []note{
			{"client:0", "it waited 1.50 s for a processor", 1500 * time.Millisecond},
			{"client:1", "it waited 1.50 s for a processor", 1500 * time.Millisecond}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var notes []note
			var now time.Duration
			var pauses uint32
			halts := &fakeHalts{halted: map[int]string{}, waited: map[int]time.Duration{7: test.waited}}
			c := haltedClients{halts: halts, Watch: Watch{
				Clock: &Clock{History: func() time.Duration { return now }},
				Processes: func() []Process {
					return []Process{{PID: 7, Clients: []int{0, 1}, Pauses: func() uint32 { return pauses }}}
				},
				Note: func(f string, v *history.FaultValue) {
					if f != history.ClientStalled || v.Phase != history.Noted {
						t.Errorf("note %s, %+v", f, v)
					}
					notes = append(notes, note{v.Target, v.Detail, v.Lasted})
				},
			}}
			for i, state := range test.states {
				if state == late {
					now += stalledFor
					continue
				}
				if paused := i < len(test.paused) && test.paused[i]; paused != (pauses%2 == 1) {
					pauses++
				}
				halts.halted[7] = state
				c.beat()
				now += heartbeatEvery
			}
			now -= heartbeatEvery
			c.end()
			if diff := cmp.Diff(test.want, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
