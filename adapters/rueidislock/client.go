//go:build ignore

// rueidislock: client lock | lock-one-key.

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func main() { serve(open) }

// library has a Locker for each lease: the validity is a setting of a Locker. One for leases that the client requests
// does not renew them.
type library struct {
	e       endpoints
	lockers map[time.Duration]rueidislock.Locker
}

func open(e endpoints) locker { return library{e, make(map[time.Duration]rueidislock.Locker)} }

func (library) can() []string { return []string{"try", "watchdog", "wakes", "reports-loss", "scripts"} }

// hold is a granted lock: a context, which ends with it, and the function that releases it.
type hold struct {
	context.Context
	release context.CancelFunc
}

func (h hold) lost() <-chan struct{} { return h.Done() }

func (l library) locker(lease time.Duration) (rueidislock.Locker, error) {
	if open := l.lockers[lease]; open != nil {
		return open, nil
	}
	o := rueidislock.LockerOption{KeyValidity: lease, ClientOption: rueidis.ClientOption{
		InitAddress: l.e.Addrs, Password: l.e.Password,
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return l.e.dial(ctx, "tcp", addr)
		}}}
	if l.e.Kind == "sentinel" {
		o.ClientOption.InitAddress = l.e.Sentinels
		o.ClientOption.Sentinel = rueidis.SentinelOption{MasterSet: l.e.MasterName, Password: l.e.Password}
	}
	if lease > 0 {
		o.ExtendInterval = 2 * lease
	}
	if os.Args[1] == "lock-one-key" {
		o.KeyMajority = 1
	}
	opened, err := rueidislock.NewLocker(o)
	if err == nil {
		l.lockers[lease] = opened
	}
	return opened, err
}

func (l library) acquire(ctx context.Context, key string, lease, wait time.Duration) (any, *promise, error) {
	locks, err := l.locker(lease)
	if err != nil {
		return nil, nil, err
	}
	ctx, end := context.WithCancel(ctx)
	acquire, stop := locks.WithContext, func() bool { return true }
	if wait == 0 {
		acquire = locks.TryWithContext
	} else { // a deadline of ctx would also be the hold's
		stop = time.AfterFunc(wait, end).Stop
	}
	held, release, err := acquire(ctx, key)
	if !stop() && err == nil { // granted as the wait ended, which has ended the hold too
		release()
		err = context.Canceled
	}
	if errors.Is(err, context.Canceled) { // of the wait, which does not say whether another has the lock
		ctx, end = context.WithCancel(context.WithoutCancel(ctx))
		held, release, err = locks.TryWithContext(ctx, key)
	}
	switch {
	case errors.Is(err, rueidislock.ErrNotLocked):
		return nil, nil, failed{"held", err}
	case err != nil:
		return nil, nil, err
	}
	if lease > 0 { // the library keeps a hold until it is released or its context ends
		time.AfterFunc(lease, end)
	}
	return &hold{held, release}, nil, nil
}

func (library) renew(context.Context, any, time.Duration) (*promise, error) {
	return nil, failed{"unknown-op", errors.New("no renewal")}
}

func (library) release(_ context.Context, lock any) error {
	h := lock.(*hold)
	lost := h.Err()
	h.release()
	if lost != nil {
		return failed{"lost", lost}
	}
	return nil
}
