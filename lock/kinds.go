package lock

import (
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// kindScripts are the scripts of all locks but mutexes. They publish to their waiters by themselves, without a mark.
type kindScripts struct {
	fair struct{ acquire, release, force, waiters wire.Script }
	rw   struct {
		acquire, release, renew, force, inspect   wire.Script
		movingAcquire, movingRelease, movingRenew wire.Script // while the slot migrates
	}
	semaphore struct{ set, state, acquire, release wire.Script } // leased permits use set and state, too
	permit    struct {
		acquire, release, renew                          wire.Script
		movingAcquire, movingRelease, movingRenew, total wire.Script // while the slot migrates
	}
	fairPermit struct{ acquire, release wire.Script }
	latch      struct{ arm, count, state, remove wire.Script }
}

// Messages of a cluster go to the nodes of the slot alone, if its servers can do that: the scripts find out, and the
// waiters with [waitQueues.notifyMode].
var (
	kindScript        = newKindScripts(lua("publish"))
	clusterKindScript = newKindScripts(lua("publish_slot"))
)

// The keys of the queue of a fair mutex and of a fair semaphore.
const (
	fairQueue   = "local queue, waiters, form = KEYS[3], KEYS[4], '^%S+ '\n"
	permitQueue = "local queue, waiters, form = KEYS[5], KEYS[6], '^%S+ %d+$'\n"
)

// kinds are the scripts for the servers of the client; a quorum has none of these locks.
func (c *Client) kinds() *kindScripts {
	if c.node == nil {
		return kindScript
	}
	return c.node.kinds
}

// newKindScripts makes scripts whose messages publish sends.
func newKindScripts(publish string) *kindScripts {
	var k kindScripts
	fair := fairQueue + lua("queue") + publish + lua("fair_queue")
	k.fair.acquire = newScript(lua("foreign", "plain", "mint") + fair + lua("fair_acquire"))
	k.fair.release = newScript(lua("foreign", "plain", "mint") + fair + lua("fair_release"))
	k.fair.force = newScript(lua("plain", "mint") + fair + lua("fair_force"))
	k.fair.waiters = newScript(lua("mint") + fair + lua("fair_waiters"))

	rw := publish + lua("rw_hold", "rw_state")
	k.rw.acquire = newScript(lua("mint") + rw + lua("rw_acquire"))
	k.rw.release = newScript(rw + lua("rw_release"))
	k.rw.renew = newScript(lua("rw_hold", "rw_renew"))
	k.rw.force = newScript(rw + lua("rw_force"))
	k.rw.inspect = newScript(rw + lua("rw_inspect"))
	k.rw.movingAcquire = newScript(lua("mint", "rw_hold", "rw_moving", "rw_acquire"))
	k.rw.movingRelease = newScript(lua("rw_hold", "rw_moving", "rw_moving_release"))
	k.rw.movingRenew = newScript(lua("rw_hold", "rw_moving", "rw_moving_renew"))

	counted := publish + lua("counted")
	repeatable := counted + lua("tombstone")
	k.semaphore.set = newScript(repeatable + lua("semaphore_set"))
	k.semaphore.state = newScript(counted + lua("semaphore_state"))
	k.semaphore.acquire = newScript(repeatable + lua("semaphore_acquire"))
	k.semaphore.release = newScript(repeatable + lua("semaphore_release"))

	k.permit.acquire = newScript(repeatable + lua("permits_acquire"))
	k.permit.release = newScript(repeatable + lua("permits_release"))
	k.permit.renew = newScript(counted + lua("permits_renew"))

	moving := counted + lua("permits_moving")
	k.permit.movingAcquire = newScript(moving + lua("permits_moving_acquire"))
	k.permit.movingRelease = newScript(moving + lua("permits_moving_release"))
	k.permit.movingRenew = newScript(moving + lua("permits_moving_renew"))
	k.permit.total = newScript(counted + lua("permits_total"))

	queued := permitQueue + repeatable + lua("queue", "fair_permits")
	k.fairPermit.acquire = newScript(queued + lua("fair_permits_acquire", "permits_acquire"))
	k.fairPermit.release = newScript(queued + lua("fair_permits_leave", "permits_release"))

	k.latch.arm = newScript(repeatable + lua("latch_arm"))
	k.latch.count = newScript(repeatable + lua("latch_count"))
	k.latch.state = newScript(counted + lua("latch_state"))
	k.latch.remove = newScript(repeatable + lua("latch_delete"))
	return &k
}
