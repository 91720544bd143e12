package waiters

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// This file is about the rounds of workload waiters in which the longest waiters give up just when the lock is released
// to them, or when its lease ends: the others must be woken, or know when to ask, in their place. In another kind of
// round several leases end one after the other, and each of the waiters has to know the next.

const (
	// deserting is for how long after the release the first waiters still leave: a message, a request and its reply
	// take about as long.
	deserting = 6 * workload.Grain
	// apart is between the requests of two clients, so that they wait in this order.
	apart = 2 * workload.Grain
)

// desert is the part of a client in a round that the first waiters desert. The leader holds all of the lock. The
// clients after it come one by one, and the first half of them leave while the leader releases it.
func (c *contender) desert(r ledRound) {
	begun, held := time.Now(), 6*c.Params.Hold+time.Duration(c.Params.Clients)*apart
	if r.leads() {
		c.Use(c.Patient(c.NewWrite()), func() { c.Pause((held - time.Since(begun)).Truncate(workload.Grain)) })
		return
	}
	c.Pause(2*c.Params.Hold + time.Duration(r.place)*apart)
	a := c.smaller()
	if r.place <= c.Params.Clients/2 {
		a.Wait = max(workload.Grain, (held-time.Since(begun)).Truncate(workload.Grain)+c.Random(deserting))
	}
	c.Use(a, c.PauseInHold)
}

// forsake is the part of the first waiter in a round in which the lease of the leader ends: it leaves just before.
func (c *contender) forsake(r ledRound) {
	begun := time.Now()
	c.Pause(2 * c.Params.Hold)
	a := c.smaller()
	a.Wait = max(workload.Grain, (r.lease - time.Since(begun) - c.Random(r.lease/8)).Truncate(workload.Grain))
	c.Use(a, c.PauseInHold)
}

// lapse is a round in which the first clients take a permit each and leave it to its lease; the others wait for them.
func (c *contender) lapse(r ledRound) {
	if c.Can.Has(promise.ReadWrite) {
		c.lapseReaders(r)
		return
	}
	a := c.Patient(c.NewWrite())
	a.Permits = 1
	if r.place < c.Limit() {
		c.Pause(time.Duration(r.place) * workload.Grain)
		a.Lease = r.lease + time.Duration(r.place)*3*c.Params.Hold
		if h, outcome := c.Session.Acquire(c.Context, a); outcome == history.OK {
			c.ReleaseRenewed(h, time.Now())
		}
		return
	}
	c.Pause(2*c.Params.Hold + time.Duration(r.place)*apart)
	c.Use(a, func() { c.Pause(2 * workload.BeyondSlack) })
}

// lapseReaders is a round in which two clients read, one of them with a long lease. It releases, and the other leaves
// its hold to its short lease: waiting writers have to learn that it ends sooner than the first one would have.
func (c *contender) lapseReaders(r ledRound) {
	switch r.place {
	case 0:
		if h := c.Acquire(c.NewRead()); h.Granted() {
			c.Pause(6 * c.Params.Hold)
			c.Release(h)
		}
	case 1:
		c.Pause(workload.Grain)
		h := c.Acquire(c.Reading(c.NewOwner(), r.lease))
		c.ReleaseRenewed(h, time.Now())
	default:
		c.Pause(2*c.Params.Hold + time.Duration(r.place)*apart)
		c.hold(c.Patient(c.NewWrite()))
	}
}
