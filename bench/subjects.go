package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/lockchaos/lockchaos/lock"
)

// settings describes the subjects.
const settings = `subjects and their settings (each with its own connections; no renewals within a round):
  raw-evalsha    two scripts, SET NX PX and compare-and-delete, go-redis with a pool of 100: no lock, the upper limit
  raw-set        the first of them as a command
  lockchaos      lock.Options{}: watchdog, pub/sub, no fencing tokens, as the others; go-redis with a pool of 100
  lockchaos-fair the same client's fair mutex
  rueidislock    KeyMajority 1, NoLoopTracking (what its README says for one Redis of 7.0.5 or later)
  redislock      bsm/redislock, TTL 30 s, LinearBackoff(100 ms) as in its README; go-redis with a pool of 100
  redislock-10ms the same with LinearBackoff(10 ms): ten times the requests
  redsync        expiry 30 s, its own delay of 50 to 250 ms, unlimited tries; go-redis with a pool of 100`

// lease is the same for every subject.
const lease = 30 * time.Second

// subject is one lock library.
type subject struct {
	name string
	// acquire waits for the lock on key; release releases it.
	acquire func(ctx context.Context, key string) (release func() error, err error)
	close   func()
	sets    bool // sends SET as a command of its own; SET in scripts is not counted
}

// opener returns a subject on the server at addr.
type opener func(addr string) (subject, error)

// requests are the commands that count as requests of a subject. INFO also counts commands that scripts call, so set
// (used in scripts of redislock and rueidislock) and publish (in scripts of lockchaos) are excluded.
var requests = map[string]bool{
	"eval": true, "evalsha": true, "subscribe": true, "unsubscribe": true, "ssubscribe": true, "sunsubscribe": true,
}

func dial(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 100, ContextTimeoutEnabled: true})
}

const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

func rawScripts(addr string) (subject, error) {
	rdb := dial(addr)
	set := redis.NewScript(`return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`)
	del := redis.NewScript(compareAndDelete)
	return subject{name: "raw-evalsha", acquire: func(ctx context.Context, key string) (func() error, error) {
		if err := set.Run(ctx, rdb, []string{key}, "me", lease.Milliseconds()).Err(); err != nil {
			return nil, err
		}
		return func() error { return del.Run(ctx, rdb, []string{key}, "me").Err() }, nil
	}, close: func() { _ = rdb.Close() }}, nil
}

func rawCommands(addr string) (subject, error) {
	rdb := dial(addr)
	del := redis.NewScript(compareAndDelete)
	return subject{name: "raw-set", acquire: func(ctx context.Context, key string) (func() error, error) {
		ok, err := rdb.SetNX(ctx, key, "me", lease).Result()
		if err != nil || !ok {
			return nil, fmt.Errorf("set %s: %v, %w", key, ok, err)
		}
		return func() error { return del.Run(ctx, rdb, []string{key}, "me").Err() }, nil
	}, close: func() { _ = rdb.Close() }}, nil
}

// releaser is a hold.
type releaser interface {
	Release(ctx context.Context) error
}

func ours(addr string) (subject, error) {
	return library("lockchaos", addr, func(ctx context.Context, c *lock.Client, key string) (releaser, error) {
		return c.Mutex(key).Acquire(ctx)
	})
}

func oursFair(addr string) (subject, error) {
	return library("lockchaos-fair", addr, func(ctx context.Context, c *lock.Client, key string) (releaser, error) {
		return c.FairMutex(key).Acquire(ctx)
	})
}

func library(name, addr string,
	acquire func(context.Context, *lock.Client, string) (releaser, error)) (subject, error) {
	rdb := dial(addr)
	c, err := lock.New(rdb, lock.Options{Lease: lease})
	if err != nil {
		return subject{}, err
	}
	return subject{name: name, acquire: func(ctx context.Context, key string) (func() error, error) {
		h, err := acquire(ctx, c, key)
		if err != nil {
			return nil, err
		}
		return func() error { return h.Release(ctx) }, nil
	}, close: func() {
		_ = c.Close(context.Background())
		_ = rdb.Close()
	}}, nil
}

func rueidisLocker(addr string, every time.Duration) (rueidislock.Locker, error) {
	return rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:  1, NoLoopTracking: true, KeyValidity: every * 3, ExtendInterval: every,
	})
}

func rueidisSubject(addr string) (subject, error) {
	l, err := rueidisLocker(addr, lease/3)
	if err != nil {
		return subject{}, err
	}
	return subject{name: "rueidislock", acquire: func(ctx context.Context, key string) (func() error, error) {
		_, cancel, err := l.WithContext(ctx, key)
		return func() error { cancel(); return nil }, err
	}, close: l.Close}, nil
}

func redislockEvery(name string, every time.Duration) opener {
	return func(addr string) (subject, error) {
		rdb := dial(addr)
		c := redislock.New(rdb)
		return subject{name: name, acquire: func(ctx context.Context, key string) (func() error, error) {
			l, err := c.Obtain(ctx, key, lease, &redislock.Options{RetryStrategy: redislock.LinearBackoff(every)})
			if err != nil {
				return nil, err
			}
			return func() error { return l.Release(ctx) }, nil
		}, close: func() { _ = rdb.Close() }}, nil
	}
}

func redsyncSubject(addr string) (subject, error) {
	rdb := dial(addr)
	rs := redsync.New(goredis.NewPool(rdb))
	return subject{name: "redsync", sets: true, acquire: func(ctx context.Context, key string) (func() error, error) {
		m := rs.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(1<<30))
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		return func() error {
			_, err := m.UnlockContext(ctx)
			return err
		}, nil
	}, close: func() { _ = rdb.Close() }}, nil
}

// open opens a subject with each opener. If one fails, open closes the others.
func open(addr string, openers ...opener) ([]subject, error) {
	var all []subject
	for _, o := range openers {
		s, err := o(addr)
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// closeAll closes subjects, and stops waiting for a hanging one after stuckAfter.
func closeAll(all []subject) {
	for _, s := range all {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			s.close()
		}()
		select {
		case <-closed:
		case <-time.After(stuckAfter):
			fmt.Fprintf(os.Stderr, "bench: %s does not close\n", s.name)
		}
	}
}
