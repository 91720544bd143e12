package faults

import "github.com/lockchaos/lockchaos/internal/cluster"

// reply-lost loses what the servers answer to a client, after they have done
// what it asked for, and then resets the connection: the client cannot know
// whether it has the lock. Most clients ask again, and most locks count twice.
var replyLostSpec = dropped.spec(Spec{
	Name:      "reply-lost",
	Doc:       "loses the servers' answers to a client, done though they are, and resets its connections.",
	Source:    "redisson#7367: an acquire whose answer was lost is sent again and counted twice",
	Targets:   []Target{Holder, Waiter, Client, Pair},
	OneShot:   true,
	Resources: answersTo,
})

// answersTo is the bytes that come back to a client.
func answersTo(_ cluster.Cluster, target string) []Resource { return around(target, cluster.Back) }
