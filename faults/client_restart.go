package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
)

// client-restart is a program that crashes and is started again: it knows nothing of its former holds, and may use the
// same names of owners. It must neither use nor release the locks of the dead process.
var clientRestartSpec = clientFault(Spec{
	Name: "client-restart",
	Doc: "kills a client's process (SIGKILL) and starts it again, at once or after a while (for), with the same " +
		"owner names.",
	Source:  "redis.io, Distributed Locks: the value of a lock must be unique across all clients and all lock requests",
	Class:   history.FaultRestarts,
	Object:  history.ObjectProcess,
	Verb:    "was killed",
	OneShot: true,
}, "process exited", Clients.Crash, func(ctx context.Context, c Clients, client int) (string, error) {
	return "the process was started again", c.StartAgain(ctx, client)
})
