package samplelocks

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

func semaphoreLock() Lock {
	return Lock{
		Name: "semaphore",
		Can:  promise.Try | promise.Renew | promise.Permits | promise.NoHeadOfLineBlocking,
		Bugs: map[string]string{
			"one-too-many":  "one permit more than there are",
			"client-clock":  "leases end by the clock of the client that asks",
			"keeps-permits": "a release of several permits releases one",
			"two-requests":  "permits are counted with one request and taken with another",
			"revives":       "a renewal brings back permits whose lease has ended",
		},
		open: func(b base) client.Locker { return &semaphore{b} },
	}
}

// semaphore is a sorted set of permits by the end of their leases. A permit is the owner and a number.
type semaphore struct{ base }

const (
	// ARGV: owner, lease, permits, limit, "count" or "take" or "both", the client's clock or empty.
	takePermits = `local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
		if ARGV[6] ~= '' then now = tonumber(ARGV[6]) end
		redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
		if ARGV[5] ~= 'take' and redis.call('ZCARD', KEYS[1]) + ARGV[3] > tonumber(ARGV[4]) then return 0 end
		if ARGV[5] == 'count' then return 1 end
		for i = 1, tonumber(ARGV[3]) do redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1] .. '.' .. i) end
		local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')
		redis.call('PEXPIRE', KEYS[1], math.ceil(last[2] - now))
		return 1`
	// ARGV: owner, permits
	givePermits = `local n = 0
		for i = 1, tonumber(ARGV[2]) do n = n + redis.call('ZREM', KEYS[1], ARGV[1] .. '.' .. i) end
		return n`
	// ARGV: owner, lease, permits, bug
	renewPermits = `local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
		if ARGV[4] ~= 'revives' then
			redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
			for i = 1, tonumber(ARGV[3]) do
				if not redis.call('ZSCORE', KEYS[1], ARGV[1] .. '.' .. i) then return 0 end
			end
		end
		for i = 1, tonumber(ARGV[3]) do redis.call('ZADD', KEYS[1], 'GT', now + ARGV[2], ARGV[1] .. '.' .. i) end
		local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')
		redis.call('PEXPIRE', KEYS[1], math.ceil(last[2] - now))
		return 1`
)

func (l *semaphore) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	limit := a.Limit
	if l.bug == "one-too-many" {
		limit++
	}
	ask := func(how string) (bool, error) {
		var clock any = ""
		if l.bug == "client-clock" {
			clock = time.Now().UnixMilli()
		}
		return l.ask(ctx, takePermits, []string{a.Key}, a.Owner, ms(a.Lease), a.Permits, limit, how, clock)
	}
	start, err := l.poll(ctx, a.Wait, func() (bool, error) {
		if l.bug != "two-requests" {
			return ask("both")
		}
		if free, err := ask("count"); !free || err != nil {
			return false, err
		}
		return ask("take")
	})
	return valid(start.Add(a.Lease), err)
}

func (l *semaphore) Renew(ctx context.Context, h client.Hold, lease time.Duration) (client.Grant, error) {
	start := time.Now()
	err := l.change(ctx, renewPermits, []string{h.Key}, h.Owner, ms(lease), max(h.Permits, 1), l.bug)
	return valid(start.Add(lease), err)
}

func (l *semaphore) Release(ctx context.Context, h client.Hold) (int, error) {
	permits := max(h.Permits, 1)
	if l.bug == "keeps-permits" {
		permits = 1
	}
	return 0, l.change(ctx, givePermits, []string{h.Key}, h.Owner, permits)
}
