// Command chaos finds out whether a distributed lock keeps its promise when
// masters die, replicas are promoted, clients stall and replies are lost, and
// shows in one picture why it did not. It is thin: it parses, calls, prints
// and exits; what it calls is in internal/runner, scenarios and reports.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// run is the whole program but for the exit.
func run(args []string, io streams) int {
	root := newRoot(io)
	root.SetArgs(args)
	return exitCode(root.ExecuteContext(context.Background()), io)
}

// interruptible is a context that the first Ctrl-C ends, so that everything a
// run has begun is healed and reported. (Other commands have begun nothing, and
// end as any program does.) The second one ends the program at once: children get
// their kill from the kernel, and chaos clean removes what files are left.
func interruptible(ctx context.Context, io streams) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup wants the run to live on
		signal.Notify(signals, syscall.SIGHUP)
	}
	// A reader that is gone (| head -1, a terminal that was closed) must not end a run before it has healed
	// and written its report: with somebody listening the write fails instead. To ignore the signal would do
	// as well, but children inherit that.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		io.note("interrupted: healing faults, ending servers and writing the report (again to force)")
		cancel()
		if _, ok := <-signals; ok {
			io.note("forced: nothing more is written; `chaos clean` removes what is left")
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
