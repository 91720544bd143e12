package samplelocks

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

func fairLock() Lock {
	return Lock{
		Name: "fair",
		Can:  promise.Try | promise.Renew | promise.Fair,
		Bugs: map[string]string{
			"stack":           "who came last is served first",
			"dead-stay":       "waiters that have died are never removed",
			"barging":         "a newcomer gets a free lock before those that wait",
			"quitter-stays":   "who gives up stays in the queue until its heartbeat is missed",
			"heartbeat-moves": "a heartbeat moves the waiter to the end",
		},
		every: 40 * time.Millisecond,
		open:  func(b base) client.Locker { return &fair{plain{b}} },
	}
}

// slowFairLock is the fair lock whose waiters leave a free lock alone for longer: tries are refused then, because a
// waiter is in the queue, and nobody holds the lock.
func slowFairLock() Lock {
	l := fairLock()
	l.Name, l.Bugs, l.every = "fair-slow", nil, 100*time.Millisecond
	return l
}

// fair is the string of the plain lock, a list of waiters, and the time of the last heartbeat of each.
type fair struct{ plain }

const (
	// KEYS: lock, queue, heartbeats; ARGV: owner, lease, queues, bug. Reply: 1 granted.
	enterQueue = `local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
		local me, bug = ARGV[1], ARGV[4]
		local head = redis.call('LINDEX', KEYS[2], 0)
		while head and bug ~= 'dead-stay' and tonumber(redis.call('ZSCORE', KEYS[3], head) or 0) < now do
			redis.call('LPOP', KEYS[2]); redis.call('ZREM', KEYS[3], head)
			head = redis.call('LINDEX', KEYS[2], 0)
		end
		if redis.call('EXISTS', KEYS[1]) == 0 and (not head or head == me or bug == 'barging') then
			redis.call('SET', KEYS[1], me, 'PX', ARGV[2])
			redis.call('LREM', KEYS[2], 1, me); redis.call('ZREM', KEYS[3], me)
			return 1
		end
		if ARGV[3] == '1' then
			local new = redis.call('ZADD', KEYS[3], now + 500, me) == 1
			if bug == 'heartbeat-moves' then redis.call('LREM', KEYS[2], 0, me); new = true end
			if new then redis.call(bug == 'stack' and 'LPUSH' or 'RPUSH', KEYS[2], me) end
			redis.call('PEXPIRE', KEYS[2], 60000); redis.call('PEXPIRE', KEYS[3], 60000)
		end
		return 0`
	leaveQueue = `redis.call('LREM', KEYS[2], 1, ARGV[1]); redis.call('ZREM', KEYS[3], ARGV[1])
		if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0`
)

func (l *fair) keys(key string) []string { return []string{key, key + ":queue", key + ":alive"} }

func (l *fair) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	queues := 0
	if a.Wait > 0 {
		queues = 1
	}
	start, err := l.poll(ctx, a.Wait, func() (bool, error) {
		return l.ask(ctx, enterQueue, l.keys(a.Key), a.Owner, ms(a.Lease), queues, l.bug)
	})
	if err != nil && l.bug != "quitter-stays" {
		c, cancel := cleanup()
		defer cancel()
		if _, left := run(c, l.rdb(), leaveQueue, l.keys(a.Key), a.Owner); left != nil {
			err = errUnknown
		}
	}
	return valid(start.Add(a.Lease), err)
}
