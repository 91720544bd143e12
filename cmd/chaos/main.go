// Command chaos tests whether a distributed lock is safe when masters die,
// replicas are promoted, clients stall and replies are lost, and shows why it
// is not. It parses flags, calls internal/runner, scenarios and reports, prints
// the result and exits.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/lockchaos/lockchaos/internal/console"
)

func main() {
	abortBySignal()
	if info, ok := debug.ReadBuildInfo(); ok {
		version = versionOf(version, info)
	}
	os.Exit(run(os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// versionOf is linked, unless that is the default and the program was built by go install …@VERSION, which records the
// version but sets no flags.
func versionOf(linked string, info *debug.BuildInfo) string {
	if linked == unversioned && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return linked
}

// abortBySignal makes the Go runtime end the program with SIGABRT (exit code 134) when it aborts. By default it exits
// with 2, which here means inconclusive.
func abortBySignal() { debug.SetTraceback("crash") }

// run is the program without the call of os.Exit.
func run(args []string, io streams) (code int) {
	io.err = console.NewOutput(io.err)
	defer func() {
		if defect := recover(); defect != nil {
			io.note("chaos: internal error: %v\n%s", defect, debug.Stack())
			code = exitInternal
		}
	}()
	if err := checkMemory(); err != nil {
		return exitCode(err, io)
	}
	out := &checkedOutput{Writer: io.out}
	io.out = out
	root := newRoot(io)
	root.SetArgs(args)
	return exitCode(out.check(root.ExecuteContext(context.Background())), io)
}

// sameSignal is how long after a signal others are taken as the same: timeout(1) sends its signal to the program, and
// then to the process group of the program.
const sameSignal = 200 * time.Millisecond

// interruptible returns a context that is canceled by the first SIGINT,
// SIGTERM or SIGHUP, so that a run heals its faults and writes its report.
// (Commands that start nothing keep the default action.) The second signal ends
// the program at once: the kernel kills its children (PR_SET_PDEATHSIG), and
// chaos clean removes the files that are left.
func interruptible(ctx context.Context, io streams) (context.Context, context.CancelFunc) {
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
		io.note("interrupted: healing faults, stopping servers, writing the report (interrupt again to exit at once)")
		cancel()
		time.Sleep(sameSignal)
		for len(signals) > 0 {
			<-signals
		}
		if _, ok := <-signals; ok {
			io.note("exiting without a report; `chaos clean` removes what the run left behind")
			os.Exit(exitInterrupted)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipe)
		close(signals)
		cancel()
	}
}
