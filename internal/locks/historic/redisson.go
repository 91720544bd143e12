package historic

// An earlier version of Redisson's mutex: a hash of owner and hold count, scripts, a pub/sub message on release, a
// watchdog for holds without a lease, and a connection that resends a command when no reply came.
//
// The flaw: the scripts do not detect that they have run before. An acquire whose reply was lost is counted twice, and
// one release leaves the lock held (redisson#7367); a release whose reply was lost fails as not the owner's
// (redisson#4871). The watchdog does not report the loss of the lock (redisson#4698), and a waiter that missed the
// message sleeps until the end of the lease that it saw (redisson#5761).

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var redissonRow = Row{
	Name: "redisson", Retries: true, Reentrant: true,
	Flaw:   "Redisson's mutex before it recognized repeated requests: an acquire that is sent again counts twice.",
	Source: "redisson#7367, redisson#4871",
	open:   func(c Config) Lock { return newRedisson(c.Masters[0]) },
}

// Redisson's first unlock script: a lock that no longer exists and a released lock get the same reply.
var redissonOldUnlockRow = Row{
	Name: "redisson-old-unlock", Retries: true, Reentrant: true,
	Flaw: "Redisson's mutex with its first unlock script, which reports success for a lock that no longer exists: " +
		"a holder that lost the lock is not informed.",
	Source: "Redisson 2 and 3, unlock script: if the key does not exist, publish and return 1",
	open: func(c Config) Lock {
		l := newRedisson(c.Masters[0])
		l.release = redissonOldRelease
		return l
	},
}

// After Redisson's RedissonLock.
const (
	redissonAcquire = `if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return -3
end
return redis.call('PTTL', KEYS[1])`

	redissonRelease = `if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return -1 end
local left = redis.call('HINCRBY', KEYS[1], ARGV[2], -1)
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return left
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], '0')
return 0`

	redissonOldRelease = `if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('PUBLISH', KEYS[2], '0')
  return 0
end
` + redissonRelease

	redissonRenew = `if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  return redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return 0`
)

// redissonGranted is the reply of redissonAcquire if the lock was granted.
const redissonGranted = -3

type redisson struct {
	rdb     redis.UniversalClient
	release string // the script

	mu    sync.Mutex
	holds map[[2]string]*redissonHold
	wg    sync.WaitGroup
}

type redissonHold struct {
	count int
	lease time.Duration
	stop  context.CancelFunc
}

func newRedisson(rdb redis.UniversalClient) *redisson {
	return &redisson{rdb: rdb, release: redissonRelease, holds: map[[2]string]*redissonHold{}}
}

func channel(name string) string { return "redisson_lock__channel:{" + name + "}" }

// try runs the acquire script once. With ErrHeld it returns the rest of the holder's lease.
func (r *redisson) try(ctx context.Context, name, owner string, lease time.Duration) (time.Duration, error) {
	ms := orDefault(lease).Milliseconds()
	n, err := r.rdb.Eval(ctx, redissonAcquire, []string{name}, ms, owner).Int64()
	switch {
	case err != nil:
		return 0, err
	case n != redissonGranted:
		return time.Duration(n) * time.Millisecond, ErrHeld
	}
	r.granted(name, owner, lease)
	return 0, nil
}

// TryAcquire acquires the lock if it is free or already owner's.
func (r *redisson) TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error {
	_, err := r.try(ctx, name, owner, lease)
	return err
}

// acquire tries, subscribes, and retries at every message and at the end of the lease that it saw.
func (r *redisson) acquire(
	ctx context.Context, name, owner string, lease time.Duration,
) (requested time.Time, err error) {
	requested = time.Now()
	if _, err := r.try(ctx, name, owner, lease); !errors.Is(err, ErrHeld) {
		return requested, err
	}
	sub := r.rdb.Subscribe(ctx, channel(name))
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		return requested, ErrHeld
	}
	released := sub.Channel()
	for {
		requested = time.Now()
		ttl, err := r.try(ctx, name, owner, lease)
		if !errors.Is(err, ErrHeld) {
			return requested, err
		}
		timer := time.NewTimer(max(ttl, time.Millisecond))
		select {
		case <-released:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return requested, ErrHeld
		}
		timer.Stop()
	}
}

// granted counts the hold and starts a watchdog if it has no lease.
func (r *redisson) granted(name, owner string, lease time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := [2]string{name, owner}
	h := r.holds[id]
	if h == nil {
		h = &redissonHold{stop: func() {}}
		r.holds[id] = h
		if lease == 0 {
			var ctx context.Context
			ctx, h.stop = context.WithCancel(context.Background())
			r.wg.Go(func() { r.renew(ctx, name, owner) })
		}
	}
	h.count++
	h.lease = lease
}

func (r *redisson) renew(ctx context.Context, name, owner string) {
	for sleep(ctx, DefaultLease/3) {
		n, err := r.rdb.Eval(ctx, redissonRenew, []string{name}, DefaultLease.Milliseconds(), owner).Int()
		if err == nil && n == 0 {
			return // lost, without a report
		}
	}
}

// Release releases one hold.
func (r *redisson) Release(ctx context.Context, name, owner string) error {
	lease := r.drop(name, owner)
	n, err := r.rdb.Eval(ctx, r.release, []string{name, channel(name)},
		orDefault(lease).Milliseconds(), owner).Int()
	if err == nil && n < 0 {
		return ErrNotOwner
	}
	return err
}

// drop removes one hold, whatever the result of its release, and returns its lease.
func (r *redisson) drop(name, owner string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := [2]string{name, owner}
	h := r.holds[id]
	if h == nil {
		return 0
	}
	if h.count--; h.count == 0 {
		h.stop()
		delete(r.holds, id)
	}
	return h.lease
}

// Close stops the watchdogs.
func (r *redisson) Close() {
	r.mu.Lock()
	for _, h := range r.holds {
		h.stop()
	}
	r.mu.Unlock()
	r.wg.Wait()
}
