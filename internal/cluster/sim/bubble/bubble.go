// Package bubble runs a function in virtual time from an ordinary program: time
// passes only when every goroutine of the function waits, and then at once.
//
// It is package testing/synctest without a test. Read [Run] first. A function in
// a bubble must not do real input or output, and must not wait for a sync.Mutex
// whose holder waits for time to pass: then time stands still for good
// (golang/go#77687). A [Watchdog] finds the culprit.
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

// Run runs f in a bubble and returns when f and every goroutine that it started
// have ended; those have five more virtual seconds for that. The clock starts at
// midnight UTC 2000-01-01. A panic in f, a deadlock, and goroutines left behind
// come back as an error. A panic in another goroutine of the bubble ends the
// program, as anywhere in Go. Several bubbles may run at the same time.
func Run(f func()) error {
	done := make(chan error, 1)
	go func() { // a goroutine of its own: a failing T ends the one that it runs on
		r := &runner{f: f}
		defer func() { done <- r.outcome(recover()) }()
		// T's zero value does: Test uses its name, its locks and its parents, which may be none. Check finds out
		// whether that is still so.
		synctest.Test(new(testing.T), func(*testing.T) { r.inside() })
	}()
	return <-done
}

// runner keeps how one run of f went.
type runner struct {
	f      func()
	failed error // f panicked
	ended  bool  // f returned
}

// inside runs f on one more goroutine: T's own must not end early, because what
// follows then needs what a zero T has not.
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

// afterglow is the virtual time that passes when f has returned: goroutines that
// look only now and then whether they are still wanted (go-redis', that tries to
// connect, once a second) come to their end in it.
const exitGrace = 5 * time.Second

// outcome is the error of the run; p is what Test panicked with.
func (r *runner) outcome(p any) error {
	switch {
	case r.failed != nil:
		return r.failed
	case p != nil: // "deadlock: main bubble goroutine has exited but blocked goroutines remain", and the like
		return fmt.Errorf("running in virtual time: %v%s", p, remaining())
	case !r.ended:
		return errors.New("running in virtual time: the function ended its goroutine (runtime.Goexit)")
	}
	return nil
}

// How long the check lets an hour of virtual time take, and how long it waits
// before it says so.
const (
	checkLimit = time.Second
	checkWait  = 10 * time.Second
)

// Check finds out whether this build of the program has virtual time at all: the
// package leans on testing/synctest in a way that Go does not promise to keep.
// It takes about a millisecond.
func Check() error {
	began := time.Now()
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
		took := time.Since(began)
		if err == nil && (passed != time.Hour || took > checkLimit) {
			err = fmt.Errorf("a virtual hour lasted %v of virtual and %v of real time", passed, took)
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
