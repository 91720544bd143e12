package workloads

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// mutex is the common use of a lock: acquire, read, work, write, release. A client completes its critical section even
// if it loses the lock meanwhile: a write that was sent cannot be recalled, and the guarded resource shows whether it
// does harm.
var mutexSpec = workload.Spec{
	Name:   workload.Mutex,
	Doc:    "every client in a loop: acquire a key, read a guarded counter, work, write it with the token, release.",
	Source: "jepsen-io/etcd lock-set; Kleppmann 2016",
	Client: mutexClient,
}

func mutexClient(ctx context.Context, stop <-chan struct{}, e workload.Env) {
	loop(ctx, stop, e, true, func(*client.Acquire) {})
}

// loop is the client of every workload of this package but latch. Until stop is closed it acquires a key, as draw has
// completed the request, reads the guarded counter, works, writes the counter if the workload and the mode of the hold
// allow it, and releases.
func loop(ctx context.Context, stop <-chan struct{}, e workload.Env, writes bool, draw func(*client.Acquire)) {
	keys := e.Params.KeyNames()
	for workload.Running(ctx, stop) && e.Session.Alive() {
		a := client.Acquire{Key: keys[e.Rand.IntN(len(keys))], Lease: e.Params.Lease}
		draw(&a)
		a.Wait = e.AcquireTimeout()
		h, outcome := e.Session.Acquire(ctx, a)
		if outcome != history.OK {
			workload.Pause(ctx, stop, e.Backoff())
			continue
		}
		read, work := e.Guard.Read(a.Key), e.Params.Hold+e.Random(e.Params.Jitter)
		if tooShort(h, work, e.Params) {
			e.Session.Release(ctx, h)
			workload.Pause(ctx, stop, e.Backoff())
			continue
		}
		worked := e.Session.Work(ctx, h, work)
		if worked == history.OK && writes && a.Mode != "read" {
			e.Session.Touch(h, e.Guard, read)
		}
		e.Session.Release(ctx, h)
		workload.Pause(ctx, stop, e.Params.Think+e.Random(e.Params.Jitter))
	}
}

// tooShort reports whether a grant came so late that its validity ends during the work, although the work of this
// workload fits into a lease. The client then releases it (redis.io, Distributed Locks: the validity is the time for
// the work).
func tooShort(h session.Hold, work time.Duration, p workload.Params) bool {
	return p.Lease > p.Hold+p.Jitter && h.Valid > 0 && h.Valid <= work
}
