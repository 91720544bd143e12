package lock

// Semaphore limits how many permits are held at a time. Its holds have no lease: the permits of a crashed holder stay
// held until [Semaphore.ForceRelease] ([Semaphore.State] lists them; redisson#2045, redisson#4462). If that is not
// acceptable, use a [PermitSemaphore]. Permits whose release is lost in a failover stay held too, because only grants
// wait for replicas. It is not fair: a waiter for few permits may overtake a waiter for many. It is kept on one master.
// Several goroutines may use it.
//
// A semaphore named pool is the hash pool, in which free + the sum of all h: is always total:
//
//	kind      "semaphore"
//	total     permits there are; it has no expiry
//	free      permits that are not held; negative after the total was lowered below the held ones
//	h:<hold>  permits of one hold
//	          and, after the slot of a cluster has migrated, replies to requests, until they expire
//
//	{pool}:tombstone:<id>  short-lived: the reply to a request, in case it arrives again
//	{pool}:free            the channel that publishes how many permits are free, as "+n"
type Semaphore struct{ pool }

// Semaphore is the semaphore of that name; [WithTotal] sets how many permits it has. It sends no request and needs no
// closing.
func (c *Client) Semaphore(name string, opts ...Option) *Semaphore {
	return &Semaphore{pool{c.named(name, opts), c.semaphores}}
}

// PermitSemaphore is a semaphore whose permits are leased: a crashed holder's become free when the lease expires, by
// the server's clock. Each permit has an id, which may be passed to another process for it to release. It is not fair
// and is kept on one master, as [Semaphore]. Several goroutines may use it.
//
// A semaphore named pool is the hash pool, in which free + the size of the sorted
// set is always total, but not while its slot migrates:
//
//	kind   "permits"
//	total  permits there are; it has no expiry
//	free   permits that are not held, except for expired ones that were not yet taken back
//	       and, if it was set up while the slot of a cluster migrated, the reply to that, until it expires
//
//	{pool}:permits         sorted set: each permit that is held, and when it expires, in ms of the server's clock;
//	                       it expires with the last of them
//	{pool}:tombstone:<id>  short-lived: the reply to a request, in case it arrives again
//	{pool}:free            the channel that publishes how many permits are free, as "+n"
type PermitSemaphore struct{ pool }

// PermitSemaphore is the semaphore with leases of that name; [WithTotal] sets how many permits it has. It sends no
// request and needs no closing.
func (c *Client) PermitSemaphore(name string, opts ...Option) *PermitSemaphore {
	return &PermitSemaphore{pool{c.named(name, opts), c.permits}}
}

// maxLeased is how many permits one acquire may take: each has an id of its own.
const maxLeased = 10000
