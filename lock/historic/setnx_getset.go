package historic

// SETNX with a timestamp, and GETSET: whoever finds the lease over writes its
// own with GETSET, and has the lock if what it got back was over too. So one
// client alone wins.
//
// The flaw: the clocks of clients decide. One that is ahead takes a lock that
// is held. And the losers have written as well: they push the end of the
// winner's lease away, or have the winner believe in one that is not there.

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var setnxGetsetRow = Row{
	Name:   "setnx-getset",
	Flaw:   "SETNX with a timestamp and GETSET: a client whose clock is ahead takes a lock that is held.",
	Source: "Redis documentation, SETNX: locking with GETSET",
	open:   func(c Config) Lock { return &setnxGetset{stamp{rdb: c.Masters[0], now: c.Now}} },
}

type setnxGetset struct{ stamp }

// TryAcquire takes the lock if the key is absent, or what is over if nobody was faster.
func (s *setnxGetset) TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error {
	until := s.until(lease)
	ok, err := s.rdb.SetNX(ctx, name, until, 0).Result()
	if err == nil && !ok {
		var over bool
		if over, err = s.over(ctx, name); err != nil || !over {
			return granted(over, err)
		}
		before, failed := s.rdb.GetSet(ctx, name, until).Result()
		switch {
		case failed == redis.Nil:
			ok = true
		case failed != nil:
			err = failed
		default:
			ok = s.past(before)
		}
	}
	return s.keep(name, owner, until, granted(ok, err))
}
