package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// maxCount is the greatest number of permits and the greatest count: far more
// than is of use, and far less than what a Lua number holds exactly.
const maxCount = 1<<31 - 1

// checkCount refuses numbers less than low or more than high.
func checkCount(n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("%w: %d: give %d to %d", ErrPermits, n, low, high)
	}
	return nil
}

// pool is what both kinds of semaphore have in common: a total, and who has how much of it.
type pool struct {
	named
	store *permitStore
}

// SemaphoreState is the state of a semaphore at its server.
type SemaphoreState struct {
	Total int // permits there are
	Free  int // permits that are not held; negative: the total was lowered below what is held
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

// set runs the script that sets the total. While the slot migrates, that of leased permits is not changed, because
// acquires rely on it (see acquireMigrating), but set up.
func (p pool) set(ctx context.Context, how string, n int) (reply, error) {
	if err := p.client.checkCounted(p.key); err != nil {
		return reply{}, err
	}
	return p.client.request(ctx, call{
		script:  p.client.kinds().semaphore.set,
		keys:    append([]string{p.key, tombstoneKey(p.key, p.client.random.id())}, p.store.permitsKeys(p.key)...),
		args:    []any{p.store.tombstoneTTL, p.store.kind(), how, n, tagged(p.key, "free")},
		counted: !p.store.leased || how == setUpOnce,
	}, 0, true)
}

func (p pool) trySet(ctx context.Context, n int) (bool, error) {
	err := checkCount(n, 0, maxCount)
	var r reply
	if err == nil {
		r, err = p.set(ctx, setUpOnce, n)
	}
	return r.code == codeOK, failed("set up", p.store.kind(), p.name, err)
}

func (p pool) replace(ctx context.Context, n int) error {
	err := checkCount(n, 0, maxCount)
	if err == nil {
		_, err = p.set(ctx, "set", n)
	}
	return failed("set", p.store.kind(), p.name, err)
}

func (p pool) add(ctx context.Context, n int) (int, error) {
	err := checkCount(max(n, -n), 1, maxCount)
	var r reply
	if err == nil {
		r, err = p.set(ctx, "add", n)
	}
	if err == nil {
		err = r.err()
	}
	if r.code == codeOutOfRange {
		err = fmt.Errorf("%w: %d of them are to be removed from %d", ErrPermits, -n, r.int(0))
	}
	return int(r.int(0)), failed("add permits to", p.store.kind(), p.name, err)
}

func (p pool) state(ctx context.Context) (SemaphoreState, error) {
	s, err := p.inspect(ctx)
	return s, failed("inspect", p.store.kind(), p.name, err)
}

func (p pool) inspect(ctx context.Context) (SemaphoreState, error) {
	if err := p.client.checkCounted(p.key); err != nil {
		return SemaphoreState{}, err
	}
	r, err := p.client.request(ctx, call{
		script: p.client.kinds().semaphore.state,
		keys:   append([]string{p.key}, p.store.permitsKeys(p.key)...),
		args:   []any{p.store.kind(), tagged(p.key, "free")},
	}, 2, false)
	if err == nil {
		err = r.err()
	}
	if err != nil {
		return SemaphoreState{}, err
	}
	s := SemaphoreState{Total: int(r.int(0)), Free: int(r.int(1))}
	for i := 2; i+2 < len(r.list); i += 3 {
		left := time.Duration(r.int(i+2)) * time.Millisecond
		s.Holds = append(s.Holds, HeldPermits{ID: fmt.Sprint(r.list[i]), Permits: int(r.int(i + 1)), Left: left})
	}
	return s, nil
}

// force releases ids, under the id of a request of its own, and returns how many permits were held.
func (p pool) force(ctx context.Context, ids []string) (int, error) {
	err := p.client.checkCounted(p.key)
	var r reply
	if err == nil {
		r, err = p.client.request(ctx, p.store.releaseCall(p.key, p.client.random.id(), ids), 1, false)
	}
	return int(r.int(0)), failed("release permits of", p.store.kind(), p.name, err)
}

// acquire acquires n permits, at most limit. A semaphore that does not exist is set up first if its total is known.
func (p pool) acquire(ctx context.Context, n, limit int, wait bool, opts []Option) (*Permits, error) {
	doing := "try to acquire"
	if wait {
		doing = "acquire"
	}
	permits, err := p.acquireOnce(ctx, n, limit, wait, opts)
	if total := p.options.with(opts).total; total > 0 && errors.Is(err, ErrAbsent) {
		if err = p.setUp(ctx, total); err == nil {
			permits, err = p.acquireOnce(ctx, n, limit, wait, opts)
		}
	}
	return permits, failed(doing, p.store.kind(), p.name, err)
}

// setUp sets up the semaphore for an acquire, which certainly has no permits if that fails or has no reply.
func (p pool) setUp(ctx context.Context, total int) error {
	if _, err := p.trySet(ctx, total); err != nil {
		return definiteError{err: err}
	}
	return nil
}

// drain acquires all permits that are free, at most limit.
func (p pool) drain(ctx context.Context, limit int, opts []Option) (*Permits, error) {
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
		permits, err := p.acquireOnce(ctx, min(s.Free, limit), limit, false, opts)
		taken := errors.Is(err, ErrHeld) || errors.Is(err, ErrPermits) // by others, since the reply
		if !taken || errors.Is(err, ErrQueued) || ctx.Err() != nil {
			return permits, failed("drain", p.store.kind(), p.name, err)
		}
	}
}

func (p pool) acquireOnce(ctx context.Context, n, limit int, wait bool, opts []Option) (*Permits, error) {
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
		err = checkCount(n, 1, limit)
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
			tries: s.tries, retryDelay: s.delay, lasts: lease, patience: s.patience,
		},
		lease: lease, auto: auto, maxHold: s.maxHold, maxWait: s.wait, started: p.client.startTime(),
		claim: claim{
			name: p.name, key: p.key, id: p.client.random.id(), lease: milliseconds(lease), store: p.store, permits: n,
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

func (p pool) do(ctx context.Context, n, limit int, work func(ctx context.Context) error, opts []Option) error {
	permits, err := p.acquire(ctx, n, limit, true, opts)
	if err != nil {
		return err
	}
	return do(ctx, permits, work)
}
