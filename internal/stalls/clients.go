package stalls

import (
	"maps"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// starvedEvery is the interval at which the harness reads the times that clients have waited for a processor. A client
// that waited for half of the interval (stalledFor) has stalled.
const starvedEvery = time.Second

// statesPerBeat is the number of processes whose states each beat can read; one takes up to 80 µs on a busy machine.
// With more processes the states are read less often.
const statesPerBeat = 32

// halts reads the states of processes; it is a [child.Halts].
type halts interface {
	Find(leaders []int)
	Halted(pid int) string
	Waited(pid int) time.Duration
}

// Process is the operating-system process of some clients.
type Process struct {
	PID     int
	Clients []int
	Pauses  func() uint32 // the number of times that faults have stopped or resumed it; odd: it is stopped
}

// haltedClients finds the stalls of clients. It reads files about every process of the machine, which takes seconds if
// the machine is busy, so the heartbeat of the harness does not wait for it.
type haltedClients struct {
	Watch
	halts   halts
	halted  map[int]*halt // by process number
	beats   int
	looked  time.Duration // when the states were last read
	counted time.Duration // when the waits for a processor were last read
}

// halt is a process that is not running.
type halt struct {
	process Process
	from    time.Duration // the last time at which it ran
	why     string
	seen    int // number of readings that found it
}

// beat is called every heartbeatEvery, or later if the one before took longer.
func (c *haltedClients) beat() {
	now, processes := c.Clock.History(), c.Processes()
	leaders := make([]int, len(processes))
	for i, p := range processes {
		leaders[i] = p.PID
	}
	c.halts.Find(leaders)
	if c.beats++; c.beats > len(processes)/statesPerBeat {
		c.look(processes)
		c.beats, c.looked = 0, now
	}
	if since := now - c.counted; since >= starvedEvery {
		c.starved(processes, since)
		c.counted = now
	}
}

// look reads the states of all processes. A halt that one look alone sees is shorter than the time between two of them.
// It matters if that was long, as on a machine so busy that the looks are late.
func (c *haltedClients) look(processes []Process) {
	halted := make(map[int]*halt)
	for _, p := range processes {
		before := p.Pauses()
		why := c.halts.Halted(p.PID)
		if why == "" || before%2 == 1 || p.Pauses() != before {
			continue
		}
		h := c.halted[p.PID]
		if h == nil {
			h = &halt{process: p, from: c.looked, why: why}
		}
		h.seen++
		halted[p.PID] = h
		delete(c.halted, p.PID)
	}
	c.end()
	c.halted = halted
}

// end notes the halts that are over.
func (c *haltedClients) end() {
	for _, pid := range slices.Sorted(maps.Keys(c.halted)) {
		h := c.halted[pid]
		if lasted := c.Clock.History() - h.from; h.seen > 1 || lasted > stalledFor {
			c.noteAll(h.process, lasted, h.why+", not by a fault of the run")
		}
	}
	c.halted = nil
}

// starved notes the processes that waited for a processor in most of the time since the last reading.
func (c *haltedClients) starved(processes []Process, since time.Duration) {
	for _, p := range processes {
		if waited := c.halts.Waited(p.PID); waited > stalledFor {
			c.noteAll(p, max(since, waited), "it waited "+format.Duration(waited)+" for a processor")
		}
	}
}

func (c *haltedClients) noteAll(p Process, lasted time.Duration, why string) {
	for _, i := range p.Clients {
		c.Note(history.ClientStalled,
			&history.FaultValue{Phase: history.Noted, Target: cluster.ClientName(i), Lasted: lasted, Detail: why})
	}
}
