// Package interrupts ends long work at the signals that interrupt a program: the work heals its faults and writes its
// report. Commands that start nothing keep the default action.
package interrupts

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how long after a signal others are taken as the same: timeout(1) sends its signal to the program, and
// then to the process group of the program.
const sameSignal = 200 * time.Millisecond

// Context returns a context that is canceled by the first SIGINT, SIGTERM or SIGHUP, after first was called. The next
// signal calls second, which ends the program: the kernel kills its children (PR_SET_PDEATHSIG). Both are called from
// another goroutine. The caller calls the CancelFunc, which restores the default action.
func Context(ctx context.Context, first, second func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup sets it to ignored: the run is to outlive the terminal
		signal.Notify(signals, syscall.SIGHUP)
	}
	// With a handler for SIGPIPE, a write to a closed stdout (| head -1) returns EPIPE instead of ending the run
	// before its faults are healed. Ignoring the signal would do too, but children inherit that.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		first()
		cancel()
		for same := time.After(sameSignal); same != nil; {
			select {
			case _, ok := <-signals:
				if !ok {
					return
				}
			case <-same:
				same = nil
			}
		}
		if _, ok := <-signals; ok {
			second()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipe)
		close(signals)
		cancel()
	}
}
