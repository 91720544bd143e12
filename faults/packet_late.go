package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// oneIn is the share of packets that packet-late and packet-lost concern: enough that every kind of request meets them
// within a few seconds, and few enough that a retry succeeds.
const oneIn = 5

// packet-late delays single packets. A request that arrives after its client has given up, retried on another
// connection or released the lock must not leave a hold that no client knows of; a reply that arrives after its lease
// is no grant.
var packetLateSpec = slow(func(env Env, s Spec) cluster.Rule {
	rule := seeded(env, cluster.Rule{Jitter: s.amount(env)})
	rule.OneIn = oneIn
	return rule
}).spec(Spec{
	Name:      "packet-late",
	Doc:       "delays one packet in five to and from its target, by up to `amount`, drawn from the seed.",
	Source:    "redisson#4109: an acquire that was given up arrives and is granted",
	Class:     history.FaultDelays,
	Object:    history.ObjectPackets,
	Verb:      "was slowed down",
	Targets:   latencySpec.Targets,
	Amount:    &Amount{"the longest delay of a packet", 500 * time.Millisecond, time.Millisecond, time.Minute},
	Resources: allTraffic,
})
