package locktest

import (
	"testing"
	"time"
)

const (
	stallPart  = 4 // a delay of a quarter of the lease can prevent a renewal that is due after a third
	stallTries = 8
	tickEvery  = 20 * time.Millisecond
)

// unlessStalled calls do, whose error is that a renewed hold was lost. If this process, and with it the lock under
// test, meanwhile waited for a processor for long enough, the error proves nothing about the lock, and do is repeated.
func (s *fixture) unlessStalled(t *testing.T, do func() error) {
	t.Helper()
	for try := 1; ; try++ {
		stop := measureStalls()
		err := do()
		stalled := stop()
		if err == nil {
			return
		}
		if stalled < s.spec.Lease/stallPart || try == stallTries {
			t.Fatalf("the hold ended: %v (stalls of this process: %v)", err, stalled)
		}
		t.Logf("REPEATED after try %d of at most %d: this process did not run for %v: %v", try, stallTries, stalled, err)
	}
}

// measureStalls begins to measure for how long in all this process does not run. Several short stalls delay a renewal
// as one long stall does: each of its steps (timer, request, server, reply) waits for a processor.
func measureStalls() (stop func() time.Duration) {
	ended, sum := make(chan struct{}), make(chan time.Duration)
	go func() {
		tick := time.NewTicker(tickEvery)
		defer tick.Stop()
		stalled, last := time.Duration(0), time.Now()
		note := func() {
			now := time.Now()
			stalled += max(now.Sub(last)-2*tickEvery, 0)
			last = now
		}
		for {
			select {
			case <-tick.C:
				note()
			case <-ended:
				note()
				sum <- stalled
				return
			}
		}
	}()
	return func() time.Duration {
		close(ended)
		return <-sum
	}
}
