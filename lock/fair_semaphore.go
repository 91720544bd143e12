package lock

// FairSemaphore is a [PermitSemaphore] that serves its waiters in the order of their arrival, by the clock of the
// server. The first waiter waits until enough permits are free for it, and the waiters behind it wait too, even for
// fewer permits: small requests cannot starve a large one, but permits may be free meanwhile. TryAcquire does not queue
// and overtakes no waiter. A waiter sends a heartbeat every PollMax, and at least every 2 s; after three times as long
// without one it is skipped. Several goroutines may use it.
//
// The keys are the same as of a permit semaphore, so that both kinds of one name share their permits, but the order is
// kept only if all use the fair one. Beside them, for a semaphore named pool:
//
//	{pool}:queue    list of the waiters, each a hold, a space and the number of permits, in order of arrival
//	{pool}:waiters  sorted set of the same, by the time in ms at which they expire without a heartbeat
//
// The channel {pool}:free also publishes the hold of the first waiter when it may be served.
type FairSemaphore struct{ pool }

// FairSemaphore returns the fair semaphore of that name; [WithTotal] sets how many permits it has. It sends no request
// and needs no closing.
func (c *Client) FairSemaphore(name string, opts ...Option) *FairSemaphore {
	return &FairSemaphore{pool{c.named(name, opts), c.fairPermits}}
}
