package client

import (
	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock"
)

// redlockSpec is the reentrant mutex on a majority of independent masters.
var redlockSpec = Spec{
	Name: "redlock",
	Doc: "package lock's quorum mutex: a majority of independent masters, " +
		"validity = lease - elapsed - drift, enforced.",
	Source:     "redis.io, Distributed Locks: the Redlock algorithm",
	Topologies: []string{Quorum},
	Can:        plainCan().Without(Wakes, FallsBack, Isolates, FullMemory, Fenced).With(CanInspect, NamesOwner),
	Open: opener(kind{
		newClient: newQuorum, force: forceMutex, acquire: acquireHold(plainMutex), reentrant: true, inspect: inspectVotes,
	}),
	CheckOptions: checkOptions,
	Definite:     lock.Definite,
	Undone:       lock.Undone,
	Code:         lockCode,
}

func newQuorum(conns []redis.UniversalClient, o lock.Options) (*lock.Client, error) {
	return lock.NewQuorum(o, conns...)
}

func plainMutex(c *lock.Client, a Acquire) acquirer[*lock.Hold] { return c.Mutex(a.Key) }
