package sim

import (
	"maps"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/engine"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// countReceived counts a command that a client has sent.
func (n *node) countReceived(c *engine.Conn, cmd *engine.Spec, args [][]byte) {
	s := n.feeding
	if s == nil || s.peer != c || s.Conn.From.Client == network.NoClient {
		return
	}
	from := s.Conn.From
	from.Commands++
	for _, key := range cmd.Keys(args) {
		if !n.cluster.sampled[string(key)] {
			continue
		}
		switch {
		case from.Keys == nil:
			from.Keys = map[string]int{}
		case from.KeysShared:
			from.Keys, from.KeysShared = maps.Clone(from.Keys), false
		}
		from.Keys[string(key)]++
	}
}

// mostCallers is of how many callers requests are reported: a sample of a thousand would take too long.
const mostCallers = 128

// received counts the requests of each client to the node so far; nil: there are too many clients. The world is locked.
func (n *node) received() (all []history.Received) {
	if len(n.Order) > mostCallers {
		return nil
	}
	for _, from := range n.Order {
		if from.Client == network.NoClient || from.Dials == 0 {
			continue
		}
		from.KeysShared = true
		r := history.Received{Client: from.Client, Dials: from.Dials, Commands: from.Commands, Keys: from.Keys}
		for _, c := range from.Conns {
			if s, accepted := c.Ends[1].(*session); accepted && s.Alive() {
				r.Open++
				if s.peer != nil {
					r.Channels += s.peer.Subscriptions()
				}
			}
		}
		if all == nil {
			all = make([]history.Received, 0, len(n.Order))
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b history.Received) int { return a.Client - b.Client })
	return all
}
