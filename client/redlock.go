package client

import "github.com/lockchaos/lockchaos/lock"

// redlockSpec is the reentrant mutex on a majority of independent masters.
var redlockSpec = Spec{
	Name: "redlock",
	Doc: "package lock's quorum mutex: a majority of independent masters, " +
		"validity = lease - elapsed - drift, enforced.",
	Source:     "redis.io, Distributed Locks: the Redlock algorithm",
	Topologies: []string{Quorum},
	Reentrant:  true,
	Open:       opener(lock.NewQuorum, acquireMutex),
	Definite:   lock.Definite,
	Code:       lockCode,
}
