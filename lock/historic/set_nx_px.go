package historic

// SET NX PX with a value that nobody else has, deleted by a script that compares
// it: the lock of the Redis documentation for one instance. It is right for as
// long as its holder is awake and its server lives.
//
// The flaws: a holder that pauses beyond its lease is not told, and has no token
// by which a resource could refuse it (Kleppmann 2016); a failover loses it; and a
// SET whose answer was lost finds its own key when it is sent again, and says
// that somebody else has the lock, for a whole lease (go-redis#2985).

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var setNXPXRow = Row{
	Name: "set-nx-px", Retries: true,
	Flaw: "SET NX PX with compare-and-delete: no renewal, no token; " +
		"a holder that pauses beyond its lease is not stopped.",
	Source: "Redis documentation, Distributed Locks: with a single instance; Kleppmann 2016",
	open:   func(c Config) Lock { return &setNXPX{rdb: c.Masters[0]} },
}

type setNXPX struct {
	idle
	rdb redis.UniversalClient
}

const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`

// TryAcquire takes the lock for owner if the key is absent.
func (s *setNXPX) TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error {
	return granted(s.rdb.SetNX(ctx, name, owner, orDefault(lease)).Result())
}

// Release deletes the key if it is owner's.
func (s *setNXPX) Release(ctx context.Context, name, owner string) error {
	n, err := s.rdb.Eval(ctx, compareAndDelete, []string{name}, owner).Int()
	if err == nil && n == 0 {
		return ErrNotOwner
	}
	return err
}
