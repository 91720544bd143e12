package historic

// SET NX EX, released by DEL: lock and lease in one command (since Redis 2.6.12).
//
// The flaw: DEL does not check the owner. A holder that outlives its lease deletes the lock of the next
// one and lets a third in.

import (
	"context"
	"time"
)

var setNxExRow = Row{
	Name:   "set-nx-ex",
	Flaw:   "SET NX EX, released by plain DEL: a holder that outlived its lease deletes the next holder's lock.",
	Source: "Redis documentation, Distributed Locks: why the value must be random",
	open:   func(c Config) Lock { return setNXEX{plain{c.Masters[0]}} },
}

type setNXEX struct{ plain }

// TryAcquire sets the key with its expiry if it is absent.
func (s setNXEX) TryAcquire(ctx context.Context, name, _ string, lease time.Duration) error {
	return granted(s.rdb.SetNX(ctx, name, "1", orDefault(lease)).Result())
}
