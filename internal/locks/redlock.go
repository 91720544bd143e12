package locks

import (
	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/topology"
)

// redlockSpec is the reentrant mutex on a majority of independent masters.
func redlockSpec() client.Spec {
	row := kindRow("redlock", "package lock's quorum mutex: a majority of independent masters, "+
		"validity = lease - elapsed - drift, enforced.",
		"redis.io, Distributed Locks: the Redlock algorithm", kind{
			newClient: newQuorum, force: forceMutex, acquire: acquireHold(plainMutex), reentrant: true, inspect: inspectVotes,
		})
	row.Topologies, row.PersistentKeys, row.ExpiringKeys = []string{topology.Quorum}, nil, nil
	// CloseEndsWaits: see acquireUntilClosed.
	row.Can = row.Can.Without(promise.Wakes | promise.PollsWithoutMessages | promise.PerServerFailures |
		promise.ReleasesWhenMemoryFull | promise.Fenced | promise.CloseEndsWaits).With(promise.Inspect |
		promise.DistinguishesNotOwner)
	return row
}

func newQuorum(conns []redis.UniversalClient, o lock.Options) (*lock.Client, error) {
	return lock.NewQuorum(o, conns...)
}

func plainMutex(c *lock.Client, a client.Acquire) acquirer[*lock.Hold] { return c.Mutex(a.Key) }
