package historic

// Redisson's RedLock: its mutex on each of several masters, asked one after the
// other, in order, until a majority has granted; then the lease is set anew on
// all of them.
//
// The flaw: nobody looks at the clock. When the answers of slow masters took
// longer than the lease, the first of them have forgotten the lock by the time
// the last one grants it, and it is granted all the same (redisson#624; the
// validity of the Redis documentation is not computed at all). The final
// PEXPIRE asks neither who owns the key nor whether it was there.

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

var redissonRedlockRow = Row{
	Name: "redisson-redlock", Many: true, Reentrant: true, Late: true,
	Flaw:   "Redisson's RedLock: asks masters in order and computes no validity; grants after its lease was over.",
	Source: "redisson#624; Redis documentation, Distributed Locks: the algorithm",
	open: func(c Config) Lock {
		l := &redissonRedlock{masters: c.Masters, dice: c.dice}
		for _, rdb := range c.Masters {
			l.locks = append(l.locks, newRedisson(rdb))
		}
		return l
	},
}

type redissonRedlock struct {
	masters []redis.UniversalClient
	locks   []*redisson
	dice    *dice
}

// TryAcquire asks one master after the other.
func (l *redissonRedlock) TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error {
	var taken []int
	var why error
	mayFail := len(l.locks) - (len(l.locks)/2 + 1)
	for i, one := range l.locks {
		err := one.TryAcquire(ctx, name, owner, orDefault(lease))
		if err == nil {
			taken = append(taken, i)
			continue
		}
		if why == nil || !errors.Is(err, ErrHeld) {
			why = err
		}
		if i+1-len(taken) > mayFail {
			return errors.Join(why, l.undo(ctx, name, owner, taken))
		}
	}
	for _, i := range taken {
		if err := l.masters[i].PExpire(ctx, name, orDefault(lease)).Err(); err != nil {
			return err
		}
	}
	return nil
}

// undo gives back what was taken; what was asked for and not answered stays (redisson#1606).
func (l *redissonRedlock) undo(ctx context.Context, name, owner string, taken []int) error {
	var failed error
	for _, i := range taken {
		if err := l.locks[i].Release(ctx, name, owner); err != nil && !errors.Is(err, ErrNotOwner) {
			failed = err
		}
	}
	return failed
}

// acquire tries again after a pause drawn by chance.
func (l *redissonRedlock) acquire(
	ctx context.Context, name, owner string, lease time.Duration,
) (asked time.Time, err error) {
	for {
		asked = time.Now()
		err := l.TryAcquire(ctx, name, owner, lease)
		if err == nil || !pause(ctx, l.dice.pause()) {
			return asked, err
		}
	}
}

// Release gives the lock back on every master.
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

// Close ends nothing: with a lease, there is no watchdog.
func (l *redissonRedlock) Close() {
	for _, one := range l.locks {
		one.Close()
	}
}
