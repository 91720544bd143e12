// Package bubble runs a function in virtual time in an ordinary program: when every goroutine of the function is
// blocked, the clock jumps to the next timer.
//
// It is package testing/synctest without a test. Read [Run] first. A function in a bubble must not do real input or
// output, and must not wait for a sync.Mutex whose holder waits for time to pass: then virtual time stalls
// (golang/go#77687). A [Watchdog] reports the goroutine that causes it.
package bubble

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

// Run runs f in a bubble and returns when f and every goroutine that it started have ended, at most a virtual minute
// after f. The clock starts at midnight UTC 2000-01-01. A panic in f, a deadlock, and goroutines left
// behind are returned as an error. A panic in another goroutine of the bubble ends the program, as anywhere in Go.
// Several bubbles may run at the same time.
func Run(f func()) error {
	done := make(chan error, 1)
	go func() { // a failing T ends the goroutine that it runs on
		r := &runner{f: f}
		defer func() { done <- r.outcome(recover()) }()
		// T's zero value suffices: Test uses its name, its locks and its parents, which may be nil. Check
		// verifies that.
		synctest.Test(new(testing.T), func(*testing.T) { r.inside() })
	}()
	return <-done
}

// ErrLeftBehind is the error of [Run] if f has returned but a goroutine that it started never ends.
var ErrLeftBehind = errors.New("goroutines are left behind")

// runner is the outcome of one run of f.
type runner struct {
	f      func()
	failed error // f panicked
	ended  bool  // f returned
}

// inside runs f on another goroutine: T's own must not end early, because a zero T lacks the state that Test then
// needs.
func (r *runner) inside() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.failed = fmt.Errorf("panic in virtual time: %v\n%s", p, debug.Stack())
			}
		}()
		r.f()
		r.ended = true
		time.Sleep(exitGrace)
	}()
	<-done
}

// exitGrace is the virtual time that passes after f has returned, for goroutines that end by themselves: go-redis'
// connection retry checks once a second whether to exit, and a lock whose client was killed may send a release for as
// long as its timeout.
const exitGrace = time.Minute

// outcome is the error of the run; p is the value of Test's panic.
func (r *runner) outcome(p any) error {
	switch {
	case r.failed != nil:
		return r.failed
	case p != nil && r.ended:
		return fmt.Errorf("running in virtual time: %w: %v%s", ErrLeftBehind, p, remaining())
	case p != nil: // "deadlock: main bubble goroutine has exited but blocked goroutines remain", for example
		return fmt.Errorf("running in virtual time: %v%s", p, remaining())
	case !r.ended:
		return errors.New("running in virtual time: the function ended its goroutine (runtime.Goexit)")
	}
	return nil
}

// checkWait is how long an hour of virtual time may take in Check: also on a busy machine, and much less than an hour.
const checkWait = 30 * time.Second

// Check returns an error if virtual time does not work in this build: the package uses testing/synctest in a way
// that Go does not guarantee. It takes about a millisecond.
func Check() error {
	passed := time.Duration(0)
	done := make(chan error, 1)
	go func() {
		done <- Run(func() {
			start := time.Now()
			time.Sleep(time.Hour)
			passed = time.Since(start)
		})
	}()
	select {
	case err := <-done:
		if err == nil && passed != time.Hour {
			err = fmt.Errorf("a virtual hour lasted %v", passed)
		}
		if err != nil {
			return fmt.Errorf("virtual time does not work in this program, built with %s: %w; "+
				"build it with Go 1.26, or use real servers", runtime.Version(), err)
		}
		return nil
	case <-time.After(checkWait):
		return fmt.Errorf("virtual time does not pass in this program, built with %s: "+
			"build it with Go 1.26, or use real servers", runtime.Version())
	}
}
