package waiters

import (
	"math/rand/v2"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// This file is about the rounds of workload waiters in which one client leads: it takes a key before all others, in a
// way that excludes them, and they come while it holds it; or, where others can share, they come first, and it waits
// for them while more come.

// roundKind is the kind of a round.
type roundKind int

const (
	noLeader  roundKind = iota
	lateLeads           // the leader comes after others, which share the lock
	releases            // the leader holds all of the lock, and releases it
	expires             // its lease ends
	isForced            // it is released by force
	admits              // it admits others while it keeps a part
	squeezed            // one permit becomes free while the first waiter wants all
	deserted            // the first waiters leave when it is released to them
	lapses              // several share the lock, and their leases end one after the other
)

// ledRound is a round with a leader.
type ledRound struct {
	kind      roundKind
	place     int  // how many clients come before this one, in a circle that begins at the leader
	straggled bool // some come long after the others
	together  bool // all come at once: their order at the server may differ from that in a program of several
	kept      bool // sharers keep the lock long enough to expose waiters that were not woken

	lease     time.Duration // of a leader that does not release
	forsaken  bool          // the first waiter, who knows when that lease ends, leaves just before
	succeeded bool          // after a forced release a reader leaves its hold to a short lease, and a writer waits for it
}

// leads reports whether this client leads.
func (r ledRound) leads() bool { return r.place == 0 }

// roundKinds are the kinds of round that the lock can have.
func (c *contender) roundKinds() []roundKind {
	list := []roundKind{noLeader, releases, deserted}
	for _, row := range []struct {
		kind roundKind
		can  bool
	}{
		{lateLeads, c.shares()},
		{expires, c.Can.Has(promise.ReportsLoss)},
		// Of a forced release it is not known which of several holders it meets.
		{isForced, c.Can.Has(promise.ForceRelease) && !c.Can.Has(promise.Permits)},
		{admits, c.Can.Has(promise.Downgrade) || c.Can.Has(promise.ManagesPermits)},
		{squeezed, c.Can.Has(promise.Permits) && c.Limit() > 1},
		{lapses, c.Can.Has(promise.ReportsLoss) &&
			(c.Can.Has(promise.ReadWrite) || c.Can.Has(promise.Permits) && c.Limit() > 1)},
	} {
		if row.can {
			list = append(list, row.kind)
		}
	}
	return list
}

// joinRound draws the round, which is the same for all clients; false: it has no leader. A kind of round comes again
// when all others were drawn, so that a short run has many of them.
func (c *contender) joinRound() (r ledRound, led bool) {
	if c.Can.Has(promise.Latch) {
		return r, false
	}
	n, kinds := uint64((c.Left()-1)/c.round()), c.roundKinds()
	among := uint64(len(kinds))
	r.kind = kinds[rand.New(rand.NewPCG(c.Seed, n/among)).Perm(len(kinds))[n%among]]
	if r.kind == noLeader {
		return r, false
	}
	all := rand.New(rand.NewPCG(c.Seed, ^n))
	c.Key = c.Keys[all.IntN(len(c.Keys))]
	r.place = (c.Session.Number() + all.IntN(c.Params.Clients)) % c.Params.Clients
	r.straggled, r.kept = all.IntN(2) == 0, all.IntN(2) == 0
	r.together = !r.straggled && all.IntN(2) == 0
	r.lease = 500*time.Millisecond + time.Duration(all.IntN(400))*time.Millisecond
	if c.Can.Has(promise.Fair) {
		r.lease += queueInterval
	}
	r.forsaken = r.kind == expires && all.IntN(2) == 0
	r.succeeded = r.kind == isForced && c.Can.Has(promise.ReadWrite|promise.ReportsLoss) && all.IntN(2) == 0
	return r, true
}

// shares reports whether several owners may hold the lock at once.
func (c *contender) shares() bool {
	return c.Can.Has(promise.ReadWrite) || c.Can.Has(promise.Permits)
}

// takePartLed is the part of a client in a round with a leader.
func (c *contender) takePartLed(r ledRound) {
	switch {
	case r.kind == squeezed:
		c.squeeze(r)
	case r.kind == deserted:
		c.desert(r)
	case r.kind == lapses:
		c.lapse(r)
	case r.forsaken && r.place == 1:
		c.forsake(r)
	case r.succeeded && !r.leads():
		c.succeed(r)
	case r.kind == lateLeads && r.leads():
		c.Pause(2 * c.Params.Hold)
		c.wantAll()
	case r.kind == lateLeads:
		c.share()
	case r.leads():
		c.lead(r)
	default:
		if c.Pause(2 * c.Params.Hold); !r.together {
			c.Pause(c.Random(c.Params.Hold))
		}
		c.straggle(r)
		c.trySeveral()
		c.follow(r.kept)
	}
}

// straggle comes long after the others, some of the time.
func (c *contender) straggle(r ledRound) {
	if r.straggled && c.Chance(3) {
		c.Pause(workload.BeyondQueue + c.Random(workload.BeyondQueue))
	}
}

// squeeze is a round in which a single permit is released while the first waiter wants all: it is of use only to the
// waiters behind it, if the lock lets them pass.
func (c *contender) squeeze(r ledRound) {
	a := c.Patient(c.NewWrite())
	keep := workload.Grain + c.Random(c.Params.Hold)
	switch {
	case r.leads():
		a.Permits--
		keep = 2*workload.BeyondSlack + workload.BeyondQueue
	case r.place == 1:
		c.Pause(c.Params.Hold)
		a.Permits = 1
		keep = 8 * c.Params.Hold
	case r.place == 2:
		c.Pause(3 * c.Params.Hold)
	default:
		c.Pause(4*c.Params.Hold + c.Random(c.Params.Hold))
		c.straggle(r)
		a.Permits = 1
	}
	c.Use(a, func() { c.Pause(keep) })
}

// smaller is a request that leaves room for others, if the lock can be shared.
func (c *contender) smaller() client.Acquire {
	a := c.Patient(c.NewWrite())
	switch {
	case c.Can.Has(promise.ReadWrite):
		a.Mode = "read"
	case c.Can.Has(promise.Permits):
		a.Permits = 1 + c.Rand.IntN((c.Limit()+1)/2)
	}
	return a
}

// trySeveral sometimes tries to get several locks, of which the leader or nobody has the last.
func (c *contender) trySeveral() {
	if !c.Can.Has(promise.MultiKey|promise.Try) || len(c.Keys) < 2 || !c.Chance(3) {
		return
	}
	c.Release(c.Try(c.Several(c.NewWrite())))
}

// follow waits for the leader. A client that shares the lock often keeps it for long; with always, it always does.
func (c *contender) follow(always bool) {
	a := c.smaller()
	if c.Chance(5) {
		c.giveUp(a)
		return
	}
	c.Use(a, func() {
		switch c.PauseInHold(); {
		case c.shares() && always:
			c.Pause(workload.BeyondSlack + 2*c.Params.Hold)
		case c.shares() && c.Chance(2):
			c.Pause(workload.BeyondSlack + c.Random(time.Second))
		}
	})
}

// share takes a part of the lock and keeps it while the leader waits for all of it; or comes only then.
func (c *contender) share() {
	if c.Pause(c.Random(c.Params.Hold)); c.Chance(2) {
		c.Pause(workload.BeyondQueue + 2*c.Params.Hold + c.Random(workload.BeyondQueue))
	}
	c.Use(c.smaller(), func() { c.Pause(2*workload.BeyondSlack + c.Random(workload.BeyondQueue)) })
}

// wantAll waits for all of the lock while others share it, and gives up half of the time.
func (c *contender) wantAll() {
	a := c.Patient(c.NewWrite())
	if c.Chance(2) {
		a.Wait = workload.BeyondQueue + c.Random(workload.BeyondQueue)
	}
	c.Use(a, c.PauseInHold)
}

// lead takes all of the lock and keeps it until the others have come. Then it releases it, it does so by force, its
// lease ends, or it admits others while it keeps a part.
func (c *contender) lead(r ledRound) {
	a, kind := c.Patient(c.NewWrite()), r.kind
	switch {
	case kind == admits && c.Can.Has(promise.Downgrade):
		c.admitReaders(a)
		return
	case kind == admits:
		c.admitMore(a)
		return
	case kind != isForced && c.Can.Has(promise.MultiKey) && len(c.Keys) > 1 && c.Chance(2):
		a = c.Several(a)
	}
	if kind == expires {
		a.Lease = r.lease
	}
	h := c.Await(a)
	if !h.Granted() {
		return
	}
	granted := time.Now()
	switch c.Pause(3 * c.Params.Hold); {
	case r.forsaken:
		c.ReleaseRenewed(h, granted)
	case kind == expires:
		c.Pause((a.Lease - time.Since(granted)).Truncate(workload.Grain) - 2*workload.Grain)
		c.barge()
		c.ReleaseRenewed(h, granted)
	case kind == isForced:
		if c.Chance(2) {
			c.Pause(workload.BeyondQueue)
		}
		c.countWaiters()
		c.force(h)
	default:
		if c.Chance(2) {
			c.Pause(2 * workload.BeyondQueue)
		}
		c.countWaiters()
		c.Release(h)
	}
}

// succeed is the part of the others in a round in which the leader's hold is released by force: they read, the first of
// them leaves its hold to a short lease, and the second comes then and waits to write. That lease must not count for
// longer because the leader's would have lasted longer.
func (c *contender) succeed(r ledRound) {
	c.Pause(2*c.Params.Hold + time.Duration(r.place)*apart)
	a := c.smaller()
	switch r.place {
	case 1:
		a.Lease = r.lease + workload.BeyondQueue // it may not have begun when the second comes
		c.Session.Acquire(c.Context, a)
		return
	case 2:
		c.Pause(2*c.Params.Hold + workload.BeyondQueue)
		a = c.Patient(c.Writing(a.Owner, c.Lease()))
	}
	c.Use(a, c.PauseInHold)
}

// beyondDeath is the time after which a dead waiter must no longer be counted.
const beyondDeath = 7 * time.Second

// countWaiters counts the waiters for the leader's lock, in a long round for so long that dead waiters must no longer
// be counted.
func (c *contender) countWaiters() {
	if !c.Can.Has(promise.CountWaiters) {
		return
	}
	c.Session.CountWaiters(c.Context, c.Key)
	if c.round() > beyondDeath+defaultRound {
		c.Pause(beyondDeath + c.Random(time.Second))
		c.Session.CountWaiters(c.Context, c.Key)
	}
}

// barge requests the lock again and again while its lease ends: others have waited for that.
func (c *contender) barge() {
	for range 6 {
		var h session.Hold
		ok := false
		if c.Pause(workload.Grain); c.Can.Has(promise.Try) && c.Chance(2) {
			var answer session.Answer
			h, answer = c.Session.Try(c.Context, c.NewWrite())
			ok = answer.Outcome == history.OK
		} else {
			a := c.NewWrite()
			a.Wait = workload.Grain
			var outcome history.Type
			if h, outcome = c.Session.Acquire(c.Context, a); outcome == history.Info {
				return
			}
			ok = outcome == history.OK
		}
		if ok {
			c.PauseInHold()
			c.Release(h)
			return
		}
	}
}

// admitReaders holds the lock for writing until the others wait, and then for reading, long enough to show readers that
// were not woken.
func (c *contender) admitReaders(a client.Acquire) {
	write := c.Await(a)
	if !write.Granted() {
		return
	}
	c.Pause(4 * c.Params.Hold)
	a.Mode = "read"
	read := c.Try(a)
	if c.Release(write); read.Granted() {
		c.Pause(2 * workload.BeyondSlack)
		c.Release(read)
	}
}

// admitMore shrinks a semaphore to the permits that it holds until the others wait, and then restores its size.
func (c *contender) admitMore(a client.Acquire) {
	some := (c.Limit() + 1) / 2
	if c.Session.Resize(c.Context, c.Key, some).Outcome != history.OK {
		return
	}
	a.Permits = some
	h := c.Await(c.Patient(a))
	c.Pause(4 * c.Params.Hold)
	if c.grow(some); h.Granted() {
		c.Pause(2 * workload.BeyondSlack)
		c.Release(h)
	}
}

// grow gives a semaphore its usual size, of which it has some permits.
func (c *contender) grow(some int) {
	more := c.Limit() - some
	if more > 0 && c.Can.Has(promise.ManagesPermits) && c.Chance(2) &&
		c.Session.ChangePermits(c.Context, c.Key, more).Outcome == history.OK {
		return
	}
	c.Session.Resize(c.Context, c.Key, c.Limit())
}
