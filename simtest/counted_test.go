package simtest_test

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

// counted is a hash with owner and hold count, and a fencing token with every grant.
type counted struct{ single }

var countedKind = kind{
	name: "counted", can: promise.Reentrant | promise.Try | promise.Fenced,
	open: func(s client.Setup, bug string, _ func(client.Reply)) client.Locker {
		return &counted{newSingle(s, bug)}
	},
}

const (
	enter = `
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[1] and ARGV[3] ~= 'owner not compared' then return 0 end
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HINCRBY', KEYS[1], 'count', 1)
if owner then return tonumber(redis.call('HGET', KEYS[1], 'token')) end
local token = 1
if ARGV[3] ~= 'token starts again' then token = redis.call('INCR', KEYS[1] .. ':token') end
redis.call('HSET', KEYS[1], 'token', token)
return token`
	leave = `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] and ARGV[2] ~= 'leaves without looking' then return -1 end
local n = redis.call('HINCRBY', KEYS[1], 'count', -1)
if n == 0 and ARGV[2] ~= 'keeps an empty hash' then redis.call('DEL', KEYS[1]) end
return n`
)

func (l *counted) Acquire(ctx context.Context, a client.Acquire) (g client.Grant, err error) {
	early := 0
	if l.bug == "token before the lock" {
		n, err := l.rdb.Incr(context.WithoutCancel(ctx), a.Key+":token").Result()
		if err != nil {
			return g, err
		}
		early = int(n)
	}
	err = poll(ctx, a, 20*time.Millisecond, func() (bool, error) {
		g = granted(time.Now(), a.Lease)
		token, err := l.eval(ctx, enter, a.Key, a.Owner, a.Lease.Milliseconds(), l.bug)
		if g.Token = uint64(max(0, token)); early > 0 {
			g.Token = uint64(early)
		}
		return token > 0, err
	})
	return g, err
}

func (l *counted) Release(ctx context.Context, h client.Hold) (int, error) {
	n, err := l.eval(ctx, leave, h.Key, h.Owner, l.bug)
	if err == nil && n < 0 {
		return 0, errNotOwner
	}
	return n, err
}

// queued is a fair lock: waiters stand in a sorted set in the order of their arrival and poll, which keeps them in it.
type queued struct{ single }

var queuedKind = kind{
	name: "queued", can: promise.Fair,
	open: func(s client.Setup, bug string, _ func(client.Reply)) client.Locker {
		return &queued{newSingle(s, bug)}
	},
}

// turn takes the lock for the first waiter. A waiter that was not seen for half a second has left.
const turn = `
local queue, seen = '{' .. KEYS[1] .. '}:queue', '{' .. KEYS[1] .. '}:seen' ` + serverNow + `
if not redis.call('ZSCORE', queue, ARGV[1]) then
  redis.call('ZADD', queue, t[1] * 1000000 + t[2], ARGV[1])
end
redis.call('ZADD', seen, now, ARGV[1])
if ARGV[3] ~= 'waits for the dead' then
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', seen, '-inf', now - 500)) do
    redis.call('ZREM', queue, gone)
    redis.call('ZREM', seen, gone)
  end
end
redis.call('PEXPIRE', queue, 60000)
redis.call('PEXPIRE', seen, 60000)
if redis.call('ZRANGE', queue, 0, 0)[1] ~= ARGV[1] then return 0 end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
redis.call('ZREM', queue, ARGV[1])
redis.call('ZREM', seen, ARGV[1])
return 1`

const giveUp = `
redis.call('ZREM', '{' .. KEYS[1] .. '}:seen', ARGV[1])
return redis.call('ZREM', '{' .. KEYS[1] .. '}:queue', ARGV[1])`

func (l *queued) Acquire(ctx context.Context, a client.Acquire) (g client.Grant, err error) {
	err = poll(ctx, a, 50*time.Millisecond, func() (bool, error) {
		g = granted(time.Now(), a.Lease)
		n, err := l.eval(ctx, turn, a.Key, a.Owner, a.Lease.Milliseconds(), l.bug)
		return n > 0, err
	})
	if err != nil && l.bug != "leaves its place behind" {
		if _, gone := l.eval(ctx, giveUp, a.Key, a.Owner); gone != nil {
			return g, gone
		}
	}
	return g, err
}

func (l *queued) Release(ctx context.Context, h client.Hold) (int, error) {
	n, err := l.eval(ctx, compareAndDelete, h.Key, h.Owner)
	if err == nil && n == 0 {
		err = errNotOwner
	}
	return 0, err
}
