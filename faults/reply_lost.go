package faults

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// reply-lost drops the servers' replies to a client and then resets the connection: the command was executed, and the
// client cannot know whether it has the lock. Most Redis clients retry, and many locks count the retry as a second
// hold.
var replyLostSpec = linkFault{
	rule:   always(cluster.Rule{Mode: cluster.Drop}),
	effect: counted(func(t cluster.Traffic) int64 { return t.Dropped }, "byte", "lost"),
	healed: "connections that had lost bytes were reset",
}.spec(Spec{
	Name:      "reply-lost",
	Doc:       "drops the servers' replies to a client after the commands were executed, and resets its connections.",
	Source:    "redisson#7367: an acquire whose reply was lost is sent again and counted twice",
	Class:     history.FaultDrops,
	Object:    history.ObjectReplies,
	Verb:      "lost replies",
	Targets:   []Target{Holder, Waiter, Client, Pair},
	OneShot:   true,
	Affects:   history.AffectsTraffic + " " + history.AffectsReplies,
	Resources: repliesTo,
})
