// Package lock is a library of distributed locks on Redis: a reentrant mutex on
// one master (alone or behind Sentinel) or a cluster, and the same mutex on a
// majority of independent masters (RedLock); and, on one master or a cluster, a
// fair mutex, a readers-writer lock, semaphores, a count-down latch, and several
// locks as one.
//
// Read [Client] first, then [Hold]: what Acquire returns, and all that a holder
// needs. It is not a guarantee. A lease ends by the clock of the server while
// its holder may be asleep, and a replica that is promoted may never have heard
// of the lock; against both, only a guarded resource that refuses old tokens
// helps ([Hold.Token]; Kleppmann, "How to do distributed locking", 2016).
//
// # What is kept where
//
// A lock named orders is the key orders, exactly, and it is a hash:
//
//	owner     who holds the lock; a mutex has one owner
//	count     how many holds the owner has
//	h:<hold>  one field for each hold of the owner
//	token     fencing number of the grant, if it was asked for
//	waits     how those who are asleep want to be told that the lock is free
//
// Beside it, under the same hash tag, so that one script may touch them all:
//
//	{orders}:token         the last fencing number; forgotten after a day without a grant
//	{orders}:tombstone:<hold>  short-lived: this hold was given back, and what the answer was
//	{orders}:free          the channel that says that the lock is free, to those who have left their mark
//
// A plain mutex has no fencing numbers unless [Options].Tokens or
// [Client.FencedMutex] asks for them: they take the server as long as the rest of
// the grant. They are no less than the server's clock in microseconds, so that they
// do not go back when a replica is promoted that has not heard of the last grants,
// or when the server comes back empty. That holds as long as the new master's
// clock is not behind the old one's by more than the time since its last grant;
// within one server it holds whatever the clock does for a day.
//
// A grant may be lost with its master. [Options].Replicas makes it wait for
// replicas, and takes it back if too few have it; what that does not promise is
// said there. In a cluster, what wakes those who wait for a mutex stays with the
// nodes of its slot (SPUBLISH), if the servers can do that, as Redis 7.0 can; the
// messages of all other kinds go to all nodes, as PUBLISH does.
//
// A hold has an id of its own, made once for each Acquire. Every script that
// changes anything names it, so that a request which is sent again because its
// answer was lost is answered again, and does nothing again.
package lock
