package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// resentIn: one request in resentIn is executed twice. If all were, a second release would undo an acquire that counts
// twice.
const resentIn = 2

// request-resent executes requests of a client twice before the client gets the reply, as a client library or a proxy
// does when it resends a request whose reply was lost. Other clients may act between the two executions.
var requestResentSpec = twice(cluster.BeforeReply).spec(Spec{
	Name:      "request-resent",
	OnlyRedis: "requests",
	Doc: "executes half of a client's requests that write, drawn from the seed, twice before the client gets the reply, " +
		"with up to `amount` between the two.",
	Source:    "redisson#7367; Lettuce, Command Execution Reliability: at least once, so commands may be duplicated",
	Class:     history.FaultDuplicates,
	Object:    "requests",
	Verb:      "had its requests executed twice",
	Targets:   []Target{Holder, Waiter, Client, All, Pair},
	Amount:    &Amount{"the longest time between both executions", 20 * time.Millisecond, time.Millisecond, time.Minute},
	Delays:    true,
	Affects:   history.AffectsTraffic,
	Resources: requestsFrom,
})

// twice is the fault that executes requests twice, the second time when the rule says.
func twice(when cluster.Twice) linkFault {
	return linkFault{
		rule: func(env Env, s Spec) cluster.Rule {
			return seeded(env, cluster.Rule{Twice: when, TwiceBy: s.amount(env), OneIn: resentIn})
		},
		effect: counted(func(t cluster.Traffic) int64 { return t.Twice }, "request", "executed twice"),
		healed: "requests are no longer executed twice",
	}
}

// requestsFrom is the direction in which a client sends requests to servers.
func requestsFrom(_ cluster.Cluster, target string) []Resource {
	return around(target, cluster.Forward)
}
