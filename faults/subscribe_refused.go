package faults

// subscribe-refused takes the commands that subscribe from the clients' user. Subscriptions that exist continue; who
// subscribes gets NOPERM, each time again until healed.
var subscribeRefusedSpec = aclFault(
	[]any{"-subscribe", "-psubscribe", "-ssubscribe"}, []any{"+subscribe", "+psubscribe", "+ssubscribe"},
	Spec{
		Name:   "subscribe-refused",
		Doc:    "takes the right to subscribe (SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE) from the clients' user until healed.",
		Source: "redis.io, ACL: commands of the category pubsub; proxies and hosted servers without pub/sub",
	})
