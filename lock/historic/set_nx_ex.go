package historic

// SET NX EX, and DEL: lock and lease in one command at last (Redis 2.6.12).
//
// The flaw: DEL asks nobody. A holder that outlives its lease deletes the lock
// of the next one, and lets a third in.

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var setNXEXRow = Row{
	Name:   "set-nx-ex",
	Flaw:   "SET NX EX, released by plain DEL: a holder that outlived its lease deletes the lock of the next one.",
	Source: "Redis documentation, Distributed Locks: why the value must be random",
	open:   func(c Config) Lock { return &setNXEX{rdb: c.Masters[0]} },
}

type setNXEX struct {
	idle
	rdb redis.UniversalClient
}

// TryAcquire takes the lock and its lease if the key is absent.
func (s *setNXEX) TryAcquire(ctx context.Context, name, _ string, lease time.Duration) error {
	return granted(s.rdb.SetNX(ctx, name, "1", orDefault(lease)).Result())
}

// Release deletes the key, whoever has made it.
func (s *setNXEX) Release(ctx context.Context, name, _ string) error {
	return s.rdb.Del(ctx, name).Err()
}
