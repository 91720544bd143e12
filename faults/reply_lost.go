package faults

// reply-lost drops the servers' replies to a client and then resets the connection: the command was executed, and the
// client cannot know whether it has the lock. Most Redis clients retry, and many locks count the retry as a second
// hold.
var replyLostSpec = drop.spec(Spec{
	Name:      "reply-lost",
	Doc:       "drops the servers' replies to a client after the commands were executed, and resets its connections.",
	Source:    "redisson#7367: an acquire whose reply was lost is sent again and counted twice",
	Targets:   []Target{Holder, Waiter, Client, Pair},
	OneShot:   true,
	Resources: repliesTo,
})
