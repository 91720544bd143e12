package samplelocks

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

func rwLock() Lock {
	return Lock{
		Name: "readers-writer",
		Can:  promise.Try | promise.Renew | promise.ReadWrite | promise.NoHeadOfLineBlocking,
		Bugs: map[string]string{
			"readers-unseen": "a writer does not look for readers",
			"readers-stay":   "readers whose lease has ended are never removed",
			"set-renewed":    "a reader's renewal prolongs the set instead of its own lease",
			"releases-all":   "the release of a reader releases all readers",
			"set-cut":        "a reader with a short lease shortens the set of all readers",
		},
		open: func(b base) client.Locker { return &rw{b} },
	}
}

// rw is a string for the writer, and a sorted set of readers by the end of their leases.
type rw struct{ base }

const (
	rwPurge = `local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
		local bug = ARGV[#ARGV]
		if bug ~= 'readers-stay' then redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now) end
		local function keep()
			local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
			if bug == 'readers-stay' then redis.call('PERSIST', KEYS[2])
			elseif last[2] then redis.call('PEXPIRE', KEYS[2], math.ceil(last[2] - now)) end
		end
		`
	enterRead = rwPurge + `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
		redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
		if bug == 'set-cut' then redis.call('PEXPIRE', KEYS[2], ARGV[2]) else keep() end
		return 1`
	enterWrite = rwPurge + `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
		if bug ~= 'readers-unseen' and redis.call('ZCARD', KEYS[2]) > 0 then return 0 end
		redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
		return 1`
	renewRead = rwPurge + `if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
		if bug == 'set-renewed' then return redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
		redis.call('ZADD', KEYS[2], 'GT', now + ARGV[2], ARGV[1])
		keep()
		return 1`
	leaveRead = rwPurge + `local n = redis.call('ZREM', KEYS[2], ARGV[1])
		if bug == 'releases-all' then redis.call('DEL', KEYS[2]) else keep() end
		return n`
)

func (l *rw) keys(key string) []string { return []string{key, key + ":readers"} }

func (l *rw) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	script := enterWrite
	if a.Mode == "read" {
		script = enterRead
	}
	start, err := l.poll(ctx, a.Wait, func() (bool, error) {
		return l.ask(ctx, script, l.keys(a.Key), a.Owner, ms(a.Lease), l.bug)
	})
	return valid(start.Add(a.Lease), err)
}

func (l *rw) Renew(ctx context.Context, h client.Hold, lease time.Duration) (client.Grant, error) {
	script := renewIfMine
	if h.Mode == "read" {
		script = renewRead
	}
	start := time.Now()
	return valid(start.Add(lease), l.change(ctx, script, l.keys(h.Key), h.Owner, ms(lease), l.bug))
}

func (l *rw) Release(ctx context.Context, h client.Hold) (int, error) {
	script := deleteIfMine
	if h.Mode == "read" {
		script = leaveRead
	}
	return 0, l.change(ctx, script, l.keys(h.Key), h.Owner, l.bug)
}
