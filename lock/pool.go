package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// maxCount is the greatest number of permits and the greatest count: far more than is of use, and far less than a Lua
// number holds exactly.
const maxCount = 1<<31 - 1

// checkCount refuses numbers less than low or more than high.
func checkCount(n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("%w: %d: give %d to %d", ErrPermits, n, low, high)
	}
	return nil
}

// pool has the common parts of all kinds of semaphore: a total, and the permits of each holder.
type pool struct {
	named
	store *permitStore
}

// limit is how many permits one acquire may take: each with a lease has an id of its own.
func (p pool) limit() int {
	if p.store.leased {
		return maxLeased
	}
	return maxCount
}

// SemaphoreState is the state of a semaphore at its server.
type SemaphoreState struct {
	Total int // permits there are
	Free  int // permits that are not held; negative: the total was lowered below the held ones
	Holds []HeldPermits
}

// HeldPermits are permits that are held.
type HeldPermits struct {
	ID      string
	Permits int
	Left    time.Duration // of the lease; negative: there is none
}

// setUpOnce is the way to set the total that does nothing if there is one.
const setUpOnce = "try"

func permitsKey(key string) string { return tagged(key, "permits") }

// checkCounted refuses a name that one master cannot keep.
func (c *Client) checkCounted(key string) error {
	if err := c.ownKinds(); err != nil {
		return err
	}
	return checkName(key)
}

// set runs the script that sets the total. While the slot migrates, the total of leased permits is set up but not
// changed, because acquires rely on it (see acquireMigrating).
func (p pool) set(ctx context.Context, how string, n int) (wire.Reply, error) {
	if err := p.client.checkCounted(p.key); err != nil {
		return wire.Reply{}, err
	}
	return p.client.request(ctx, wire.Call{
		Script:  p.client.kinds().semaphore.set,
		Keys:    append([]string{p.key, tombstoneKey(p.key, p.client.random.ID())}, p.store.permitsKeys(p.key)...),
		Args:    []any{p.store.tombstoneTTL, p.store.kind(), how, n, tagged(p.key, "free")},
		Counted: !p.store.leased || how == setUpOnce,
	}, 0, true)
}

// TrySetPermits sets up a semaphore of n permits, unless it exists: then it is left as it is, even if no permit is free
// (redisson#4678), and set is false. n may be 0.
func (p pool) TrySetPermits(ctx context.Context, n int) (set bool, err error) {
	err = checkCount(n, 0, maxCount)
	var r wire.Reply
	if err == nil {
		r, err = p.set(ctx, setUpOnce, n)
	}
	return r.Code == wire.CodeOK, failed("set up", p.store.kind(), p.name, err)
}

// SetPermits sets the total to n, which may be 0. Permits that are held stay held, even if they are more than n: then
// none is granted until enough have been released. A waiter of a [FairSemaphore] for more than the new total is refused
// with [ErrPermits].
func (p pool) SetPermits(ctx context.Context, n int) error {
	err := checkCount(n, 0, maxCount)
	if err == nil {
		_, err = p.set(ctx, "set", n)
	}
	return failed("set", p.store.kind(), p.name, err)
}

// AddPermits adds n to the total, or removes permits if n is negative, and returns the new total. Its error is
// [ErrPermits] if that is negative, and [ErrAbsent] if the semaphore does not exist.
func (p pool) AddPermits(ctx context.Context, n int) (total int, err error) {
	err = checkCount(max(n, -n), 1, maxCount)
	var r wire.Reply
	if err == nil {
		r, err = p.set(ctx, "add", n)
	}
	err = cmp.Or(err, codeError(r))
	if r.Code == codeOutOfRange {
		err = fmt.Errorf("%w: %d of them are to be removed from %d", ErrPermits, -n, r.Int(0))
	}
	return int(r.Int(0)), failed("add permits to", p.store.kind(), p.name, err)
}

// State returns the permits of the semaphore and their holders; [ErrAbsent] if it does not exist.
func (p pool) State(ctx context.Context) (SemaphoreState, error) {
	s, err := p.inspect(ctx)
	return s, failed("inspect", p.store.kind(), p.name, err)
}

func (p pool) inspect(ctx context.Context) (SemaphoreState, error) {
	if err := p.client.checkCounted(p.key); err != nil {
		return SemaphoreState{}, err
	}
	r, err := p.client.request(ctx, wire.Call{
		Script: p.client.kinds().semaphore.state,
		Keys:   append([]string{p.key}, p.store.permitsKeys(p.key)...),
		Args:   []any{p.store.kind(), tagged(p.key, "free")},
	}, 2, false)
	err = cmp.Or(err, codeError(r))
	if err != nil {
		return SemaphoreState{}, err
	}
	s := SemaphoreState{Total: int(r.Int(0)), Free: int(r.Int(1))}
	for i := 2; i+2 < len(r.List); i += 3 {
		left := time.Duration(r.Int(i+2)) * time.Millisecond
		s.Holds = append(s.Holds, HeldPermits{ID: fmt.Sprint(r.List[i]), Permits: int(r.Int(i + 1)), Left: left})
	}
	return s, nil
}

// ForceRelease releases permits by their ids ([Permits.IDs]), regardless of their owner, and returns how many of them
// were held; an id of a [Semaphore] stands for all permits of one Acquire. The holders learn of it when they release:
// [ErrLost].
func (p pool) ForceRelease(ctx context.Context, ids ...string) (permits int, err error) {
	err = p.client.checkCounted(p.key)
	var r wire.Reply
	if err == nil {
		// It is under the id of a request of its own.
		r, err = p.client.request(ctx, p.store.releaseCall(p.key, p.client.random.ID(), ids), 1, false)
	}
	return int(r.Int(0)), failed("release permits of", p.store.kind(), p.name, err)
}

// Acquire waits until n permits are free, of a [FairSemaphore] also for its turn, and takes them all at once. Of
// permits with a lease, n is at most 10,000. When ctx ends, a waiter leaves the queue. Its error is [ErrNoPermits] if
// ctx ended before, [ErrPermits] if n is less than one or more than the total, [ErrAbsent] if the semaphore does not
// exist, and [ErrUnknown] if permits may have been taken and could not be released: then a waiter of a [FairSemaphore]
// may also stay in the queue until it is skipped after three heartbeats.
func (p pool) Acquire(ctx context.Context, n int, opts ...Option) (*Permits, error) {
	return p.acquire(ctx, n, true, opts)
}

// TryAcquire takes n permits if they are free now, and nobody waits for a [FairSemaphore]: its error is [ErrQueued] if
// enough are free but others wait. Other errors are as of Acquire.
func (p pool) TryAcquire(ctx context.Context, n int, opts ...Option) (*Permits, error) {
	return p.acquire(ctx, n, false, opts)
}

// acquire acquires n permits. A semaphore that does not exist is set up first if its total is known.
func (p pool) acquire(ctx context.Context, n int, wait bool, opts []Option) (*Permits, error) {
	doing := "try to acquire"
	if wait {
		doing = "acquire"
	}
	permits, err := p.acquireOnce(ctx, n, wait, opts)
	if total := p.options.with(opts).total; total > 0 && errors.Is(err, ErrAbsent) {
		if err = p.setUp(ctx, total); err == nil {
			permits, err = p.acquireOnce(ctx, n, wait, opts)
		}
	}
	return permits, failed(doing, p.store.kind(), p.name, err)
}

// setUp sets up the semaphore for an acquire, which certainly has no permits if that fails or has no reply.
func (p pool) setUp(ctx context.Context, total int) error {
	if _, err := p.TrySetPermits(ctx, total); err != nil {
		return definiteError{err: err}
	}
	return nil
}

// Drain takes all free permits, at least one; of permits with a lease, at most 10,000. Its error is [ErrHeld] if none
// is free, else TryAcquire's. It first asks how many are free and then takes as many: permits that are released in
// between stay free.
func (p pool) Drain(ctx context.Context, opts ...Option) (*Permits, error) {
	for {
		s, err := p.inspect(ctx)
		if total := p.options.with(opts).total; total > 0 && errors.Is(err, ErrAbsent) {
			err = p.setUp(ctx, total)
			s.Free = total
		}
		if err == nil && s.Free < 1 {
			err = ErrHeld
		}
		if err != nil {
			return nil, failed("drain", p.store.kind(), p.name, err)
		}
		permits, err := p.acquireOnce(ctx, min(s.Free, p.limit()), false, opts)
		taken := errors.Is(err, ErrHeld) || errors.Is(err, ErrPermits) // by others, since the reply
		if !taken || errors.Is(err, ErrQueued) || ctx.Err() != nil {
			return permits, failed("drain", p.store.kind(), p.name, err)
		}
	}
}

func (p pool) acquireOnce(ctx context.Context, n int, wait bool, opts []Option) (*Permits, error) {
	s := p.options.with(opts)
	kind, known := "a semaphore", poolOptions
	if p.store.leased {
		kind, known = "a semaphore of leased permits", leasedPoolOptions
	}
	err := p.client.checkCounted(p.key)
	if err == nil {
		err = s.check(kind, known)
	}
	if err == nil {
		err = checkCount(n, 1, p.limit())
	}
	var lease time.Duration
	var auto bool
	if err == nil && p.store.leased {
		lease, auto, err = p.client.leaseOf(s.lease)
	}
	if err != nil {
		return nil, err
	}
	a := &attempt{
		waitLoop: waitLoop{
			client: p.client, name: p.name, mode: independent, channel: tagged(p.key, "free"),
			tries: s.tries, retryDelay: s.delay, lasts: lease, backoff: s.backoff,
		},
		lease: lease, auto: auto, maxHold: s.maxHold, maxWait: s.wait, started: p.client.startTime(),
		claim: claim{
			name: p.name, key: p.key, id: p.client.random.ID(), lease: milliseconds(lease), store: p.store, permits: n,
		},
	}
	if p.store.fair && wait {
		a.mode, a.byHold = ordered, true
		a.queueAtServer()
	}
	if err := a.acquire(ctx, wait); err != nil {
		return nil, err
	}
	permits := &Permits{pool: p}
	permits.begin(ctx, a, permits)
	return permits, nil
}

// Permits is n permits as one of the locks of [Multi]. The semaphore may have [WithTotal], and no other options.
func (p pool) Permits(n int) AnyLock { return &somePermits{p, n} }

// Do calls work with n permits, as [Mutex.Do].
func (p pool) Do(ctx context.Context, n int, work func(ctx context.Context) error, opts ...Option) error {
	permits, err := p.Acquire(ctx, n, opts...)
	if err != nil {
		return err
	}
	return do(ctx, permits, work)
}
