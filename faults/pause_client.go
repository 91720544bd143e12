package faults

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/history"
)

// pause-client stops a lock user as a garbage collection, a live migration or a closed laptop does: every goroutine,
// timer and watchdog of that process is stopped while its lease at the server runs. When it resumes it does not know
// that time has passed.
var pauseClientSpec = clientFault(Spec{
	Name:   "pause-client",
	Doc:    "stops a client's whole process (SIGSTOP), timers and watchdog included, until healed.",
	Source: "Kleppmann 2016, How to do distributed locking: a stop-the-world pause",
	Class:  history.FaultPauses,
	Object: history.ObjectProcess,
	Verb:   "was paused",
}, "process stopped", Clients.Stop, func(_ context.Context, c Clients, client int) (string, error) {
	return fmt.Sprintf("client %d resumed", client), c.Continue(client)
})
