package locks

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/topology"
)

// held is a hold of any kind of lock of package lock.
type held interface {
	Renew(ctx context.Context) error
	Context() context.Context // ends with the hold
	native.Releasable
}

// acquireFunc acquires a lock of one kind.
type acquireFunc func(ctx context.Context, c *lock.Client, a client.Acquire) (held, error)

// acquirer is a lock of package lock with holds of type H.
type acquirer[H held] interface {
	Acquire(ctx context.Context, opts ...lock.Option) (H, error)
	TryAcquire(ctx context.Context, opts ...lock.Option) (H, error)
}

// fencedLock is a lock whose holds have tokens.
type fencedLock = acquirer[*lock.FencedHold]

func acquireHold[H held](of func(c *lock.Client, a client.Acquire) acquirer[H], opts ...lock.Option) acquireFunc {
	return func(ctx context.Context, c *lock.Client, a client.Acquire) (held, error) {
		if do := scopeOf(of(c, a)); a.Scoped && do != nil {
			ctx, opts := optionsOf(ctx, a, opts)
			return enter(ctx, do, opts)
		}
		h, err := acquireFrom(ctx, of(c, a), a, opts)
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

func acquireFrom[H held](ctx context.Context, l acquirer[H], a client.Acquire, opts []lock.Option) (H, error) {
	acquire := l.TryAcquire
	if a.Wait > 0 || callIn(ctx).bounded {
		acquire = l.Acquire
	}
	ctx, opts = optionsOf(ctx, a, opts)
	return acquire(ctx, opts...)
}

// optionsOf are the options of an acquire, and its context.
func optionsOf(ctx context.Context, a client.Acquire, opts []lock.Option) (context.Context, []lock.Option) {
	c := callIn(ctx)
	own := []lock.Option{lock.WithLease(a.Lease)}
	if c.reentrant {
		own = append(own, lock.WithReentry())
	}
	if c.labeled {
		own = append(own, lock.WithMetadata(c.label(a.Owner)))
	}
	if c.hold != nil {
		ctx = under{ctx, c.hold}
	} else {
		own = append(own, lock.WithOwner(a.Owner))
	}
	return ctx, slices.Concat(opts, own, c.opts)
}

// ownerName finds, in the context of a hold without a named owner, who asked for it.
type ownerName struct{}

// ownerOf is the owner that h was acquired for.
func ownerOf(h *lock.Hold) string {
	if name, ok := h.Context().Value(ownerName{}).(string); ok {
		return name
	}
	return h.Owner()
}

// acquireAnonymous acquires a mutex for an owner that has no name at the server.
func acquireAnonymous[H held](of func(c *lock.Client, a client.Acquire) acquirer[H]) acquireFunc {
	return func(ctx context.Context, c *lock.Client, a client.Acquire) (held, error) {
		l := of(c, a)
		acquire := l.TryAcquire
		if a.Wait > 0 || callIn(ctx).bounded {
			acquire = l.Acquire
		}
		ctx = context.WithValue(ctx, ownerName{}, a.Owner)
		opts := slices.Concat(callIn(ctx).opts, []lock.Option{lock.WithLease(a.Lease)})
		if callIn(ctx).marked {
			opts = append(opts, lock.WithMetadata(a.Owner))
		}
		if m, plain := any(l).(*lock.Mutex); plain && callIn(ctx).locker {
			return acquireLocker(ctx, m, a.Wait > 0, opts)
		}
		h, err := acquire(ctx, opts...)
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

func fencedMutex(c *lock.Client, a client.Acquire) fencedLock { return c.FencedMutex(a.Key) }

func newRedissonClient(conns []redis.UniversalClient, o lock.Options) (*lock.Client, error) {
	o.Layout = lock.Redisson
	return newClient(conns, o)
}

// behindError is the error of a request that may have been refused because others wait, as a reader where a waiting
// writer keeps readers out: it is no evidence that the lock is held.
type behindError struct{ error }

func (e behindError) Unwrap() error { return e.error }

// behindCode is the code of an error of a lock that refuses some requests because others wait.
func behindCode(err error) string {
	var behind behindError
	if code := native.Code(err); code != history.CodeHeld || !errors.As(err, &behind) {
		return code
	}
	return history.CodeRefused
}

// kind is how clients use one kind of lock of package lock.
type kind struct {
	newClient newClientFunc
	acquire   acquireFunc
	force     forceFunc
	inspect   inspectFunc
	owner     ownerFunc
	queue     queueFunc
	semaphore semaphoreOf
	labeled   bool // its holds have metadata
	bounded   bool // its acquires may be limited to a number of tries, and are not queued at a server
	several   bool // its holds are of several locks
	apart     bool // they are taken one after the other, even for one key
	reentrant bool // an owner may hold it several times, unless an option of the scenario refuses that
	unnamed   bool // its owners have names of their own
}

// forceFunc takes a lock from all who hold it.
type forceFunc func(ctx context.Context, c *lock.Client, key string) (held bool, err error)

// plainCan are the abilities of every lock of package lock that has an owner and a lease.
func plainCan() promise.Set {
	return promise.Reentrant | promise.Try | promise.Renew | promise.Watchdog | promise.ReportsLoss | promise.Wakes |
		promise.Fenced | promise.ForceRelease | promise.HasDo | promise.Reopen | promise.RetriesRelease1500ms |
		promise.RetriesTransientErrors | promise.RenewalsEndWithHold | promise.PollsWithoutMessages |
		promise.SurvivesSlotMigration | promise.PerServerFailures | promise.ReleasesWhenMemoryFull |
		promise.ReleaseSurvivesCancel | promise.CountsHolds | promise.BoundedCost | promise.Scripts |
		promise.CloseEndsWaits
}

// kindRow is the row of a kind of lock; k.newClient is newClient unless it says otherwise.
func kindRow(name, doc, source string, k kind) client.Spec {
	if k.newClient == nil {
		k.newClient = newClient
	}
	return client.Spec{
		Name: name, Doc: doc, Source: source,
		Topologies: []string{topology.Single, topology.Replicated, topology.Sentinel, topology.Sharded},
		Can:        plainCan(), PersistentKeys: tokenKey, ExpiringKeys: tokenKey,
		Options: testedOptions(),
		Open:    opener(k), CheckOptions: checkOptions, Definite: lock.Definite, Undone: lock.Undone, Code: native.Code,
	}
}

// kindSpecs are the other kinds of lock of package lock. A semaphore has one permit, so that
// it excludes as a mutex does, unless the workload is one of semaphores.
func kindSpecs() []client.Spec {
	fair := kindRow("fair",
		"package lock's fair mutex: first come, first served by the server's clock, handed over within the server.",
		"Redisson's fair lock, with heartbeats of seconds (redisson#3004, #1104)", kind{
			acquire:   acquireHold(func(c *lock.Client, a client.Acquire) fencedLock { return c.FairMutex(a.Key) }),
			reentrant: true,
			force: func(ctx context.Context, c *lock.Client, key string) (bool, error) {
				return c.FairMutex(key).ForceRelease(ctx)
			},
			queue: func(ctx context.Context, c *lock.Client, key string) ([]string, error) {
				return c.FairMutex(key).Queue(ctx)
			},
			inspect: inspectMutex, labeled: true,
		})
	fair.Can, fair.PersistentKeys = fair.Can.With(promise.Fair|promise.Guard|promise.CountWaiters|promise.Inspect|
		promise.DistinguishesNotOwner), fencedKeys
	nonReentrant := kindRow("non-reentrant", "package lock's mutex for owners that must not hold it twice.",
		"Redisson's non-reentrant lock (redisson#4468)", kind{
			acquire: acquireHold(fencedMutex), force: forceMutex, inspect: inspectMutex, labeled: true, bounded: true,
		})
	nonReentrant.Can = nonReentrant.Can.Without(promise.Reentrant).With(promise.RefusesReentry |
		promise.ProgramsTakeTurns | promise.Inspect | promise.DistinguishesNotOwner)
	mutex := kindRow("mutex", "package lock's mutex without tokens: a free one is acquired by SET, and each acquire "+
		"has an owner of its own.",
		"redis.io, Distributed Locks: SET NX PX, with a record of each release (redisson#4871)", kind{
			acquire: acquireAnonymous(plainMutex), force: forceMutex, inspect: inspectAnonymous, bounded: true, unnamed: true,
		})
	mutex.Can = mutex.Can.Without(promise.Reentrant | promise.Fenced | promise.HasDo).With(promise.ProgramsTakeTurns |
		promise.Inspect | promise.DistinguishesNotOwner)
	mutex.PersistentKeys = func(string) []string { return []string{} }
	spin := kindRow("spin", "package lock's mutex with polling: waiters do not subscribe.",
		"Redisson's spin lock", kind{
			acquire: acquireHold(fencedMutex, lock.WithPolling()),
			force:   forceMutex, inspect: inspectMutex, labeled: true, bounded: true, reentrant: true,
		})
	spin.Can = spin.Can.Without(promise.Wakes | promise.PollsWithoutMessages |
		promise.BoundedCost).With(promise.Inspect | promise.Guard | promise.DistinguishesNotOwner)
	spin.PersistentKeys = fencedKeys
	fenced := kindRow("fenced", "package lock's fenced mutex: every grant has a token, and each acquire has an owner of "+
		"its own.",
		"Redisson's RFencedLock; Kleppmann 2016", kind{
			acquire: acquireAnonymous(fencedMutex), force: forceMutex, inspect: inspectAnonymous, bounded: true, unnamed: true,
		})
	fenced.Can = fenced.Can.Without(promise.Reentrant | promise.HasDo).With(promise.ProgramsTakeTurns |
		promise.Inspect | promise.Guard | promise.DistinguishesNotOwner)
	fenced.PersistentKeys = fencedKeys
	specs := append([]client.Spec{fair, nonReentrant, mutex, spin, fenced}, redissonSpecs()...)
	for _, prefer := range []bool{false, true} {
		rw := kindRow("readers-writer",
			"package lock's readers-writer lock: mode read or write; a workload without a mode writes.",
			"Redisson's RReadWriteLock",
			kind{acquire: readOrWrite(prefer), force: forceRW, inspect: inspectRW, owner: inspectRWOwner, bounded: !prefer,
				reentrant: true})
		rw.Can = rw.Can.With(promise.Inspect | promise.InspectOwner | promise.ReadWrite | promise.Downgrade |
			promise.RefusesUpgrade | promise.Guard | promise.FencedReaders | promise.DistinguishesNotOwner).
			Without(promise.CountsHolds)
		rw.PersistentKeys = fencedKeys
		if prefer {
			rw.Name, rw.Can, rw.Code = "writer-preference", rw.Can.With(promise.WriterPreference), behindCode
			rw.Doc = "package lock's readers-writer lock in which a waiting writer keeps new readers out."
			rw.Source = "Courtois, Heymans, Parnas 1971, the second problem"
		} else {
			rw.Can = rw.Can.With(promise.NoHeadOfLineBlocking)
		}
		specs = append(specs, rw)
	}
	return slices.Concat(specs, []client.Spec{severalKindsSpec()}, multiSpecs(), countingSpecs())
}

// redissonSpecs are the mutexes in Redisson's layout.
func redissonSpecs() []client.Spec {
	plain := kindRow("redisson-layout", "package lock's mutex in Redisson's layout, for programs in Go and in Java.",
		"Redisson's RLock", kind{newClient: newRedissonClient, acquire: acquireHold(plainMutex), reentrant: true,
			force: forceMutex, inspect: inspectMutex})
	plain.Can = plain.Can.Without(promise.Fenced).With(promise.ProgramsTakeTurns | promise.Inspect)
	plain.PersistentKeys = func(string) []string { return []string{} }
	fenced := kindRow("redisson-fenced",
		"package lock's fenced mutex in Redisson's layout: every grant has a token.", "Redisson's RFencedLock",
		kind{newClient: newRedissonClient, acquire: acquireHold(fencedMutex), reentrant: true,
			force: forceMutex, inspect: inspectMutex})
	fenced.Can = fenced.Can.With(promise.ProgramsTakeTurns | promise.Inspect | promise.Guard)
	fenced.PersistentKeys = func(key string) []string {
		return []string{redissonTokenKey(key), guardKey(key)}
	}
	return []client.Spec{plain, fenced}
}

// countingSpecs are the kinds that count: semaphores and latches.
func countingSpecs() []client.Spec {
	plain := kindRow("semaphore", "package lock's semaphore without a lease: a crashed holder never returns its permits. "+
		"One permit, unless the workload has more.",
		"Redisson's RSemaphore", kind{acquire: acquirePermits(plainSemaphore), bounded: true, semaphore: plainSemaphore,
			force: forcePermits(plainSemaphore), owner: inspectPermits})
	// Not PollsWithoutMessages: only the first waiter polls, and one behind it may want less.
	plain.Can = promise.Permits | promise.InspectOwner | promise.RefusesExcessPermits | promise.NoHeadOfLineBlocking |
		promise.ManagesPermits | promise.Try | promise.Wakes | promise.Unleased | promise.SurvivesSlotMigration |
		promise.ReleasesWhenMemoryFull | promise.ForceRelease
	leased := kindRow("permits", "package lock's semaphore of leased permits. One permit, unless the workload has more.",
		"Redisson's RPermitExpirableSemaphore", kind{acquire: acquirePermits(leasedSemaphore), bounded: true,
			force: forcePermits(leasedSemaphore), semaphore: leasedSemaphore, owner: inspectPermits})
	leased.Can = plain.Can.Without(promise.Unleased).With(promise.Renew | promise.RenewalsEndWithHold |
		promise.Watchdog | promise.ReportsLoss | promise.ForceRelease | promise.ForceReleasePermits |
		promise.CloseEndsWaits)
	fair := kindRow("fair-permits", "package lock's fair semaphore of leased permits: first come, first served, and "+
		"small requests wait behind a large one. One permit, unless the workload has more.",
		"java.util.concurrent's fair Semaphore; Curator's InterProcessSemaphoreV2", kind{acquire: acquireFairPermits,
			force: forcePermits(fairSemaphore), semaphore: fairSemaphore, owner: inspectPermits})
	fair.Can, fair.Code = leased.Can.With(promise.Fair).Without(promise.NoHeadOfLineBlocking), behindCode
	latch := kindRow("latch", "package lock's count-down latch, which can be armed again when it is open.",
		"java.util.concurrent; Redisson's RCountDownLatch", kind{})
	latch.Can = promise.Latch | promise.Inspect | promise.Wakes | promise.BoundedCost
	plain.CheckOptions, latch.CheckOptions = checkUnlimitedOptions, checkUnlimitedOptions
	for _, s := range []*client.Spec{&plain, &leased, &fair, &latch} {
		s.PersistentKeys = func(key string) []string { return []string{key} }
	}
	return []client.Spec{plain, leased, fair, latch}
}

func forceMutex(ctx context.Context, c *lock.Client, key string) (bool, error) {
	return c.Mutex(key).ForceRelease(ctx)
}

func forceRW(ctx context.Context, c *lock.Client, key string) (bool, error) {
	return c.RW(key).ForceRelease(ctx)
}

// forcePermits releases all permits that a semaphore shows as held.
func forcePermits(of semaphoreOf) forceFunc {
	return func(ctx context.Context, c *lock.Client, key string) (bool, error) {
		s := of(c, client.Acquire{Key: key})
		state, err := s.State(ctx)
		if err != nil || len(state.Holds) == 0 {
			return false, err
		}
		ids := make([]string, len(state.Holds))
		for i, h := range state.Holds {
			ids[i] = h.ID
		}
		n, err := s.ForceRelease(ctx, ids...)
		return n > 0, err
	}
}

// tokenKey is the counter of fencing tokens, which expires after a day without a grant.
func tokenKey(key string) []string { return []string{native.BesideKey(key, "token")} }

// redissonTokenKey is the key of tokens in Redisson's layout, which has no TTL.
func redissonTokenKey(key string) string {
	if strings.Contains(key, "{") {
		return "redisson_lock_token:" + key
	}
	return "redisson_lock_token:{" + key + "}"
}

// readOrWrite acquires the side of a readers-writer lock that a request is for.
func readOrWrite(preferWriters bool) acquireFunc {
	return func(ctx context.Context, c *lock.Client, a client.Acquire) (held, error) {
		rw := c.RW(a.Key)
		if preferWriters {
			rw = rw.PreferWriters()
		}
		side := rw.Write()
		if a.Mode == "read" {
			side = rw.Read()
		}
		h, err := acquireHold(func(*lock.Client, client.Acquire) fencedLock { return side })(ctx, c, a)
		if err != nil && a.Mode == "read" {
			err = behindError{err}
		}
		return h, err
	}
}

func acquirePermits(of semaphoreOf) acquireFunc {
	return func(ctx context.Context, c *lock.Client, a client.Acquire) (held, error) {
		s := of(c, a)
		return acquireSome(ctx, a, s.Acquire, s.TryAcquire)
	}
}

func acquireFairPermits(ctx context.Context, c *lock.Client, a client.Acquire) (held, error) {
	h, err := acquirePermits(fairSemaphore)(ctx, c, a)
	if a.Wait == 0 && errors.Is(err, lock.ErrQueued) {
		err = behindError{err}
	}
	return h, err
}

// acquireFor acquires permits of a semaphore.
type acquireFor func(ctx context.Context, n int, opts ...lock.Option) (*lock.Permits, error)

func acquireSome(ctx context.Context, a client.Acquire, acquire, tryAcquire acquireFor) (held, error) {
	if a.Wait == 0 && !callIn(ctx).bounded {
		acquire = tryAcquire
	}
	p, err := acquire(ctx, a.Permits, callIn(ctx).opts...)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// tokenOf is the fencing token of a hold; 0: it has none.
func tokenOf(h held) uint64 {
	if t, ok := h.(interface{ Token() int64 }); ok {
		return uint64(t.Token())
	}
	return 0
}

func grantOf(h held) client.Grant {
	g := client.Grant{Token: tokenOf(h), Deadline: h.Deadline()}
	n, counts := h.(interface{ Count() int })
	if _, permits := h.(*lock.Permits); counts && !permits { // Permits.Count is the number of permits
		g.Count = n.Count()
	}
	return g
}
