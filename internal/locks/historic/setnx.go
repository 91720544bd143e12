package historic

// SETNX alone: the lock is held while the key exists.
//
// The flaw: only DEL ends it. A holder that crashes keeps the lock forever, and DEL does not check
// whose lock it deletes.

import (
	"context"
	"time"
)

var setnxRow = Row{
	Name: "setnx", NoLease: true,
	Flaw:   "SETNX alone: a holder that crashes keeps the lock forever.",
	Source: "Redis documentation, SETNX: the first version",
	open:   func(c Config) Lock { return setnx{plain{c.Masters[0]}} },
}

type setnx struct{ plain }

// TryAcquire sets the key if it is absent; it ignores lease.
func (s setnx) TryAcquire(ctx context.Context, name, _ string, _ time.Duration) error {
	return granted(s.rdb.SetNX(ctx, name, "1", 0).Result())
}
