package workload

import (
	"context"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
)

// Actor is one client of a workload for locks of any kind: its requests fit the lock, and act on [Actor.Key]. It is
// for one goroutine.
type Actor struct {
	Env
	Context context.Context // ends only if the run is abandoned
	Stop    <-chan struct{} // closed: finish
	Keys    []string        // that all clients use
	OwnKey  string          // that no other client uses; "": the workload has none
	Key     string          // of the present requests
}

// NewActor returns the client of e, with the keys that the parameters have for its workload.
func NewActor(ctx context.Context, stop <-chan struct{}, e Env) Actor {
	a := Actor{Env: e, Context: ctx, Stop: stop, Keys: e.Params.SharedKeys()}
	if e.Params.ownKeys() {
		a.OwnKey = e.Params.ownKey(e.Session.Number())
	}
	return a
}

const (
	// BeyondSlack is longer than the checkers allow a lock to be late, unless the machine was so busy that the slack of
	// the run is longer (checker.Options.Slack): the lock is judged less strictly then.
	BeyondSlack = 1200 * time.Millisecond
	// BeyondQueue is the time after which a request certainly stands in a queue (checker.Options.QueueDelay).
	BeyondQueue = 600 * time.Millisecond
)

// WatchValidity makes the session of a lock that reports no loss watch the validity of its holds, and returns the
// promises of both.
func (a *Actor) WatchValidity() promise.Set {
	if a.Can.Has(promise.ReportsLoss) || a.Can.Has(promise.Unleased) {
		return a.Can
	}
	a.Session.WatchValidity()
	return a.Can.With(promise.ReportsLoss)
}

// KnowsLosses reports whether the client learns that a hold has ended with its lease.
func (a *Actor) KnowsLosses() bool { return a.Can.Has(promise.ReportsLoss) || a.Session.KnowsLosses() }

// Chance is true one time out of n.
func (a *Actor) Chance(n int) bool { return a.Rand.IntN(n) == 0 }

// Over reports whether the client should release its holds and start nothing new.
func (a *Actor) Over() bool { return !Running(a.Context, a.Stop) || !a.Session.Alive() }

// Pause waits for d. It is not cut short at the end of the run: all clients would act at that instant, in any order.
func (a *Actor) Pause(d time.Duration) { Pause(a.Context, nil, d) }

// PauseInHold waits for a random part of Params.Hold.
func (a *Actor) PauseInHold() { a.Pause(Grain + a.Random(a.Params.Hold)) }

// NewOwner is the name of an owner that nobody has used before.
func (a *Actor) NewOwner() string { return a.Session.NewOwner() }

// Lease is the workload's lease or, some of the time, none if the lock renews by itself.
func (a *Actor) Lease() time.Duration {
	if a.Params.Lease == 0 || a.Can.Has(promise.Watchdog) && a.Chance(4) {
		return 0
	}
	return a.Params.Lease
}

// ShortLease is a lease that ends within a sequence. On a shared key it is longer than a reply should take: a grant
// that arrives after its lease is given back and requested again, and others are refused meanwhile for no reason that
// the history shows.
func (a *Actor) ShortLease() time.Duration {
	lease := 100*time.Millisecond + a.Random(200*time.Millisecond)
	if a.Key != a.OwnKey {
		lease += 300 * time.Millisecond
	}
	return lease
}

// Writing is a request that excludes all others.
func (a *Actor) Writing(owner string, lease time.Duration) client.Acquire {
	r := client.Acquire{Key: a.Key, Owner: owner, Lease: lease}
	switch {
	case a.Can.Has(promise.Permits):
		r.Permits, r.Limit = a.Limit(), a.Limit()
	case a.Can.Has(promise.ReadWrite):
		r.Mode = "write"
	}
	return r
}

// Limit is the number of permits of a semaphore.
func (a *Actor) Limit() int { return max(1, a.Params.Permits) }

// Acquire waits for the lock as long as the workload says; not for long on the client's own key, where nobody else can
// release it.
func (a *Actor) Acquire(r client.Acquire) session.Hold {
	r.Wait = a.AcquireTimeout()
	if a.Key == a.OwnKey {
		r.Wait = min(r.Wait, 2*a.Params.Hold+Grain)
	}
	h := a.Await(r)
	if !h.Granted() {
		a.Pause(a.Backoff())
	}
	return h
}

// Try is a try, or an acquire that hardly waits if the lock has none.
func (a *Actor) Try(r client.Acquire) session.Hold {
	if a.Can.Has(promise.Try) {
		h, answer := a.Session.Try(a.Context, r)
		return granted(h, answer.Outcome)
	}
	r.Wait = Grain
	return a.Await(r)
}

// Await waits for the lock as long as the request says.
func (a *Actor) Await(r client.Acquire) session.Hold { return granted(a.Session.Acquire(a.Context, r)) }

// granted is the hold of a request, or none if it was not granted.
func granted(h session.Hold, outcome history.Type) session.Hold {
	if outcome != history.OK {
		return session.Hold{}
	}
	return h
}

// Patient is a request that waits as long as the workload says.
func (a *Actor) Patient(r client.Acquire) client.Acquire {
	r.Wait = a.AcquireTimeout()
	return r
}

// Several is a request for some of the shared keys.
func (a *Actor) Several(r client.Acquire) client.Acquire {
	r.Keys = a.SomeKeys(a.Keys)
	r.Key = r.Keys[0]
	return r
}

// Use waits for the lock, keeps it for as long as keep takes, and releases it.
func (a *Actor) Use(r client.Acquire, keep func()) {
	if h := a.Await(r); h.Granted() {
		keep()
		a.Release(h)
	}
}

// Release releases h; a request that was not granted has no hold to release.
func (a *Actor) Release(h session.Hold) {
	if h.Granted() {
		a.Session.Release(a.Context, h)
	}
}

// ReleaseRenewed releases a hold that was left to its lease, which began at or before granted, if the lock has renewed
// it beyond that: at some locks each hold lasts as long as its client.
func (a *Actor) ReleaseRenewed(h session.Hold, granted time.Time) {
	if !h.Granted() || !a.Can.Has(promise.Watchdog|promise.ReportsLoss) {
		return
	}
	a.Pause((h.Lease + BeyondSlack - time.Since(granted)).Truncate(Grain))
	if !a.Session.Lost(h) {
		a.Release(h)
	}
}

// Reading is a request to read.
func (a *Actor) Reading(owner string, lease time.Duration) client.Acquire {
	r := a.Writing(owner, lease)
	r.Mode = "read"
	return r
}

// NewWrite is a request of a new owner that excludes all others, with the lease of the workload.
func (a *Actor) NewWrite() client.Acquire { return a.Writing(a.NewOwner(), a.Lease()) }

// NewRead is a request of a new owner to read, with the lease of the workload.
func (a *Actor) NewRead() client.Acquire { return a.Reading(a.NewOwner(), a.Lease()) }

// SomeKeys are two or three of keys, in any order.
func (a *Actor) SomeKeys(keys []string) []string {
	all := slices.Clone(keys)
	a.Rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(len(all), 2+a.Rand.IntN(2))]
}
