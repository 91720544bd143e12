package historic

// Redisson's mutex as it was: a hash of owner and hold count, scripts, a
// message when it is free, a watchdog for holds that name no lease; and a
// connection that sends a request again when no answer came.
//
// The flaw: the scripts do not know that they have run before. An acquire whose
// answer was lost is counted twice, and one release leaves the lock held
// (redisson#7367); a release whose answer was lost is told that it owns nothing
// (redisson#4871). The watchdog tells nobody that the lock is lost
// (redisson#4698), and a waiter that missed the message sleeps for as long as
// the lease that it saw (redisson#5761).

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var redissonRow = Row{
	Name: "redisson", Retries: true, Reentrant: true,
	Flaw:   "Redisson's mutex before its latch: an acquire that is sent again is counted twice and never comes free.",
	Source: "redisson#7367, redisson#4871",
	open:   func(c Config) Lock { return newRedisson(c.Masters[0]) },
}

// Model read in Redisson's RedissonLock; written anew.
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

	redissonRenew = `if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  return redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return 0`
)

// got is the answer of redissonAcquire that says: it is yours.
const got = -3

type redisson struct {
	rdb redis.UniversalClient

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
	return &redisson{rdb: rdb, holds: map[[2]string]*redissonHold{}}
}

func channel(name string) string { return "redisson_lock__channel:{" + name + "}" }

// ask runs the script of acquire once: nil, or ErrHeld and what the holder has left.
func (r *redisson) ask(ctx context.Context, name, owner string, lease time.Duration) (time.Duration, error) {
	ms := orDefault(lease).Milliseconds()
	n, err := r.rdb.Eval(ctx, redissonAcquire, []string{name}, ms, owner).Int64()
	switch {
	case err != nil:
		return 0, err
	case n != got:
		return time.Duration(n) * time.Millisecond, ErrHeld
	}
	r.granted(name, owner, lease)
	return 0, nil
}

// TryAcquire takes the lock if it is free or owner's already.
func (r *redisson) TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error {
	_, err := r.ask(ctx, name, owner, lease)
	return err
}

// acquire tries, subscribes, and tries again whenever it is told that the lock
// is free, or the lease that it saw is over.
func (r *redisson) acquire(
	ctx context.Context, name, owner string, lease time.Duration,
) (asked time.Time, err error) {
	asked = time.Now()
	if _, err := r.ask(ctx, name, owner, lease); !errors.Is(err, ErrHeld) {
		return asked, err
	}
	sub := r.rdb.Subscribe(ctx, channel(name))
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		return asked, ErrHeld
	}
	told := sub.Channel()
	for {
		asked = time.Now()
		ttl, err := r.ask(ctx, name, owner, lease)
		if !errors.Is(err, ErrHeld) {
			return asked, err
		}
		timer := time.NewTimer(max(ttl, time.Millisecond))
		select {
		case <-told:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return asked, ErrHeld
		}
		timer.Stop()
	}
}

// granted counts the hold, and has a watchdog renew it if it named no lease.
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
	for pause(ctx, DefaultLease/3) {
		n, err := r.rdb.Eval(ctx, redissonRenew, []string{name}, DefaultLease.Milliseconds(), owner).Int()
		if err == nil && n == 0 {
			return // lost, and nobody is told
		}
	}
}

// Release gives one hold back.
func (r *redisson) Release(ctx context.Context, name, owner string) error {
	lease := r.dropped(name, owner)
	n, err := r.rdb.Eval(ctx, redissonRelease, []string{name, channel(name)},
		orDefault(lease).Milliseconds(), owner).Int()
	if err == nil && n < 0 {
		return ErrNotOwner
	}
	return err
}

// dropped forgets one hold, whatever its release will come to, and says its lease.
func (r *redisson) dropped(name, owner string) time.Duration {
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

// Close ends the watchdog.
func (r *redisson) Close() {
	r.mu.Lock()
	for _, h := range r.holds {
		h.stop()
	}
	r.mu.Unlock()
	r.wg.Wait()
}
