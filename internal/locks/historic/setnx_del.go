package historic

// SETNX with a timestamp, and DEL: the value is the end of the lease, by the clock of the client that wrote it. A
// client that finds it expired deletes it and retries SETNX.
//
// The flaw: two clients read the same expired lease; the first deletes it and acquires the lock; the second deletes the
// lock of the first and acquires it too. The Redis documentation describes this, and setnx-getset as the remedy. Both
// trust the clocks of clients.

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var setnxDelRow = Row{
	Name:   "setnx-del",
	Flaw:   "SETNX with a timestamp, DEL when it has expired: two clients that both saw it expired both acquire the lock.",
	Source: "Redis documentation, SETNX: how not to handle crashed holders",
	open:   func(c Config) Lock { return newTimestamped(c, setAfterDel) },
}

// As many articles print it: the reply to the second SETNX is ignored.
var setnxDelUncheckedRow = Row{
	Name:   "setnx-del-unchecked",
	Flaw:   "SETNX with a timestamp, DEL, and a second SETNX whose reply is ignored: all that saw it expired acquire it.",
	Source: "articles on SETNX locks; Redis documentation, SETNX: how not to handle crashed holders",
	open:   func(c Config) Lock { return newTimestamped(c, unchecked(setAfterDel)) },
}

// setAfterDel deletes the key and sets it if it is absent then.
func setAfterDel(ctx context.Context, l *timestamped, name string, until int64) (bool, error) {
	if err := l.rdb.Del(ctx, name).Err(); err != nil {
		return false, err
	}
	return l.rdb.SetNX(ctx, name, until, 0).Result()
}

// timestamped is the common part of locks whose value is the end of the lease in milliseconds, by the clock of the
// client that wrote it.
type timestamped struct {
	plain
	now     func() time.Time
	replace replacement

	mu     sync.Mutex
	leases map[[2]string]int64 // ends of this client's leases, by name and owner
}

// replacement replaces a lease that has expired, and reports whether the lock is granted.
type replacement func(ctx context.Context, l *timestamped, name string, until int64) (bool, error)

// unchecked is a replacement whose reply is ignored, unless it is an error.
func unchecked(replace replacement) replacement {
	return func(ctx context.Context, l *timestamped, name string, until int64) (bool, error) {
		_, err := replace(ctx, l, name, until)
		return true, err
	}
}

func newTimestamped(c Config, replace replacement) *timestamped {
	return &timestamped{plain: plain{c.Masters[0]}, now: c.Now, replace: replace}
}

// TryAcquire sets the key if it is absent, or replaces a lease that has expired.
func (s *timestamped) TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error {
	until := s.now().Add(orDefault(lease)).UnixMilli()
	return s.store(name, owner, until, s.setOrReplace(ctx, name, until))
}

func (s *timestamped) setOrReplace(ctx context.Context, name string, until int64) error {
	ok, err := s.rdb.SetNX(ctx, name, until, 0).Result()
	if err != nil || ok {
		return err
	}
	value, err := s.rdb.Get(ctx, name).Result()
	switch {
	case err != nil && !errors.Is(err, redis.Nil):
		return err
	case err == nil && !s.expired(value):
		return ErrHeld
	}
	return granted(s.replace(ctx, s, name, until))
}

func (s *timestamped) expired(value string) bool {
	until, err := strconv.ParseInt(value, 10, 64)
	return err == nil && until < s.now().UnixMilli()
}

// store stores the end of a granted lease; it returns err.
func (s *timestamped) store(name, owner string, until int64, err error) error {
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases == nil {
		s.leases = make(map[[2]string]int64)
	}
	s.leases[[2]string{name, owner}] = until
	return nil
}

// Release deletes the key unless the lease of owner has expired, by the client's clock and not the server's.
func (s *timestamped) Release(ctx context.Context, name, owner string) error {
	id := [2]string{name, owner}
	s.mu.Lock()
	until, ok := s.leases[id]
	delete(s.leases, id)
	s.mu.Unlock()
	if !ok || until <= s.now().UnixMilli() {
		return ErrNotOwner
	}
	return s.plain.Release(ctx, name, owner)
}
