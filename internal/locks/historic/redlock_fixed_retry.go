package historic

// RedLock with all but one of the rules of the Redis documentation: SET NX PX at one master after the other, a limit
// for each, a majority, the elapsed time subtracted from the lease, and a release at every master after a failed
// attempt. A client begins with the master that is nearest to it.
//
// The flaw: it retries after a fixed time. Clients that ask at the same time, each a different master first, split
// the votes; all of them give up and retry after the same time, so they split the votes again. The documentation
// requires a random delay.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

var redlockFixedRetryRow = Row{
	Name: "redlock-fixed-retry", Quorum: true, Ordered: true,
	Flaw:   "RedLock that retries after a fixed time: clients that split the votes once keep splitting them.",
	Source: "redis.io, Distributed Locks, \"Retry on failure\": a random delay",
	open: func(c Config) Lock {
		n := c.First % len(c.Masters)
		return redlockFixedRetry{slices.Concat(c.Masters[n:], c.Masters[:n])}
	},
}

const (
	// retryEvery is the time from one attempt of a waiter to its next one.
	retryEvery = 500 * time.Millisecond
	// askShare is the part of the lease that one master has to reply in.
	askShare = 10
	// clockDrift is the percentage of a lease that is subtracted for clocks of different speed.
	clockDrift = 1
)

// errNoMajority means that too few masters replied to a release.
var errNoMajority = errors.New("a majority of the masters did not reply")

type redlockFixedRetry struct{ masters []redis.UniversalClient } // in the order in which it asks them

// everywhere sends a request to one master after the other. It returns how many replied yes, and how many no.
func (l redlockFixedRetry) everywhere(
	ctx context.Context, lease time.Duration, do func(ctx context.Context, rdb redis.UniversalClient) (bool, error),
) (yes, no int) {
	for _, rdb := range l.masters {
		limited, cancel := context.WithTimeout(ctx, lease/askShare)
		is, err := do(limited, rdb)
		cancel()
		switch {
		case err != nil:
		case is:
			yes++
		default:
			no++
		}
	}
	return yes, no
}

func (l redlockFixedRetry) majority(n int) bool { return n > len(l.masters)/2 }

// TryAcquire sets the key to owner at a majority of the masters.
func (l redlockFixedRetry) TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error {
	lease = orDefault(lease)
	start := time.Now()
	votes, _ := l.everywhere(ctx, lease, func(ctx context.Context, rdb redis.UniversalClient) (bool, error) {
		return rdb.SetNX(ctx, name, owner, lease).Result()
	})
	if l.majority(votes) && time.Since(start) < lease-lease*clockDrift/100 {
		return nil
	}
	if yes, no := l.remove(context.WithoutCancel(ctx), name, owner, lease); !l.majority(yes + no) {
		return errNoMajority
	}
	return ErrHeld
}

// remove deletes the key at every master that has it for owner: yes.
func (l redlockFixedRetry) remove(ctx context.Context, name, owner string, lease time.Duration) (yes, no int) {
	return l.everywhere(ctx, lease, func(ctx context.Context, rdb redis.UniversalClient) (bool, error) {
		n, err := rdb.Eval(ctx, compareAndDelete, []string{name}, owner).Int()
		return n > 0, err
	})
}

// acquire tries at fixed intervals from the first attempt on. An attempt that takes longer skips some.
func (l redlockFixedRetry) acquire(
	ctx context.Context, name, owner string, lease time.Duration,
) (requested time.Time, err error) {
	first := time.Now()
	rest := func() time.Duration { return retryEvery - time.Since(first)%retryEvery }
	return retry(ctx, isHeld, rest, func() error { return l.TryAcquire(ctx, name, owner, lease) })
}

// Release deletes the key at every master that has it for owner. A majority that does not have it proves that the hold
// was lost.
func (l redlockFixedRetry) Release(ctx context.Context, name, owner string) error {
	switch yes, no := l.remove(ctx, name, owner, DefaultLease); {
	case l.majority(no):
		return ErrNotOwner
	case !l.majority(yes + no):
		return errNoMajority
	}
	return nil
}

// Close does nothing.
func (redlockFixedRetry) Close() {}
