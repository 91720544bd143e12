package faults

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// message-lost drops published messages on their way to a client. The client cannot detect it: pub/sub stores and
// counts nothing, and the connection stays up. A waiter that relies on messages alone waits forever.
var messageLostSpec = linkFault{
	rule:   always(cluster.Rule{Mute: true}),
	effect: counted(func(t cluster.Traffic) int64 { return t.Messages }, "published message", "lost"),
	healed: "messages are delivered again",
}.spec(Spec{
	Name:      "message-lost",
	OnlyRedis: "published messages",
	Doc:       "drops a published message on its way to a client, or all of them for a while (for); other traffic passes.",
	Affects:   history.AffectsMessages,
	Source:    "redis.io, Pub/Sub: at most once; redisson#4744: a waiter that is never woken",
	Class:     history.FaultDrops,
	Object:    history.ObjectMessages,
	Verb:      "missed a message",
	Targets:   []Target{Waiter, Holder, Client, Pair},
	OneShot:   true,
	Resources: repliesTo,
})
