package client

import (
	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// redlock is the same mutex on a majority of independent masters, its
// validity enforced.
var redlockSpec = Spec{
	Name: "redlock",
	Doc: "package lock's quorum mutex: a majority of independent masters, " +
		"validity = lease - elapsed - drift, enforced.",
	Source:     "redis.io, Distributed Locks: the Redlock algorithm",
	Topologies: []string{Quorum},
	Reentrant:  true,
	Open: func(s Setup, notify func(Reply)) (Locker, error) {
		return openLock(s, notify, mutexes, func(all []redis.UniversalClient, o lock.Options) (*lock.Client, error) {
			return lock.NewQuorum(all, o)
		})
	},
	Definite: lock.Definite,
	Code:     lockCode,
}
