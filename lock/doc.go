// Package lock is a library of distributed locks on Redis: a reentrant mutex on one
// master (alone or behind Sentinel) or a cluster, and the same mutex on a majority of
// independent masters (RedLock); and, on one master or a cluster, a fair mutex, a
// readers-writer lock, semaphores, a count-down latch, and several locks as one.
//
// Read [Client] first, then [Hold]: what Acquire returns, and all that a holder needs.
// A lock is not a guarantee. A lease ends by the clock of the server while its holder
// may be paused, and a replica that is promoted may have missed the grant; against
// both, only a guarded resource that refuses old tokens helps ([Hold.Token]; Kleppmann,
// "How to do distributed locking", 2016).
//
// # Keys
//
// A lock named orders is the key orders, exactly, and it is a hash:
//
//	owner     who holds the lock; a mutex has one owner
//	count     how many holds the owner has
//	h:<hold>  one field for each hold of the owner
//	token     fencing token of the grant, if it was asked for
//	notify    how waiters are notified when the lock is free: w (PUBLISH), W (SPUBLISH)
//
// Beside it, under the same hash tag, so that one script may touch them all:
//
//	{orders}:token             the last fencing token; it expires after a day without a grant
//	{orders}:tombstone:<hold>  short-lived: the reply to the release of this hold
//	{orders}:free              the channel that publishes that the lock is free, if a waiter has left its mark
//
// A plain mutex has no fencing tokens unless [Options].Tokens or [Client.FencedMutex]
// asks for them: they take the server as long as the rest of the grant. They are no
// less than the server's clock in microseconds, so that they do not decrease when a
// replica is promoted that missed the last grants, or when the server restarts empty.
// That holds as long as the new master's clock is not behind the old one's by more than
// the time since its last grant; within one server it holds for a day, whatever the
// clock does.
//
// A grant may be lost with its master. [Options].Replicas makes it wait for replicas,
// and takes it back if too few have it; its limits are documented there. In a cluster,
// messages that wake waiters for a mutex stay with the nodes of its slot (SPUBLISH), if
// the servers have that, as Redis 7.0 has; the messages of all other kinds go to all
// nodes, as PUBLISH does.
//
// Each Acquire makes an id for its hold. Every script that changes anything names it,
// so that a request which is sent again because its reply was lost gets the same reply
// and changes nothing.
package lock
