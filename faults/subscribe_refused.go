package faults

import "github.com/lockchaos/lockchaos/history"

// subscribe-refused revokes the clients' permission for the commands that subscribe. Existing subscriptions continue;
// a new one gets NOPERM, on every attempt until healed.
var subscribeRefusedSpec = aclFault(
	rules("-subscribe", "-psubscribe", "-ssubscribe"), rules("+subscribe", "+psubscribe", "+ssubscribe"),
	Spec{
		Name:      "subscribe-refused",
		OnlyRedis: "published messages",
		Doc:       "revokes the clients' permission to subscribe (SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE) until healed.",
		Affects:   history.AffectsMessages + " " + history.AffectsSubscriptions,
		Source:    "redis.io, ACL: commands of the category pubsub; proxies and hosted servers without pub/sub",
		Class:     history.FaultRefuses,
		Object:    history.ObjectSubscriptions,
		Verb:      "refused subscriptions",
	})
