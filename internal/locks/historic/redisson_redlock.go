package historic

// Redisson's RedLock: its mutex on each of several masters, one after the other, until a majority has granted it; then
// PEXPIRE resets the lease on each of them.
//
// The flaw: it does not check the clock. If the replies of slow masters take longer than the lease, the lock has
// expired at the first of them when the last one grants it, and it counts as granted (redisson#624; the validity of
// the Redis documentation is not computed). The final PEXPIRE checks neither the owner of the key nor whether it
// exists.

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

var redissonRedlockRow = Row{
	Name: "redisson-redlock", Quorum: true, Reentrant: true, LeaseFromReply: true,
	Flaw:   "Redisson's RedLock: acquires from the masters in order, computes no validity, and so grants expired leases.",
	Source: "redisson#624; Redis documentation, Distributed Locks: the algorithm",
	open: func(c Config) Lock {
		l := &redissonRedlock{masters: c.Masters, jitter: c.jitter}
		for _, rdb := range c.Masters {
			l.locks = append(l.locks, newRedisson(rdb))
		}
		return l
	},
}

type redissonRedlock struct {
	masters []redis.UniversalClient
	locks   []*redisson
	jitter  *jitter
}

// TryAcquire acquires the lock from one master after the other.
func (l *redissonRedlock) TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error {
	var acquired []int
	var failure error
	mayFail := len(l.locks) - (len(l.locks)/2 + 1)
	for i, one := range l.locks {
		err := one.TryAcquire(ctx, name, owner, orDefault(lease))
		if err == nil {
			acquired = append(acquired, i)
			continue
		}
		if failure == nil || !errors.Is(err, ErrHeld) {
			failure = err
		}
		if i+1-len(acquired) > mayFail {
			return errors.Join(failure, l.undo(ctx, name, owner, acquired))
		}
	}
	for _, i := range acquired {
		if err := l.masters[i].PExpire(ctx, name, orDefault(lease)).Err(); err != nil {
			return err
		}
	}
	return nil
}

// undo releases the acquired locks; an acquire without a reply is not undone (redisson#1606).
func (l *redissonRedlock) undo(ctx context.Context, name, owner string, acquired []int) error {
	var failed error
	for _, i := range acquired {
		if err := l.locks[i].Release(ctx, name, owner); err != nil && !errors.Is(err, ErrNotOwner) {
			failed = err
		}
	}
	return failed
}

// acquire retries after random pauses.
func (l *redissonRedlock) acquire(
	ctx context.Context, name, owner string, lease time.Duration,
) (requested time.Time, err error) {
	failed := func(err error) bool { return err != nil }
	return retry(ctx, failed, l.jitter.next, func() error { return l.TryAcquire(ctx, name, owner, lease) })
}

// Release releases the lock on every master.
func (l *redissonRedlock) Release(ctx context.Context, name, owner string) error {
	var failed error
	released := 0
	for _, one := range l.locks {
		switch err := one.Release(ctx, name, owner); {
		case err == nil:
			released++
		case !errors.Is(err, ErrNotOwner):
			failed = err
		}
	}
	if released > 0 {
		return nil
	}
	if failed == nil {
		failed = ErrNotOwner
	}
	return failed
}

// Close closes the lock of each master.
func (l *redissonRedlock) Close() {
	for _, one := range l.locks {
		one.Close()
	}
}
