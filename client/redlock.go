package client

import "github.com/lockchaos/lockchaos/lock"

// redlockSpec is the reentrant mutex on a majority of independent masters.
var redlockSpec = Spec{
	Name: "redlock",
	Doc: "package lock's quorum mutex: a majority of independent masters, " +
		"validity = lease - elapsed - drift, enforced.",
	Source:     "redis.io, Distributed Locks: the Redlock algorithm",
	Topologies: []string{Quorum},
	Can:        plainCan().Without(Wakes, Fenced),
	Open:       opener(kind{newClient: lock.NewQuorum, acquire: acquireMutex, force: forceMutex}),
	Definite:   lock.Definite,
	Undone:     lock.Undone,
	Code:       lockCode,
}
