package faults

import "github.com/lockchaos/lockchaos/history"

// channel-refused takes the channels of one lock from the clients' user: of several subscriptions on one connection,
// the server refuses them with NOPERM and confirms the others. Subscribers of these channels are disconnected, and
// nobody can publish to them.
var channelRefusedSpec = aclFault(otherChannels, rules("allchannels"), Spec{
	Name:      "channel-refused",
	OnlyRedis: "published messages",
	Doc:       "revokes the clients' permission for the channels of one lock (ACL SETUSER &pattern) until healed.",
	Affects:   history.AffectsMessages + " " + history.AffectsSubscriptions + " " + history.AffectsRights,
	Source:    "redis.io, ACL: a user is given the channels that match patterns, as &orders:*",
	Class:     history.FaultRefuses,
	Object:    history.ObjectSubscriptions,
	Verb:      "refused subscriptions",
})

// otherChannels permits the channels that have the name of a lock in theirs, except the channels of one lock: a lock
// that a client waits for, or else the first.
func otherChannels(env Env) []any {
	refused := ""
	if len(env.Keys) > 0 {
		refused = env.Keys[0]
	}
	if env.State != nil {
		if waiter, is := env.State.Waiter(); is {
			if r, is := env.State.Acquiring(waiter); is {
				refused = r.Key
			}
		}
	}
	list := []any{"resetchannels"}
	for _, key := range env.Keys {
		if key != refused {
			list = append(list, "&*"+key+"*")
		}
	}
	return list
}
