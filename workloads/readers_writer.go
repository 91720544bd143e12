package workloads

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
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
	keys := e.Params.KeyNames()
	for going(ctx, stop) && e.Session.Alive() {
		key, mode := keys[e.Rand.IntN(len(keys))], "read"
		if e.Rand.IntN(readersOf) == 0 {
			mode = "write"
		}
		h, got := e.Session.Acquire(ctx, Want{Key: key, Mode: mode, Lease: e.Params.Lease, Wait: e.wait()})
		if got != history.OK {
			pause(ctx, stop, backoff(e))
			continue
		}
		read := e.Guard.Read(key)
		worked := e.Session.Work(ctx, h, e.Params.Hold+chance(e, e.Params.Jitter))
		if worked == history.OK && mode == "write" {
			e.Session.Touch(h, e.Guard, read)
		}
		e.Session.Release(ctx, h)
		pause(ctx, stop, e.Params.Think+chance(e, e.Params.Jitter))
	}
}
