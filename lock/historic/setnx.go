package historic

// SETNX alone: the key is there, or it is not.
//
// The flaw: nothing ends it but DEL. A holder that dies keeps the lock for
// ever; and DEL asks nobody whose lock it is.

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var setnxRow = Row{
	Name: "setnx", Endless: true,
	Flaw:   "SETNX alone: a holder that dies keeps the lock for ever.",
	Source: "Redis documentation, SETNX: the lock that it begins with",
	open:   func(c Config) Lock { return &setnx{rdb: c.Masters[0]} },
}

type setnx struct {
	idle
	rdb redis.UniversalClient
}

// TryAcquire takes the lock if the key is absent; lease means nothing to it.
func (s *setnx) TryAcquire(ctx context.Context, name, _ string, _ time.Duration) error {
	return granted(s.rdb.SetNX(ctx, name, "1", 0).Result())
}

// Release deletes the key, whoever has made it.
func (s *setnx) Release(ctx context.Context, name, _ string) error { return s.rdb.Del(ctx, name).Err() }
