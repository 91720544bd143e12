package workloads

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// mutex is the common use of a lock: acquire, read, work, write, release. A client completes its critical section even
// if it loses the lock meanwhile: a write that was sent cannot be recalled, and the guarded resource shows whether it
// does harm.
var mutexSpec = Spec{
	Name:   "mutex",
	Doc:    "every client in a loop: acquire a key, read a guarded counter, work, write it with the token, release.",
	Source: "jepsen-io/etcd lock-set; Kleppmann 2016",
	Client: mutexClient,
}

func mutexClient(ctx context.Context, stop <-chan struct{}, e Env) {
	loop(ctx, stop, e, true, func(*client.Acquire) {})
}

// loop is the client of every workload. Until stop is closed it acquires a key, as draw has completed the request,
// reads the guarded counter, works, writes the counter if the workload and the mode of the hold allow it, and
// releases.
func loop(ctx context.Context, stop <-chan struct{}, e Env, writes bool, draw func(*client.Acquire)) {
	keys := e.Params.KeyNames()
	for running(ctx, stop) && e.Session.Alive() {
		a := client.Acquire{Key: keys[e.Rand.IntN(len(keys))], Lease: e.Params.Lease}
		draw(&a)
		a.Wait = e.wait()
		h, outcome := e.Session.Acquire(ctx, a)
		if outcome != history.OK {
			pause(ctx, stop, backoff(e))
			continue
		}
		read, work := e.Guard.Read(a.Key), e.Params.Hold+random(e, e.Params.Jitter)
		if tooShort(h, work, e.Params) {
			e.Session.Release(ctx, h)
			pause(ctx, stop, backoff(e))
			continue
		}
		worked := e.Session.Work(ctx, h, work)
		if worked == history.OK && writes && a.Mode != "read" {
			e.Session.Touch(h, e.Guard, read)
		}
		e.Session.Release(ctx, h)
		pause(ctx, stop, e.Params.Think+random(e, e.Params.Jitter))
	}
}

// tooShort reports whether a grant came so late that its validity ends during the work, although the work of this
// workload fits into a lease. The client then releases it (redis.io, Distributed Locks: the validity is what is left
// for the work).
func tooShort(h Hold, work time.Duration, p Params) bool {
	return p.Lease > p.Hold+p.Jitter && h.Valid > 0 && h.Valid <= work
}

// grain divides every random duration, so that actors of a simulation stay in their scheduler slots.
const grain = time.Millisecond

// backoff limits the retries of a client whose acquires fail at once, such as on a dead master.
func backoff(e Env) time.Duration { return 10*time.Millisecond + random(e, 40*time.Millisecond) }

// random is a random duration below limit.
func random(e Env, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(e.Rand.Int64N(int64(limit))).Truncate(grain)
}

func running(ctx context.Context, stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	case <-ctx.Done():
		return false
	default:
		return true
	}
}

func pause(ctx context.Context, stop <-chan struct{}, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-stop:
	case <-ctx.Done():
	}
}
