package faults

import "github.com/lockchaos/lockchaos/history"

// reply-late holds the servers' replies to a client: a grant that arrives after its lease has expired must not be used.
var replyLateSpec = hold().spec(Spec{
	Name:      "reply-late",
	Doc:       "holds the servers' replies to a client; healing delivers them late.",
	Source:    "Kleppmann 2016: a pause, or a delay in the network, before the replies arrive",
	Class:     history.FaultDelays,
	Object:    history.ObjectReplies,
	Verb:      "had its replies delayed",
	Targets:   []Target{Holder, Waiter, Client, Pair},
	Affects:   history.AffectsTraffic + " " + history.AffectsReplies,
	Resources: repliesTo,
})
