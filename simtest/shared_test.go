package simtest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

// semaphore is a sorted set of permits by the end of their lease, on the server's clock.
type semaphore struct{ single }

var semaphoreKind = kind{
	name: "semaphore", can: promise.Permits,
	open: func(s client.Setup, bug string, _ func(client.Reply)) client.Locker {
		return &semaphore{newSingle(s, bug)}
	},
}

const (
	serverNow = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000) `
	takeOut   = serverNow + `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) + ARGV[2] > tonumber(ARGV[3]) then return 0 end
for i = 1, tonumber(ARGV[2]) do redis.call('ZADD', KEYS[1], now + ARGV[4], ARGV[1] .. ':' .. i) end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return 1`
	putBack = `local n = 0 for i = 1, tonumber(ARGV[2]) do n = n + redis.call('ZREM', KEYS[1], ARGV[1] .. ':' .. i) end return n`
)

func (l *semaphore) Acquire(ctx context.Context, a client.Acquire) (g client.Grant, err error) {
	limit, lease := a.Limit, a.Lease
	switch l.bug {
	case "one permit too many":
		limit++
	case "lease halved":
		lease /= 4
	case "permits of the dead":
		lease = 1000 * time.Second
	}
	err = poll(ctx, a, 20*time.Millisecond, func() (bool, error) {
		g = granted(time.Now(), a.Lease)
		if l.bug == "count, then take" {
			n, err := l.rdb.ZCard(context.WithoutCancel(ctx), a.Key).Result()
			if err != nil || int(n)+a.Permits > limit {
				return false, err
			}
			n64, err := l.eval(ctx, takeOut, a.Key, a.Owner, a.Permits, 1000, lease.Milliseconds())
			return n64 > 0, err
		}
		n, err := l.eval(ctx, takeOut, a.Key, a.Owner, a.Permits, limit, lease.Milliseconds())
		return n > 0, err
	})
	return g, err
}

func (l *semaphore) Release(ctx context.Context, h client.Hold) (int, error) {
	permits := h.Permits
	switch l.bug {
	case "releases all":
		return 0, l.rdb.Del(ctx, h.Key).Err()
	case "returns one permit":
		permits = 1
	}
	n, err := l.eval(ctx, putBack, h.Key, h.Owner, permits)
	if err == nil && n == 0 {
		err = errNotOwner
	}
	return 0, err
}

// readWrite is a string with the writer, and a sorted set of readers by the end of their lease.
type readWrite struct{ single }

var readWriteKind = kind{
	name: "read-write", can: promise.ReadWrite,
	open: func(s client.Setup, bug string, _ func(client.Reply)) client.Locker {
		return &readWrite{newSingle(s, bug)}
	},
}

const (
	readersOf = `local readers = '{' .. KEYS[1] .. '}:readers' ` + serverNow + `
redis.call('ZREMRANGEBYSCORE', readers, '-inf', now) `
	lockRead = readersOf + `
if redis.call('EXISTS', KEYS[1]) == 1 and ARGV[3] ~= 'reader ignores writer' then return 0 end
redis.call('ZADD', readers, now + ARGV[2], ARGV[1])
if redis.call('PTTL', readers) < tonumber(ARGV[2]) then redis.call('PEXPIRE', readers, ARGV[2]) end
return 1`
	lockWrite = readersOf + `
if redis.call('ZCARD', readers) > 0 and ARGV[3] ~= 'writer ignores readers' then return 0 end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return 0`
	unlockRead = readersOf + `
if ARGV[2] == 'last reader out' then return redis.call('DEL', readers) end
return redis.call('ZREM', readers, ARGV[1])`
)

func (l *readWrite) Acquire(ctx context.Context, a client.Acquire) (g client.Grant, err error) {
	script, lease := lockWrite, a.Lease
	if a.Mode == "read" {
		script = lockRead
		if l.bug == "readers never expire" {
			lease = 1000 * time.Second
		}
	}
	err = poll(ctx, a, 20*time.Millisecond, func() (bool, error) {
		g = granted(time.Now(), a.Lease)
		n, err := l.eval(ctx, script, a.Key, a.Owner, lease.Milliseconds(), l.bug)
		return n > 0, err
	})
	return g, err
}

func (l *readWrite) Release(ctx context.Context, h client.Hold) (n int, err error) {
	switch {
	case h.Mode == "read":
		n, err = l.eval(ctx, unlockRead, h.Key, h.Owner, l.bug)
	case l.bug == "writer stays":
		n = 1
	default:
		n, err = l.eval(ctx, compareAndDelete, h.Key, h.Owner)
	}
	if err == nil && n == 0 {
		err = fmt.Errorf("release of a %q: %w", h.Mode, errNotOwner)
	}
	return 0, err
}
