package locks

import (
	"context"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/promise"
)

// severalKindsSpec is one client of package lock for locks of several kinds, as a program has it.
func severalKindsSpec() client.Spec {
	row := kindRow("several-kinds", "package lock's fenced, fair and readers-writer locks in one client: the name of a "+
		"key selects the kind, and a readers-writer lock is acquired only for writing.",
		"Redisson's client, which renews locks of all kinds by one task", kind{
			acquire: acquireHold(func(c *lock.Client, a client.Acquire) fencedLock { return lockOfKey(c, a.Key).acquirer }),
			force: func(ctx context.Context, c *lock.Client, key string) (bool, error) {
				return lockOfKey(c, key).ForceRelease(ctx)
			},
			reentrant: true,
		})
	row.Can = row.Can.Without(promise.CountsHolds | promise.HasDo)
	return row
}

// keyedLock is a lock of any kind with tokens.
type keyedLock struct {
	acquirer fencedLock
	forcer
}

type forcer interface {
	ForceRelease(ctx context.Context) (bool, error)
}

// lockOfKey is the lock of that name. Names that differ by one in their last digit are of different kinds.
func lockOfKey(c *lock.Client, key string) keyedLock {
	sum := 0
	for _, b := range []byte(key) {
		sum += int(b)
	}
	switch sum % 3 {
	case 0:
		fenced := c.FencedMutex(key)
		return keyedLock{fenced, fenced}
	case 1:
		fair := c.FairMutex(key)
		return keyedLock{fair, fair}
	}
	rw := c.RW(key)
	return keyedLock{rw.Write(), rw}
}
