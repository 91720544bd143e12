package faults

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// grant-reply-late holds the reply to a grant, and later bytes of the connection, until it is healed. If that takes
// longer than the lease, the client must not use the grant.
var grantReplyLateSpec = grantReplySpec(Spec{
	Name:   "grant-reply-late",
	Doc:    "holds the reply of a server that has granted a client's acquire; healing delivers it late.",
	Source: "Kleppmann 2016: a pause, or a delay in the network, before the reply arrives",
	Class:  history.FaultDelays,
	Object: history.ObjectReplies,
	Verb:   "had its replies delayed",
}, cluster.Hold)
