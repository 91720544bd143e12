//go:build ignore

// redsync over go-redis.

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
)

func main() { serve(open) }

type library struct{ rs *redsync.Redsync }

func open(e endpoints) locker {
	var pools []redis.Pool
	for _, rdb := range e.connect() {
		pools = append(pools, goredis.NewPool(rdb))
	}
	return library{redsync.New(pools...)}
}

func (library) can() []string { return []string{"try", "renew", "scripts"} }

func (l library) acquire(ctx context.Context, key string, lease, wait time.Duration) (any, *promise, error) {
	if lease == 0 {
		lease = 8 * time.Second // the library's default
	}
	m := l.rs.NewMutex(key, redsync.WithExpiry(lease))
	// the library's own delay
	delay := func() time.Duration { return time.Duration(50+rand.IntN(200)) * time.Millisecond }
	err := untilGranted(wait, delay, func() error { return refused("held", m.TryLockContext(ctx)) })
	if err != nil {
		return nil, nil, err
	}
	return m, promised(m.Until()), nil
}

// refused makes err definite if a majority replied that another has the lock, or every server that it was not there.
func refused(code string, err error) error {
	var taken *redsync.ErrTaken
	var node *redsync.ErrNodeTaken
	var network *redsync.RedisError
	switch {
	case errors.As(err, &taken), errors.Is(err, redsync.ErrLockAlreadyExpired),
		errors.As(err, &node) && !errors.As(err, &network):
		return failed{code, err}
	}
	return err
}

func (library) renew(ctx context.Context, lock any, _ time.Duration) (*promise, error) {
	m := lock.(*redsync.Mutex)
	ok, err := m.ExtendContext(ctx)
	switch {
	case err != nil:
		return nil, refused("not-held", err)
	case !ok:
		return nil, errors.New("Extend returned false")
	}
	return promised(m.Until()), nil
}

func (library) release(ctx context.Context, lock any) error {
	ok, err := lock.(*redsync.Mutex).UnlockContext(ctx)
	if err == nil && !ok {
		return errors.New("Unlock returned false")
	}
	return refused("not-held", err)
}
