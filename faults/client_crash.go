package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
)

// client-crash kills a client permanently: its lock is never released and must become free when the lease expires.
// Its watchdog dies with it.
var clientCrashSpec = clientFault(Spec{
	Name:    "client-crash",
	Doc:     "kills a client's process (SIGKILL); it is not restarted.",
	Source:  "redis.io, Distributed Locks, liveness property A: locks of crashed clients become free",
	Class:   history.FaultKills,
	Object:  history.ObjectProcess,
	Verb:    "was killed",
	OneShot: true,
}, "process exited", Clients.Crash, func(context.Context, Clients, int) (string, error) {
	return history.NothingToUndo, nil
})
