// Command chaos tests whether a distributed lock is safe when masters die,
// replicas are promoted, clients stall and replies are lost, and shows why it
// is not. It parses flags, calls internal/runner, scenarios and reports, prints
// the result and exits.
package main

import (
	"context"
	"os"
	"runtime/debug"
	"strings"

	"github.com/lockchaos/lockchaos/internal/console"
	"github.com/lockchaos/lockchaos/internal/interrupts"
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

// interruptible returns a context that is canceled by the first signal that interrupts a run. The second one ends the
// program; see package interrupts.
func interruptible(ctx context.Context, io streams) (context.Context, context.CancelFunc) {
	return interrupts.Context(ctx, func() {
		io.note("interrupted: healing faults, stopping servers, writing the report (interrupt again to exit at once)")
	}, func() {
		io.note("exiting without a report; `chaos clean` removes what the run left behind")
		os.Exit(exitInterrupted)
	})
}
