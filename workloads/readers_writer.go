package workloads

import (
	"context"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// readers-writer: most clients read, some write. Readers write nothing; writers do as in workload mutex.
var readersWriterSpec = workload.Spec{
	Name: workload.ReadersWriter,
	Doc: "every client in a loop: acquire a key (three times out of four for reading, else for writing; with " +
		"workload.writers, that many clients only write and all others only read), work, write the guarded counter if " +
		"the acquire was for writing, release.",
	Source: "Courtois, Heymans, Parnas 1971; Redisson's RReadWriteLock",
	Needs:  promise.ReadWrite,
	Client: readersWriterClient,
}

// One of writerShare acquires is for writing.
const writerShare = 4

func readersWriterClient(ctx context.Context, stop <-chan struct{}, e workload.Env) {
	loop(ctx, stop, e, true, func(a *client.Acquire) {
		a.Mode = "read"
		write := e.Rand.IntN(writerShare) == 0
		if e.Params.Writers > 0 {
			write = e.Session.Number() < e.Params.Writers
		}
		if write {
			a.Mode = "write"
		}
	})
}
