package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// foreign-waiter is another program, or another version of a library, that queues at a fair lock in a format of its
// own.
var foreignWaiterSpec = commandFault(forFirst(addForeignWaiter), Spec{
	Name:      "foreign-waiter",
	OnlyRedis: "keys",
	Doc: "adds an entry that no client of the lock wrote to the head of a fair lock's wait queue, with a deadline an " +
		"hour after all others, once, as soon as a client waits there (the queue is a list and a sorted set with the same " +
		"entries, both named after the lock).",
	Source:  "redisson#5989: a queue entry without a deadline stopped every acquire",
	Class:   history.FaultPlants,
	Object:  "queues",
	Verb:    "got a queue entry of another program",
	Targets: []Target{Master, Deciding, Node},
	Affects: history.AffectsCommands,
})

// foreignWaiter adds an entry to the head of a list and to a sorted set, if the set has the head of the list too.
const foreignWaiter = "local head = redis.call('LINDEX', KEYS[1], 0) " +
	"if not head or not redis.call('ZSCORE', KEYS[2], head) then return 0 end " +
	"local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] " +
	"redis.call('ZADD', KEYS[2], last + 3600000, ARGV[1]) return redis.call('LPUSH', KEYS[1], ARGV[1])"

// addForeignWaiter adds an entry to the queue of a lock; "": no client waits there.
func addForeignWaiter(ctx context.Context, a cluster.Admin, node, key string) (effect string, err error) {
	queue, _, err := waitQueue(ctx, a, node, key, 1)
	if err != nil || queue == "" {
		return "", err
	}
	deadlines, err := keysNamedAfter(ctx, a, node, key, "zset")
	for _, name := range deadlines {
		n, err := number(ctx, a, node, "EVAL", foreignWaiter, "2", queue, name, "another-program")
		if err != nil || n > 0 {
			return "an entry of another program heads " + queue, err
		}
	}
	return "", err
}
