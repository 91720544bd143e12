package client

import (
	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// redlockSpec is the reentrant mutex on a majority of independent masters.
func redlockSpec() Spec {
	row := kindRow("redlock", "package lock's quorum mutex: a majority of independent masters, "+
		"validity = lease - elapsed - drift, enforced.",
		"redis.io, Distributed Locks: the Redlock algorithm", kind{
			newClient: newQuorum, force: forceMutex, acquire: acquireHold(plainMutex), reentrant: true, inspect: inspectVotes,
		})
	row.Topologies, row.PersistentKeys, row.ExpiringKeys = []string{Quorum}, nil, nil
	// EndsWaits: see AcquireUntilClosed.
	row.Can = row.Can.Without(Wakes, FallsBack, Isolates, FullMemory, Fenced, EndsWaits).With(CanInspect, NamesOwner)
	return row
}

func newQuorum(conns []redis.UniversalClient, o lock.Options) (*lock.Client, error) {
	return lock.NewQuorum(o, conns...)
}

func plainMutex(c *lock.Client, a Acquire) acquirer[*lock.Hold] { return c.Mutex(a.Key) }
