package historic

// SETNX with a timestamp, and DEL: the value says when the lease is over, by
// the clock of the one who wrote it. Whoever finds it over deletes it and tries
// SETNX again.
//
// The flaw: two clients read the same lease that is over; the first deletes it
// and takes the lock; the second deletes the lock of the first and takes it too.
// The Redis documentation tells of it, and of the next lock in this folder as
// the cure. Both believe the clocks of clients.

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var setnxDelRow = Row{
	Name:   "setnx-del",
	Flaw:   "SETNX with a timestamp, DEL when it is over: two clients that both saw it over both take the lock.",
	Source: "Redis documentation, SETNX: what must not be done about dead holders",
	open:   func(c Config) Lock { return &setnxDel{stamp{rdb: c.Masters[0], now: c.Now}} },
}

type setnxDel struct{ stamp }

// TryAcquire takes the lock if the key is absent, or deletes what is over and tries again.
func (s *setnxDel) TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error {
	until := s.until(lease)
	ok, err := s.rdb.SetNX(ctx, name, until, 0).Result()
	if err == nil && !ok {
		var over bool
		if over, err = s.over(ctx, name); err != nil || !over {
			return granted(over, err)
		}
		if err = s.rdb.Del(ctx, name).Err(); err == nil {
			ok, err = s.rdb.SetNX(ctx, name, until, 0).Result()
		}
	}
	return s.keep(name, owner, until, granted(ok, err))
}

// stamp is what locks share whose value is the end of the lease in
// milliseconds, by the clock of the client that has written it.
type stamp struct {
	idle
	rdb redis.UniversalClient
	now func() time.Time

	mu   sync.Mutex
	mine map[[2]string]int64 // by name and owner
}

func (s *stamp) until(lease time.Duration) int64 { return s.now().Add(orDefault(lease)).UnixMilli() }

// over says whether the lease of the one who has the lock is over, as this client's clock has it.
func (s *stamp) over(ctx context.Context, name string) (bool, error) {
	value, err := s.rdb.Get(ctx, name).Result()
	if err == redis.Nil {
		return true, nil
	}
	return s.past(value), err
}

func (s *stamp) past(value string) bool {
	until, err := strconv.ParseInt(value, 10, 64)
	return err == nil && until < s.now().UnixMilli()
}

// keep remembers a lease that was granted, and passes err on.
func (s *stamp) keep(name, owner string, until int64, err error) error {
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mine == nil {
		s.mine = make(map[[2]string]int64)
	}
	s.mine[[2]string{name, owner}] = until
	return nil
}

// Release deletes the key unless the lease of owner is over, which is asked of
// its own clock and not of the server.
func (s *stamp) Release(ctx context.Context, name, owner string) error {
	id := [2]string{name, owner}
	s.mu.Lock()
	until, had := s.mine[id]
	delete(s.mine, id)
	s.mu.Unlock()
	if !had || until <= s.now().UnixMilli() {
		return ErrNotOwner
	}
	return s.rdb.Del(ctx, name).Err()
}
