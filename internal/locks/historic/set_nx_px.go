package historic

// SET NX PX with a unique value, deleted by a script that compares it: the lock of the Redis documentation for one
// instance. It is correct as long as its holder is not paused and its server does not fail.
//
// The flaws: a holder that is paused beyond its lease does not notice, and has no token by which a resource could
// reject it (Kleppmann 2016); a failover loses the lock; and a SET whose reply was lost finds its own key when it is
// resent, and reports for a whole lease that another owner holds the lock (go-redis#2985).

import (
	"context"
	"time"
)

var setNxPxRow = Row{
	Name: "set-nx-px", Retries: true,
	Flaw: "SET NX PX with compare-and-delete: no renewal, no token; " +
		"a holder that pauses beyond its lease is not stopped.",
	Source: "Redis documentation, Distributed Locks: with a single instance; Kleppmann 2016",
	open:   func(c Config) Lock { return setNXPX{plain{c.Masters[0]}} },
}

type setNXPX struct{ plain }

const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`

// TryAcquire sets the key to owner if it is absent.
func (s setNXPX) TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error {
	return granted(s.rdb.SetNX(ctx, name, owner, orDefault(lease)).Result())
}

// Release deletes the key if its value is owner.
func (s setNXPX) Release(ctx context.Context, name, owner string) error {
	n, err := s.rdb.Eval(ctx, compareAndDelete, []string{name}, owner).Int()
	if err == nil && n == 0 {
		return ErrNotOwner
	}
	return err
}
