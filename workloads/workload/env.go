package workload

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
)

// Env is the environment of one client of a workload.
type Env struct {
	Params  Params
	Session *session.Session
	Guard   *session.Guard
	Rand    *rand.Rand  // of this client alone, from the run's seed
	Seed    uint64      // of the run: choices drawn from it are the same for all clients
	Can     promise.Set // of the lock

	// Left is the remaining time of the run, which bounds acquire timeouts.
	Left func() time.Duration
}

// AcquireTimeout is the acquire timeout now, a whole number of milliseconds, at least one: in a simulation, the waits
// of all clients would otherwise end at one instant, the end of the run.
func (e Env) AcquireTimeout() time.Duration {
	return max(Grain, min(e.Params.Wait, e.Left()).Truncate(Grain))
}

// Begins waits until client i may start (see Params.Ramp). It returns false if the run ends before that.
func (p Params) Begins(ctx context.Context, stop <-chan struct{}, i int) bool {
	if p.Ramp > 0 && p.Clients > 1 {
		Pause(ctx, stop, (p.Ramp * time.Duration(i) / time.Duration(p.Clients-1)).Truncate(Grain))
	}
	return Running(ctx, stop)
}

// Grain divides every random duration, so that actors of a simulation stay in their scheduler slots.
const Grain = time.Millisecond

// Backoff limits the retries of a client whose acquires fail at once, such as on a dead master.
func (e Env) Backoff() time.Duration { return 10*time.Millisecond + e.Random(40*time.Millisecond) }

// Random is a random duration below limit.
func (e Env) Random(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(e.Rand.Int64N(int64(limit))).Truncate(Grain)
}

// Running is false after stop was closed or ctx has ended.
func Running(ctx context.Context, stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	case <-ctx.Done():
		return false
	default:
		return true
	}
}

// Pause waits for d, or until stop is closed or ctx has ended.
func Pause(ctx context.Context, stop <-chan struct{}, d time.Duration) {
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
