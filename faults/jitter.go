package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// jitter delays each packet separately, drawn from the seed. Packets of one connection stay in order, as with TCP;
// bytes of different connections may overtake each other.
var jitterSpec = slow(func(env Env, s Spec) cluster.Rule {
	return seeded(env, cluster.Rule{Jitter: s.amount(env)})
}).spec(Spec{
	Name:      "jitter",
	Doc:       "delays each packet to and from its target by up to `amount`, drawn from the seed.",
	Source:    "redis.io, Distributed Locks: clients that acquire at the same time split the votes",
	Class:     history.FaultDelays,
	Object:    history.ObjectTraffic,
	Verb:      "was slowed down",
	Targets:   latencySpec.Targets,
	Amount:    &Amount{"the longest delay of a packet", 100 * time.Millisecond, time.Millisecond, time.Minute},
	Resources: allTraffic,
})

// seeded is a rule that draws from the run's seed.
func seeded(env Env, rule cluster.Rule) cluster.Rule {
	if env.Rand != nil {
		rule.Seed = env.Rand.Uint64()
	}
	return rule
}
