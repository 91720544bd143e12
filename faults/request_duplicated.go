package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// request-duplicated executes requests of a client a second time when the client may have its reply and may have sent
// other requests: an acquire after its own release, or a release during the next hold. A proxy does that which resends
// a request on another connection while the first one is still on its way. Locks that recognize a request that they
// resend themselves need not recognize such a copy: they know that none is in flight once the reply is there.
var requestDuplicatedSpec = twice(cluster.AfterReply).spec(Spec{
	Name:      "request-duplicated",
	OnlyRedis: "requests",
	Doc: "sends half of a client's requests that write, drawn from the seed, to the server a second time, up to " +
		"`amount` later.",
	Source:    "envoyproxy/envoy#27273: one XADD through a proxy adds two entries",
	Targets:   []Target{Holder, Waiter, Client, All, Pair},
	Amount:    &Amount{"how late a copy is at most", 500 * time.Millisecond, time.Millisecond, time.Minute},
	Affects:   history.AffectsRequests,
	Resources: requestsFrom,
})
