package runner

import (
	"context"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/stalls"
)

// watchStalls records the stalls of the harness and of clients until ctx ends. Virtual time passes only while the
// harness runs.
func (s *stage) watchStalls(ctx context.Context) {
	if s.run.Backend.Facts().Deterministic {
		return
	}
	s.lateness = stalls.Watch{Clock: s.clock, Processes: s.processes, Note: func(f string, v *history.FaultValue) {
		s.record.Note(history.Nemesis, f, "", &history.Value{Fault: v})
	}}.Run(ctx)
}

// processes are the processes of the clients. Several clients may share one.
func (s *stage) processes() (all []stalls.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := make(map[int]int) // by process number: its index
	for i, c := range s.clients {
		p, ok := c.(client.Stopper)
		if !ok {
			continue
		}
		pid := p.PID()
		if pid == 0 { // it has exited
			continue
		}
		n, known := at[pid]
		if !known {
			n, at[pid] = len(all), len(all)
			all = append(all, stalls.Process{PID: pid, Pauses: s.pauses[i].Load})
		}
		all[n].Clients = append(all[n].Clients, i)
	}
	return all
}
