// Package lock is a library of distributed locks on Redis: one server, Sentinel, a cluster, or a majority of
// independent masters (RedLock). It is promised API.
//
//	locks, err := lock.New(redis.NewClient(&redis.Options{Addr: "localhost:6379"}), lock.Options{})
//	...
//	err = locks.Mutex("orders").Do(ctx, func(ctx context.Context) error {
//		return work(ctx) // alone, and renewed until it returns; ctx ends if the lock is lost
//	})
//
// [Mutex.Acquire] returns a [Hold] to release; [Mutex.TryAcquire] does not wait, and [WithWait] bounds the wait.
// Redis 6.2 or later is needed; [Client.Check] reports whether the servers are suitable for locks.
//
// # Which lock to use
//
//	one holder at a time; two would only waste work           Client.Mutex
//	one holder at a time; two would damage a resource         Client.FencedMutex, and check its tokens at the resource
//	first come, first served                                  Client.FairMutex
//	many read, one writes                                     Client.RW
//	at most n at a time                                       Client.PermitSemaphore, WithTotal(n)
//	the same, and a crashed holder keeps its permits          Client.Semaphore
//	at most n at a time, first come, first served             Client.FairSemaphore, WithTotal(n)
//	several locks, or permits, all or none                    Client.Multi, Multi
//	wait until n others are done                              Client.Latch
//	a lock that outlives the loss of a master                 NewQuorum, and Mutex on it
//
// A lock is not a guarantee. A lease ends by the server's clock while its holder may be paused, and a promoted
// replica may have missed the grant. Only a guarded resource that refuses old tokens protects against both
// ([FencedHold.Token], [Fence], [RedisFence]; Kleppmann, "How to do distributed locking", 2016).
//
// # From other libraries
//
//	redsync                                 here
//	redsync.New(pool), New(a, b, c)         New(rdb, Options{}), NewQuorum(Options{}, a, b, c)
//	rs.NewMutex(name, WithExpiry(d))        locks.Mutex(name, WithLease(d)); without it, the lease is renewed
//	m.LockContext, TryLockContext           m.Acquire, m.TryAcquire: each returns a Hold; m itself has no state
//	m.UnlockContext, m.ExtendContext        hold.Release, hold.Renew or hold.Extend
//	WithTries, WithRetryDelayFunc           WithTries, WithRetryDelay; waiters are woken, so neither is needed
//	m.Until, m.Value                        hold.Deadline, hold.Owner
//
//	bsm/redislock                           here
//	c.Obtain(ctx, key, ttl, nil)            locks.Mutex(key).TryAcquire(ctx, WithLease(ttl))
//	RetryStrategy: LinearBackoff(d), …      locks.Mutex(key).Acquire(ctx): waiters are woken and do not poll
//	l.Refresh(ctx, ttl, nil), l.TTL         hold.Extend(ctx, ttl), hold.Deadline
//	Options.Metadata, Options.Token         WithMetadata, WithOwner
//	ErrNotObtained, ErrLockNotHeld          ErrHeld, ErrLost
//
//	rueidislock                             here
//	l.WithContext(ctx, name)                locks.Mutex(name).Acquire(ctx), hold.Context
//	l.TryWithContext(ctx, name)             locks.Mutex(name).TryAcquire(ctx)
//	cancel()                                hold.Release(ctx), which returns an error
//	KeyPrefix, KeyValidity                  Options.KeyFunc: KeyPrefix(…), Options.Lease
//	KeyMajority: 2, keys of one cluster     NewQuorum, independent masters
//
//	Redisson                                here
//	getLock(n).lock(), lock(lease)          locks.Mutex(n, WithReentry()).Acquire(ctx), WithLease
//	tryLock(wait, lease)                    Acquire(ctx, WithWait(wait), WithLease(lease))
//	forceUnlock, remainTimeToLive           ForceRelease, Inspect
//	getFencedLock, lockAndGetToken          locks.FencedMutex(n).Acquire(ctx), hold.Token
//	getFairLock, getReadWriteLock           locks.FairMutex(n), locks.RW(n)
//	getSpinLock                             locks.Mutex(n, WithPolling())
//	getMultiLock(a, b)                      Multi(a, b), which takes permits too
//	getSemaphore, trySetPermits(k)          locks.Semaphore(n, WithTotal(k))
//	getPermitExpirableSemaphore             locks.PermitSemaphore(n, WithTotal(k))
//	drainPermits                            Drain of a semaphore of any kind
//	getCountDownLatch                       locks.Latch(n)
//	lockWatchdogTimeout, NameMapper         Options.Lease, Options.KeyFunc
//
// Programs that migrate from Redisson one by one, or that stay in Java, share mutexes with a client whose
// [Options].Layout is [Redisson]:
//
//	lock in Java                  in Go, with the layout
//	getLock, getFencedLock        the same keys, channel and messages: both exclude, wake and count with each other
//	forceUnlock, getHoldCount     ForceRelease, Inspect; of the holds of the other side too
//	lockWatchdogTimeout (30 s)    Options.Lease (30 s): each side renews its own holds
//	tokens of a re-entry          Redisson mints a new one, Go returns the token of the grant
//	all other locks               ErrLayout: use a client with the layout of this package, and other names
//
// In Redisson a thread is an owner; here each Acquire is one, unless [WithOwner] or the context of a hold names the
// owner, and re-entry has to be requested with [WithReentry]. Programs can migrate one by one: a mutex waits until a
// lock of redsync, redislock, redis-py or Redisson under its key has expired.
//
// # Keys
//
// This section describes the layout of this package; [Redisson] documents the other one.
//
// A lock named orders is stored at exactly the key orders, unless [Options].KeyFunc returns another. It is a hash:
//
//	owner     who holds the lock; a mutex has one owner
//	count     how many holds the owner has
//	h:<hold>  one field for each hold of the owner
//	token     fencing token of the grant, in kinds that have tokens
//	metadata  text of WithMetadata
//	notify    how waiters are notified when the lock is free: w (PUBLISH), W (SPUBLISH)
//
// If Acquire takes a free [Mutex] without an owner or metadata, the key is the string h:<hold>, written by SET
// without a script. The first script of a waiting client, or of a re-entry, converts it to the hash.
//
// The following keys have the same hash tag, so that one script may use all of them:
//
//	{orders}:token             the last fencing token; it expires after a day without a grant
//	{orders}:tombstone:<hold>  short-lived: the reply to the release of this hold
//	{orders}:free              carries the message that the lock is free, if a waiter has set notify: its payload is the
//	                           number of subscribers
//
// A Redis user needs permissions for all of them. A name such as lock:{orders} keeps them under lock:, for users with
// permissions for ~lock:* and &lock:* only. The additional keys and channels of lock:orders begin with {lock: and
// need ~{lock:* and &{lock:* as well; keys of [Redisson]'s layout begin with redisson_.
//
// Tokens are never less than the server's clock in microseconds, so they do not decrease when a replica is promoted
// that missed the last grants, or when the server restarts empty. This is true as long as the new master's clock is
// not behind the old one's by more than the time since its last grant; on one server it is true for a day, whatever
// the clock does.
//
// A grant may be lost with its master. With [Options].Replicas it waits for replicas, and is undone if too few have
// it; the limits are documented there. In a cluster, messages that wake waiters stay on the nodes of the lock's slot
// (SPUBLISH) if the servers support that, as Redis 7.0 does; otherwise PUBLISH sends them to all nodes.
//
// Each Acquire creates an id for its hold. Every script that changes data includes it, so a request that is resent
// because its reply was lost gets the same reply and changes nothing.
package lock
