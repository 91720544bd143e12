package sim

import (
	"maps"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/engine"
)

// countReceived counts a command that a client has sent.
func (n *node) countReceived(c *engine.Conn, cmd *engine.Spec, args [][]byte) {
	s := n.feeding
	if s == nil || s.peer != c || s.conn.from.client == noClient {
		return
	}
	from := s.conn.from
	from.commands++
	for _, key := range cmd.Keys(args) {
		if !n.cluster.sampled[string(key)] {
			continue
		}
		switch {
		case from.keys == nil:
			from.keys = map[string]int{}
		case from.keysShared:
			from.keys, from.keysShared = maps.Clone(from.keys), false
		}
		from.keys[string(key)]++
	}
}

// mostCallers is of how many callers requests are reported: a sample of a thousand would take too long.
const mostCallers = 128

// received is what the node has received from each client so far; nil: there are too many. The world is locked.
func (n *node) received() (all []history.Received) {
	if len(n.order) > mostCallers {
		return nil
	}
	for _, from := range n.order {
		if from.client == noClient || from.dials == 0 {
			continue
		}
		from.keysShared = true
		r := history.Received{Client: from.client, Dials: from.dials, Commands: from.commands, Keys: from.keys}
		for _, c := range from.conns {
			if s, accepted := c.ends[1].(*session); accepted && s.alive() {
				r.Open++
				if s.peer != nil {
					r.Channels += s.peer.Subscriptions()
				}
			}
		}
		if all == nil {
			all = make([]history.Received, 0, len(n.order))
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b history.Received) int { return a.Client - b.Client })
	return all
}
