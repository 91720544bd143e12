// Package stalls notices that the harness or a client did not run although no fault had stopped it: another program
// stopped it, the machine slept, or it had no processor to spare. It judges nothing: checkers read its notes.
//
// Read [Watch] first.
package stalls

import (
	"context"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/child"
)

// Watch observes the harness and the processes of its clients during one run.
type Watch struct {
	Clock     *Clock           // Run makes it stop while the harness is stopped
	Processes func() []Process // of the clients, now
	// Note records a stall that is over; f is an Event.F of package history. It is called concurrently.
	Note func(f string, v *history.FaultValue)
}

// Lateness has the delays of the machine in a run.
type Lateness struct {
	Slept time.Duration // the time that the machine slept; the clock of the history stopped meanwhile
	Late  time.Duration // the longest delay of a timer of the harness, without stalls
}

// Run notes every stall until ctx ends.
func (w Watch) Run(ctx context.Context) Lateness {
	var clients sync.WaitGroup
	defer clients.Wait()
	clients.Go(func() { w.watchClients(ctx) })
	ticker := time.NewTicker(heartbeatEvery)
	defer ticker.Stop()
	wall := func() time.Time { return time.Now().Round(0) } // it runs while the machine sleeps, too
	harness := heartbeat{note: w.Note}
	last, lastWall := w.Clock.History(), wall()
	w.Clock.beat(last, true)
	defer func() { w.Clock.beat(w.Clock.History(), false) }()
	for {
		select {
		case <-ctx.Done():
			return Lateness{harness.slept, harness.late}
		case <-ticker.C:
		}
		now, nowWall := w.Clock.History(), wall()
		w.Clock.beat(now, true)
		harness.beat(now-last, nowWall.Sub(lastWall))
		last, lastWall = now, nowWall
	}
}

// watchClients notes the stalls of clients until ctx ends.
func (w Watch) watchClients(ctx context.Context) {
	ticker := time.NewTicker(heartbeatEvery)
	defer ticker.Stop()
	began := w.Clock.History()
	clients := haltedClients{Watch: w, halts: &child.Halts{}, looked: began, counted: began}
	defer clients.end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			clients.beat()
		}
	}
}
