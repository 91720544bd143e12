package samplelocks

import (
	"context"
	"errors"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

func plainLock() Lock {
	return Lock{
		Name: "plain",
		Can:  promise.Try | promise.Renew,
		Bugs: map[string]string{
			"compares-first": "release compares the token and deletes the key in two requests",
			"renews-any":     "renew does not compare the token",
			"late-start":     "the validity counts from the reply",
			"error-is-busy":  "an acquire without a reply is reported as refused",
			"expires-later":  "the time to live is set with a second request",
		},
		open: func(b base) client.Locker { return &plain{b} },
	}
}

// plain is SET NX PX with a token.
type plain struct{ base }

const (
	deleteIfMine = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
	renewIfMine  = `if redis.call('GET', KEYS[1]) == ARGV[1] then
		return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`
)

func (l *plain) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	start, err := l.poll(ctx, a.Wait, func() (bool, error) {
		if l.bug == "expires-later" {
			ok, err := l.rdb().SetNX(ctx, a.Key, a.Owner, 0).Result()
			if ok {
				err = l.rdb().PExpire(ctx, a.Key, a.Lease).Err()
			}
			return ok, err
		}
		return l.rdb().SetNX(ctx, a.Key, a.Owner, a.Lease).Result()
	})
	if l.bug == "late-start" {
		start = time.Now()
	}
	if l.bug == "error-is-busy" && err != nil {
		err = errBusy
	}
	if errors.Is(err, errUnknown) {
		l.undo(a)
	}
	return valid(start.Add(a.Lease), err)
}

// undo releases the lock that a request without a reply may have acquired. The outcome stays unknown.
func (l *plain) undo(a client.Acquire) {
	ctx, cancel := cleanup()
	defer cancel()
	_, _ = run(ctx, l.rdb(), deleteIfMine, []string{a.Key}, a.Owner)
}

func (l *plain) Renew(ctx context.Context, h client.Hold, lease time.Duration) (client.Grant, error) {
	start := time.Now()
	if l.bug == "renews-any" {
		ok, err := l.rdb().PExpire(ctx, h.Key, lease).Result()
		if err == nil && !ok {
			err = client.ErrNotHeld
		}
		return valid(start.Add(lease), err)
	}
	return valid(start.Add(lease), l.change(ctx, renewIfMine, []string{h.Key}, h.Owner, ms(lease)))
}

func (l *plain) Release(ctx context.Context, h client.Hold) (int, error) {
	if l.bug == "compares-first" {
		if owner, err := l.rdb().Get(ctx, h.Key).Result(); err != nil || owner != h.Owner {
			return 0, client.ErrNotHeld
		}
		return 0, l.rdb().Del(ctx, h.Key).Err()
	}
	return 0, l.change(ctx, deleteIfMine, []string{h.Key}, h.Owner)
}
