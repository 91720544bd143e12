package locks

import (
	"context"
	"errors"
	"strings"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/promise"
)

// multiSpecs are the kinds of several locks as one.
func multiSpecs() []client.Spec {
	multi := kindRow("multi", "package lock's multi-lock: one script acquires two keys with the same hash tag, all or "+
		"none, except while their slot migrates; the second one is fenced. An operation on several keys acquires two for "+
		"each.",
		"Redisson's RMultiLock (redisson#2172)",
		kind{acquire: acquireMulti(twoMutexes, 1, lock.WithAtomic()), several: true, reentrant: true})
	multi.PersistentKeys = multiTokens(2)
	mixed := kindRow("multi-kinds", "package lock's multi-lock of several kinds, acquired one after another: a writer "+
		"has two readers-writer locks, a fair and a fenced mutex; a reader has the first two.",
		"Redisson's and Curator's multi-locks take any kind; redisson#1160",
		kind{acquire: acquireMulti(severalKinds, 0), several: true, apart: true, reentrant: true})
	permits := kindRow("multi-permits", "package lock's multi-lock of permits, acquired one after another: equally many "+
		"of a semaphore of leased permits, of a fair one, and of one without leases that has plenty. The first two have one "+
		"permit, unless the workload has more.",
		"redisson#2172; java.util.concurrent's Semaphore", kind{acquire: acquireMulti(threeSemaphores, 0), several: true,
			apart: true})
	// The bounds of bounded-cost are for a hold of one lock at the servers, and this one has up to four.
	mixed.Can = mixed.Can.Without(promise.BoundedCost).With(promise.ReadWrite | promise.Downgrade |
		promise.RefusesUpgrade | promise.NoHeadOfLineBlocking)
	mixed.PersistentKeys = multiTokens(4)
	permits.Can = promise.Permits | promise.RefusesExcessPermits | promise.NoHeadOfLineBlocking | promise.Try |
		promise.Renew | promise.RenewalsEndWithHold | promise.Watchdog | promise.ReportsLoss | promise.Wakes |
		promise.SurvivesSlotMigration | promise.ReleasesWhenMemoryFull
	permits.PersistentKeys = func(key string) []string {
		names := native.MultiKeys(key)
		return names[:3]
	}
	specs := []client.Spec{multi, mixed, permits}
	for i := range specs {
		s := &specs[i]
		// PerServerFailures: the keys of one hold may be at several servers. CloseEndsWaits: see acquireUntilClosed.
		s.Can = s.Can.With(promise.MultiKey | promise.MultiKeyBacksOff4s).Without(promise.ForceRelease |
			promise.CountsHolds | promise.PerServerFailures | promise.HasDo | promise.CloseEndsWaits)
		s.CheckOptions, s.ExpiringKeys = checkUnlimitedOptions, multiTokens(4)
		s.Undone = func(err error) bool {
			var parts partsError
			return errors.As(err, &parts) || lock.Undone(err)
		}
	}
	return specs
}

// keyOf is the key in a request for the lock that package lock calls name: the reverse of [MultiKeys].
func keyOf(name string) string {
	i := strings.LastIndex(name, ":")
	if i < 0 || len(name)-i != len(":b") || !strings.Contains(name[:i], "{") {
		return name
	}
	if key, ok := strings.CutPrefix(name[:i], "{"); ok && strings.IndexByte(key, '}') == len(key)-1 {
		return key[:len(key)-1]
	}
	return name[:i]
}

// multiTokens are the counters of fencing tokens of n locks for one key.
func multiTokens(n int) func(key string) []string {
	return func(key string) (keys []string) {
		names := native.MultiKeys(key)
		for _, name := range names[1:n] {
			keys = append(keys, name+":token")
		}
		return append(keys, tokenKey(key)...)
	}
}

// multiOf makes the locks of a multi-lock for one key of a request.
type multiOf func(c *lock.Client, key string, a client.Acquire) []lock.AnyLock

// twoMutexes are a plain mutex and a fenced one, which one script takes: then both have tokens.
func twoMutexes(c *lock.Client, key string, _ client.Acquire) []lock.AnyLock {
	names := native.MultiKeys(key)
	return []lock.AnyLock{c.Mutex(names[0]), c.FencedMutex(names[1])}
}

// plenty is how many permits a semaphore has that never refuses any: permits of dead clients stay taken.
const plenty = 1_000_000

// threeSemaphores are two with leases, and last in the order of a multi-lock one without, whose permits never run out.
func threeSemaphores(c *lock.Client, key string, a client.Acquire) []lock.AnyLock {
	names, total := native.MultiKeys(key), sizedBy(a)
	return []lock.AnyLock{
		c.FairSemaphore(names[1], total...).Permits(a.Permits), c.PermitSemaphore(names[0], total...).Permits(a.Permits),
		c.Semaphore(names[2], lock.WithTotal(plenty)).Permits(a.Permits),
	}
}

func severalKinds(c *lock.Client, key string, a client.Acquire) []lock.AnyLock {
	names := native.MultiKeys(key)
	first, last := c.RW(names[0]), c.RW(names[3])
	if a.Mode == "read" {
		return []lock.AnyLock{last.Read(), first.Read()}
	}
	return []lock.AnyLock{last.Write(), c.FencedMutex(names[2]), c.FairMutex(names[1]), first.Write()}
}

// partsError is the error of an acquire of several keys that are taken one after the other: some of them may have been
// held until it failed.
type partsError struct{ error }

func (e partsError) Unwrap() error { return e.error }

// multiHold is a hold of the keys of a multi-lock, with the token of the first that was requested.
type multiHold struct {
	*lock.MultiHold
	fenced string // the lock that has it
}

// Token is the fencing token.
func (h multiHold) Token() int64 {
	token, _ := h.MultiHold.Token(h.fenced)
	return token
}

// acquireMulti acquires the locks that MultiKeys names for each key, of which the one at index fenced has the token.
// The options single apply only to an operation on one key whose slot cannot migrate.
func acquireMulti(of multiOf, fenced int, single ...lock.Option) acquireFunc {
	return func(ctx context.Context, c *lock.Client, a client.Acquire) (held, error) {
		keys := a.Keys
		if len(keys) == 0 {
			keys = []string{a.Key}
		}
		var locks []lock.AnyLock
		for _, key := range keys {
			locks = append(locks, of(c, key, a)...)
		}
		m, err := lock.Multi(locks...)
		if err != nil {
			return nil, err
		}
		var opts []lock.Option
		if len(keys) == 1 && !callIn(ctx).sharded {
			opts = append(opts, single...)
		}
		h, err := acquireFrom(ctx, m, a, opts)
		switch {
		case err != nil:
			return nil, err
		case a.Mode == "read": // it has the tokens of the last writers
			return h, nil
		}
		return multiHold{h, native.MultiKeys(keys[0])[fenced]}, nil
	}
}
