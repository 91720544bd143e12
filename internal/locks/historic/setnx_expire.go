package historic

// SETNX, then EXPIRE: a lease ends the hold of a crashed client.
//
// The flaw: these are two commands. A client that crashes between them, or whose second one is lost, leaves a
// lock without a lease forever (redis-py#818). PEXPIRE replaces EXPIRE here, for leases below a second.

import (
	"context"
	"time"
)

var setnxExpireRow = Row{
	Name:   "setnx-expire",
	Flaw:   "SETNX, then EXPIRE: a client that crashes between the two leaves a lock without a lease.",
	Source: "redis-py#818, and every article on Redis locks since",
	open:   func(c Config) Lock { return setnxExpire{plain{c.Masters[0]}} },
}

type setnxExpire struct{ plain }

// TryAcquire sets the key if it is absent, and then its expiry.
func (s setnxExpire) TryAcquire(ctx context.Context, name, _ string, lease time.Duration) error {
	if err := granted(s.rdb.SetNX(ctx, name, "1", 0).Result()); err != nil {
		return err
	}
	return s.rdb.PExpire(ctx, name, orDefault(lease)).Err()
}
