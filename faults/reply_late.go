package faults

// reply-late keeps what the servers answer to a client and delivers it later: a
// grant that arrives when its lease is over must not be taken for one.
var replyLateSpec = held.spec(Spec{
	Name:      "reply-late",
	Doc:       "holds back the servers' answers to a client and delivers them late.",
	Source:    "Kleppmann 2016: a pause, or a delay in the network, before the answers arrive",
	Targets:   []Target{Holder, Waiter, Client, Pair},
	Resources: answersTo,
})
