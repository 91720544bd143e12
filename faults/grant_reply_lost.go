package faults

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// grant-reply-lost drops the reply to a grant and then resets the connection. reply-lost drops whatever the servers
// send next, which may be a message or the reply to a refused attempt.
var grantReplyLostSpec = grantReplySpec(Spec{
	Name:    "grant-reply-lost",
	Doc:     "drops the reply of a server that has granted a client's acquire, and resets the connection.",
	Source:  "redisson#7367: an acquire whose reply was lost is sent again and counted twice",
	Class:   history.FaultDrops,
	Object:  history.ObjectReplies,
	Verb:    "lost replies",
	OneShot: true,
}, cluster.Drop)
