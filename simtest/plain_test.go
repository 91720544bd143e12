package simtest_test

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/client"
)

const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// plain is SET NX PX with compare-and-delete.
type plain struct{ single }

var plainKind = kind{name: "plain", open: func(s client.Setup, bug string, _ func(client.Reply)) client.Locker {
	return &plain{newSingle(s, bug)}
}}

func (l *plain) Acquire(ctx context.Context, a client.Acquire) (g client.Grant, err error) {
	switch l.bug {
	case "waits without end":
		ctx = context.WithoutCancel(ctx)
	case "never returns": // it waits for a message that it has missed
		if ok, err := l.rdb.SetNX(ctx, a.Key, a.Owner, 0).Result(); !ok || err != nil {
			<-make(chan struct{})
		}
		return g, nil
	case "gives up at once": // as if the next poll were beyond the end of the wait
		a.Wait = 0
	case "waits too long": // it compares the time with the wait only now and then
		end := context.WithoutCancel(ctx)
		longer, cancel := context.WithTimeout(end, a.Wait+3*time.Second)
		defer cancel()
		ctx = longer
	case "blocks its only connection":
		return granted(time.Now(), a.Lease), l.block(ctx, a)
	}
	err = poll(ctx, a, 20*time.Millisecond, func() (bool, error) {
		start := time.Now()
		g = granted(start, a.Lease)
		ok, err := l.try(context.WithoutCancel(ctx), a)
		if l.bug == "validity from the reply" {
			g = granted(time.Now().Add(a.Lease), a.Lease)
		}
		return ok, err
	})
	return g, err
}

func (l *plain) try(ctx context.Context, a client.Acquire) (bool, error) {
	switch l.bug {
	case "exists, then set":
		if n, err := l.rdb.Exists(ctx, a.Key).Result(); n > 0 || err != nil {
			return false, err
		}
		return true, l.rdb.Set(ctx, a.Key, a.Owner, a.Lease).Err()
	case "no lease", "waits without end":
		return l.rdb.SetNX(ctx, a.Key, a.Owner, 0).Result()
	case "lease of 1000 s":
		return l.rdb.SetNX(ctx, a.Key, a.Owner, 1000*time.Second).Result()
	case "lease too short":
		return l.rdb.SetNX(ctx, a.Key, a.Owner, a.Lease/10).Result()
	case "setnx, then expire":
		ok, err := l.rdb.SetNX(ctx, a.Key, a.Owner, 0).Result()
		if ok {
			err = l.rdb.PExpire(ctx, a.Key, a.Lease).Err()
		}
		return ok, err
	case "set without nx":
		return true, l.rdb.Set(ctx, a.Key, a.Owner, a.Lease).Err()
	}
	return l.rdb.SetNX(ctx, a.Key, a.Owner, a.Lease).Result()
}

// block waits for a message that the lock is free, on a connection of the pool. Each release sends one.
func (l *plain) block(ctx context.Context, a client.Acquire) error {
	for {
		if ok, err := l.try(ctx, a); ok || err != nil {
			return err
		}
		if err := l.rdb.BLPop(context.WithoutCancel(ctx), 2*time.Second, a.Key+":free").Err(); ctx.Err() != nil {
			return errHeld
		} else if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
}

func (l *plain) Release(ctx context.Context, h client.Hold) (int, error) {
	switch l.bug {
	case "plain del":
		return 0, l.rdb.Del(ctx, h.Key).Err()
	case "get, then del":
		if owner, err := l.rdb.Get(ctx, h.Key).Result(); err != nil || owner != h.Owner {
			return 0, errNotOwner
		}
		return 0, l.rdb.Del(ctx, h.Key).Err()
	case "never releases":
		return 0, nil
	case "release fails": // a mistake in its code, before it sends anything
		return 0, errors.New("key: expected bytes, got a string")
	case "release takes seconds": // something else keeps the thread that has to do it
		<-time.After(3 * time.Second)
	case "release by hash": // nobody has loaded the script
		return 0, l.rdb.EvalSha(ctx, redis.NewScript(compareAndDelete).Hash(), []string{h.Key}, h.Owner).Err()
	case "release of two slots":
		keys := []string{h.Key, h.Key + ":waiters"}
		return 0, l.rdb.Eval(ctx, compareAndDelete, keys, h.Owner).Err()
	}
	if l.bug == "blocks its only connection" {
		defer func() { _ = l.rdb.LPush(context.WithoutCancel(ctx), h.Key+":free", "1").Err() }()
	}
	n, err := l.eval(ctx, compareAndDelete, h.Key, h.Owner)
	if err == nil && n == 0 && l.bug != "release always succeeds" {
		err = errNotOwner
	}
	return 0, err
}
