package runner

import (
	"sync"
	"time"
)

// watchEvery is how often the display is told.
const watchEvery = 100 * time.Millisecond

// watch tells Options.Watch of the run until the function that it returns is called.
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
