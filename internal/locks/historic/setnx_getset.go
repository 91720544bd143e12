package historic

// SETNX with a timestamp, and GETSET: a client that finds the lease expired writes its own with GETSET, and holds
// the lock if the value it got back had expired too. So only one client wins.
//
// The flaw: the clocks of clients decide. A client whose clock is ahead acquires a lock that is held. And the losers
// have written as well: they extend the lease of the winner, or make it believe in a lease that does not exist.

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

var setnxGetsetRow = Row{
	Name:   "setnx-getset",
	Flaw:   "SETNX with a timestamp and GETSET: a client whose clock is ahead acquires a lock that is held.",
	Source: "Redis documentation, SETNX: locking with GETSET",
	open:   func(c Config) Lock { return newTimestamped(c, getSet) },
}

// As many articles print it: the value that GET returned decides, and the result of GETSET is ignored.
var setnxGetsetUncheckedRow = Row{
	Name:   "setnx-getset-unchecked",
	Flaw:   "SETNX with a timestamp and GETSET, whose reply is ignored: all that read the expired value acquire the lock.",
	Source: "articles on SETNX locks; Redis documentation, SETNX: locking with GETSET",
	open:   func(c Config) Lock { return newTimestamped(c, unchecked(getSet)) },
}

// getSet replaces the value, and grants the lock if no other client was faster.
func getSet(ctx context.Context, l *timestamped, name string, until int64) (bool, error) {
	previous, err := l.rdb.GetSet(ctx, name, until).Result()
	if errors.Is(err, redis.Nil) {
		return true, nil
	}
	return l.expired(previous), err
}
