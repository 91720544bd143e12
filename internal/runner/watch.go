package runner

import (
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/rundir"
)

const watchEvery = 100 * time.Millisecond

// watch calls Options.Watch regularly until stop is called.
func (r *run) watch() (stop func()) {
	if r.Watch == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				r.notify()
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// notify calls Options.Watch with the status.
func (r *run) notify() {
	r.mu.Lock()
	phase, now, status := r.current, r.clock(), r.status
	r.mu.Unlock()
	if r.Watch == nil || phase == "" {
		return
	}
	s := Status{Remaining: r.Scenario.Duration}
	if status != nil {
		s = status()
	}
	s.Phase, s.Elapsed = phase, now
	r.Watch(s)
}

// setStatus makes f the source of the status.
func (r *run) setStatus(f func() Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = f
}

// phase ends the current phase and begins the next; "" begins none.
func (r *run) phase(name string) {
	r.mu.Lock()
	now := r.clock()
	if n := len(r.manifest.Phases); n > 0 && r.manifest.Phases[n-1].End == 0 {
		r.manifest.Phases[n-1].End = now
	}
	if name != "" {
		r.manifest.Phases = append(r.manifest.Phases, rundir.Phase{Name: name, Start: now})
	}
	r.current = name
	r.mu.Unlock()
	r.notify()
}
