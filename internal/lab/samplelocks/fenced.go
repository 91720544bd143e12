package samplelocks

import (
	"context"
	"errors"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

func fencedLock() Lock {
	return Lock{
		Name: "fenced",
		Can:  promise.Try | promise.Renew | promise.Fenced,
		Bugs: map[string]string{
			"token-first":     "the token is taken before the lock",
			"own-counter":     "each client counts for itself",
			"counter-expires": "the counter expires with the lease",
			"token-stays":     "the counter is increased by the release",
		},
		persistent: counter,
		open:       func(b base) client.Locker { return &fenced{plain: plain{b}} },
	}
}

// fenced is the plain lock with a counter of tokens.
type fenced struct {
	plain
	own int
}

func counter(key string) []string { return []string{"{" + key + "}:tokens"} }

// takeToken takes the lock and the counter as keys.
const takeToken = `if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
	if ARGV[3] == 'token-stays' then return 1 + (redis.call('GET', KEYS[2]) or 0) end
	local token = redis.call('INCR', KEYS[2])
	if ARGV[3] == 'counter-expires' then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
	return token`

func (l *fenced) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	keys := append([]string{a.Key}, counter(a.Key)...)
	first, token := int64(0), 0
	if l.bug == "token-first" {
		var err error
		if first, err = l.rdb().Incr(ctx, keys[1]).Result(); err != nil {
			return client.Grant{}, errors.Join(errUnknown, err)
		}
	}
	start, err := l.poll(ctx, a.Wait, func() (_ bool, err error) {
		token, err = run(ctx, l.rdb(), takeToken, keys, a.Owner, ms(a.Lease), l.bug)
		return token > 0, err
	})
	if errors.Is(err, errUnknown) {
		l.undo(a)
	}
	switch l.bug {
	case "token-first":
		token = int(first)
	case "own-counter":
		l.own++
		token = l.own
	}
	g, err := valid(start.Add(a.Lease), err)
	g.Token = uint64(token)
	return g, err
}

func (l *fenced) Release(ctx context.Context, h client.Hold) (int, error) {
	count, err := l.plain.Release(ctx, h)
	if l.bug == "token-stays" && err == nil {
		_ = l.rdb().Incr(ctx, counter(h.Key)[0]).Err()
	}
	return count, err
}
