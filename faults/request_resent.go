package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// resentIn is the share of requests that are executed twice. If all were, a second acquire that counts would be undone
// by a second release.
const resentIn = 2

// request-resent executes requests of a client twice before the client gets the reply, as a client library or a proxy
// does that resends a request whose reply was lost. Others may do something between the two executions.
var requestResentSpec = twice(cluster.BeforeReply).spec(Spec{
	Name:      "request-resent",
	OnlyRedis: "requests",
	Doc: "executes half of a client's requests that write, drawn from the seed, twice before the client gets the reply, " +
		"with up to `amount` between the two.",
	Source:    "redisson#7367; Lettuce, Command Execution Reliability: at least once, so commands may be duplicated",
	Targets:   []Target{Holder, Waiter, Client, All, Pair},
	Amount:    &Amount{"the longest time between both executions", 20 * time.Millisecond, time.Millisecond, time.Minute},
	Delays:    true,
	Affects:   history.AffectsTraffic,
	Resources: requestsFrom,
})

// twice executes requests twice.
func twice(when cluster.Twice) linkFault {
	return linkFault{
		rule: func(env Env, s Spec) cluster.Rule {
			return seeded(env, cluster.Rule{Twice: when, TwiceBy: s.amount(env), OneIn: resentIn})
		},
		effect: counted(func(t cluster.Traffic) int64 { return t.Twice }, "request", "executed twice"),
		healed: "requests are no longer executed twice",
	}
}

// requestsFrom is what a client sends to servers.
func requestsFrom(_ cluster.Cluster, target string) []Resource {
	return around(target, cluster.Forward)
}
