package workloads

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// mutex is what most people use a lock for: take it, read, think, write, give
// it back, again. The critical section goes to its end even if the client is
// told meanwhile that it lost the lock: a write that is under way cannot be
// called back, and whether it does harm is what the guarded resource shows.
var mutexSpec = Spec{
	Name:   "mutex",
	Doc:    "every client again and again: acquire a key, read a guarded counter, work, write it with the token, release.",
	Source: "jepsen-io/etcd lock-set; Kleppmann 2016",
	Client: mutexClient,
}

func mutexClient(ctx context.Context, stop <-chan struct{}, e Env) {
	again(ctx, stop, e, true, func(*client.Acquire) {})
}

// again is what the clients of every workload do until stop is closed: ask for
// a key, read the guarded counter, work, write it if the workload and the mode
// of the hold do, and release. draw says what else is wanted.
func again(ctx context.Context, stop <-chan struct{}, e Env, writes bool, draw func(*client.Acquire)) {
	keys := e.Params.KeyNames()
	for going(ctx, stop) && e.Session.Alive() {
		want := client.Acquire{Key: keys[e.Rand.IntN(len(keys))], Lease: e.Params.Lease}
		draw(&want)
		want.Wait = e.wait()
		h, got := e.Session.Acquire(ctx, want)
		if got != history.OK {
			pause(ctx, stop, backoff(e))
			continue
		}
		read := e.Guard.Read(want.Key)
		worked := e.Session.Work(ctx, h, e.Params.Hold+chance(e, e.Params.Jitter))
		if worked == history.OK && writes && want.Mode != "read" {
			e.Session.Touch(h, e.Guard, read)
		}
		e.Session.Release(ctx, h)
		pause(ctx, stop, e.Params.Think+chance(e, e.Params.Jitter))
	}
}

// grain is what durations drawn by chance are whole multiples of: in a
// simulation everybody who acts keeps to instants of his own by it.
const grain = time.Millisecond

// backoff keeps a client that is refused at once (a dead master) from asking
// thousands of times a second.
func backoff(e Env) time.Duration { return 10*time.Millisecond + chance(e, 40*time.Millisecond) }

func chance(e Env, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(e.Rand.Int64N(int64(most))).Truncate(grain)
}

func going(ctx context.Context, stop <-chan struct{}) bool {
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
