package faults

import (
	"context"
	"fmt"
)

// client-crash kills a lock user for good: what it held is never released and must become free when its lease expires.
// Its watchdog dies with it.
var clientCrashSpec = Spec{
	Name:         "client-crash",
	Doc:          "kills a client's process (SIGKILL); it is not restarted.",
	Source:       "redis.io, Distributed Locks, liveness property A: locks of crashed clients become free",
	Targets:      []Target{Holder, Waiter, Client},
	OneShot:      true,
	WholeProcess: true,
	Lacks:        lacksNothing,
	Inject: func(_ context.Context, env Env, target string) (Injection, error) {
		n, err := clientOf(target)
		if err != nil {
			return nil, err
		}
		if err := env.Clients.Crash(n); err != nil {
			return nil, fmt.Errorf("killing client %d: %w", n, err)
		}
		return &injection{observe: already("process exited"), undo: nothingToUndo}, nil
	},
}
