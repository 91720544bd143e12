package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// request-duplicated executes requests of a client a second time, when the client may have received the reply and sent
// other requests: an acquire after the release of its own hold, or a release during the next hold. A proxy does so when
// it resends a request on another connection while the first one is still on its way. A lock that recognizes the
// requests that it resends itself need not recognize such a copy: once it has a reply, it expects none in flight.
var requestDuplicatedSpec = twice(cluster.AfterReply).spec(Spec{
	Name:      "request-duplicated",
	OnlyRedis: "requests",
	Doc: "sends half of a client's requests that write, drawn from the seed, to the server a second time, up to " +
		"`amount` later.",
	Source:    "envoyproxy/envoy#27273: one XADD through a proxy adds two entries",
	Class:     history.FaultDuplicates,
	Object:    "requests",
	Verb:      "had its requests executed twice",
	Targets:   []Target{Holder, Waiter, Client, All, Pair},
	Amount:    &Amount{"how late a copy arrives at most", 500 * time.Millisecond, time.Millisecond, time.Minute},
	Affects:   history.AffectsRequests,
	Resources: requestsFrom,
})
