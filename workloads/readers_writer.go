package workloads

import (
	"context"

	"github.com/lockchaos/lockchaos/client"
)

// readersWriter is what a readers-writer lock is used for: most look, some
// change. Who looks spends its time in the lock and writes nothing; who changes
// does so as in the workload mutex. Whether a writer was with anybody is judged
// from who was in the lock when, and by the guarded counter.
var readersWriterSpec = Spec{
	Name: "readers-writer",
	Doc: "every client again and again: acquire a key for reading, three times of four, or for writing, work, " +
		"write the guarded counter if it may, release.",
	Source: "Courtois, Heymans, Parnas 1971; Redisson's RReadWriteLock",
	Client: readersWriterClient,
}

// readersOf is of how many acquires all but one are for reading.
const readersOf = 4

func readersWriterClient(ctx context.Context, stop <-chan struct{}, e Env) {
	again(ctx, stop, e, true, func(a *client.Acquire) {
		a.Mode = "read"
		if e.Rand.IntN(readersOf) == 0 {
			a.Mode = "write"
		}
	})
}
