//go:build ignore

// bsm/redislock over go-redis.

package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
)

func main() { serve(open) }

type library struct{ client *redislock.Client }

func open(e endpoints) locker { return library{redislock.New(e.connect()[0])} }

func (library) can() []string { return []string{"try", "renew", "scripts"} }

// acquire promises nothing beyond a requested lease: the library does not report when it sent the request that
// succeeded. Without one, the lease is the client's own, which it states.
func (l library) acquire(ctx context.Context, key string, lease, wait time.Duration) (any, *promise, error) {
	var own *promise
	if lease == 0 {
		lease = 10 * time.Second
		own = &promise{valid: lease}
	}
	var lock *redislock.Lock
	delay := func() time.Duration { return 20 * time.Millisecond }
	err := untilGranted(wait, delay, func() (err error) {
		if own != nil {
			own.mono = mono()
		}
		if lock, err = l.client.Obtain(ctx, key, lease, nil); errors.Is(err, redislock.ErrNotObtained) {
			err = failed{"held", err}
		}
		return err
	})
	return lock, own, err
}

func (library) renew(ctx context.Context, lock any, lease time.Duration) (*promise, error) {
	err := lock.(*redislock.Lock).Refresh(ctx, lease, nil)
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, redislock.ErrLockNotHeld) {
		err = failed{"not-held", err}
	}
	return nil, err
}

func (library) release(ctx context.Context, lock any) error {
	err := lock.(*redislock.Lock).Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		err = failed{"not-held", err}
	}
	return err
}
