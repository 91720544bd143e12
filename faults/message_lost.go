package faults

// message-lost loses what is published on its way to a client. Nobody can
// notice: pub/sub keeps nothing and counts nothing, and the connection lives
// on. Who waits for a message alone waits for ever then.
var messageLostSpec = muted.spec(Spec{
	Name:      "message-lost",
	Doc:       "loses published messages on their way to a client: one message, or all of them for a while (for).",
	Source:    "redis.io, Pub/Sub: at most once; redisson#4744: waiters that nobody wakes",
	Targets:   []Target{Waiter, Holder, Client, Pair},
	OneShot:   true,
	Resources: answersTo,
})
