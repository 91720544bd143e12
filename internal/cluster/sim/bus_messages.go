package sim

import (
	"slices"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/engine"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// busMessage is a published message on its way to another node.
type busMessage struct {
	channel, message []byte
	shard            bool
}

const messageHeaderSize = 2272 // of a message on the bus, before channel and message

// broadcast sends a published message to all other nodes, or on a shard channel to the other nodes of its shard
// (clusterPropagatePublish): masters do not replicate messages then. A node that is not connected does not get it.
func (n *node) broadcast(channel, message []byte, shard bool) {
	m := busMessage{slices.Clone(channel), slices.Clone(message), shard}
	for _, p := range n.bus.peers {
		if p.wire == nil || !p.wire.up || shard && !n.inShard(p) {
			continue
		}
		p.wire.conn.Send(network.Forward, network.Segment{Msg: m, Size: messageHeaderSize + int64(len(channel)+len(message))})
	}
}

// inShard reports whether another node has the same master as this one, or is it.
func (n *node) inShard(p *peer) bool {
	head := func(index, master int) int {
		if master >= 0 {
			return master
		}
		return index
	}
	return head(n.Index, n.masterIndex()) == head(p.node.Index, p.master)
}

// deliver passes on a message of another node to the subscribers at this one.
func (n *node) deliver(m busMessage) {
	n.server.Serve(func() { n.server.Publish(m.channel, m.message, m.shard) })
	n.done()
}

// onShardChannels reports whether the keys of a command are shard channels.
func onShardChannels(cmd *engine.Spec) bool {
	return cmd.Name == "ssubscribe" || cmd.Name == "sunsubscribe" || cmd.Name == "spublish"
}
