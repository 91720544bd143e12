package historic

// SETNX, then EXPIRE: now a lease ends what a dead holder has left.
//
// The flaw: they are two commands. A client that dies between them, or whose
// second one is lost, leaves a lock that has no lease and stays for ever
// (redis-py#818). PEXPIRE stands for EXPIRE here, for leases below a second.

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var setnxExpireRow = Row{
	Name:   "setnx-expire",
	Flaw:   "SETNX, then EXPIRE: a client that dies between the two leaves a lock without a lease.",
	Source: "redis-py#818, and every article on Redis locks since",
	open:   func(c Config) Lock { return &setnxExpire{rdb: c.Masters[0]} },
}

type setnxExpire struct {
	idle
	rdb redis.UniversalClient
}

// TryAcquire takes the lock if the key is absent, and then gives it a lease.
func (s *setnxExpire) TryAcquire(ctx context.Context, name, _ string, lease time.Duration) error {
	if err := granted(s.rdb.SetNX(ctx, name, "1", 0).Result()); err != nil {
		return err
	}
	return s.rdb.PExpire(ctx, name, orDefault(lease)).Err()
}

// Release deletes the key, whoever has made it.
func (s *setnxExpire) Release(ctx context.Context, name, _ string) error {
	return s.rdb.Del(ctx, name).Err()
}
