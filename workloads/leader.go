package workloads

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// leader is the use of a lock for leader election. Unlike a client of mutex, the leader keeps the lock for many pieces
// of work, and writes nothing once it knows that it has lost the lock.
var leaderSpec = workload.Spec{
	Name: workload.Leader,
	Doc: "every client in a loop: campaign (acquire a key; a candidate that gives up inspects the lock, if it can), " +
		"lead (read a guarded counter, work, write it with the token, again and again; renew a lease that the " +
		"lock does not renew itself), and resign (release) after workload.term, or step down when the lock is lost.",
	Source: "Gray, Cheriton 1989; k8s.io/client-go/tools/leaderelection",
	Uses:   promise.Inspect | promise.Renew,
	Client: leaderClient,
}

func leaderClient(ctx context.Context, stop <-chan struct{}, e workload.Env) {
	a := workload.NewActor(ctx, stop, e)
	a.WatchValidity()
	for !a.Over() {
		a.Key = a.Keys[a.Rand.IntN(len(a.Keys))]
		h := a.Acquire(client.Acquire{Key: a.Key, Lease: a.Params.Lease})
		switch {
		case h.Granted() && lead(&a, h):
			a.Release(h)
		case !h.Granted() && a.Can.Has(promise.Inspect):
			a.Session.Inspect(ctx, a.Key)
		}
		if h.Granted() {
			workload.Pause(ctx, stop, a.Params.Think+a.Random(a.Params.Jitter))
		}
	}
}

// lead works as the leader until its term or the run is over. It returns false if the leader learns earlier that it has
// lost the lock.
func lead(a *workload.Actor, h session.Hold) bool {
	began, term := time.Now(), a.Params.Term
	for !a.Over() && !a.Session.Lost(h) && (term == 0 || time.Since(began) < term) {
		read := a.Guard.Read(h.Key)
		if a.Session.Work(a.Context, h, a.Params.Hold+a.Random(a.Params.Jitter)) != history.OK || a.Session.Lost(h) {
			break
		}
		if a.Session.Touch(h, a.Guard, read); !renewed(a, h) {
			return false
		}
	}
	return !a.Session.Lost(h)
}

// renewed renews a hold that the lock does not renew itself, if the lock has renewals. It returns false if the lock
// says that the hold is lost; after a renewal of unknown outcome, the hold lasts until its end is reported.
func renewed(a *workload.Actor, h session.Hold) bool {
	itself := a.Params.Lease == 0 && a.Can.Has(promise.Watchdog)
	return itself || !a.Can.Has(promise.Renew) ||
		a.Session.Renew(a.Context, h, a.Params.Lease).Outcome != history.Fail
}
