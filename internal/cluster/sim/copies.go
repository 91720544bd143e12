package sim

import (
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/requests"
)

// copies makes the server execute requests of a client twice, see [cluster.Rule].Twice, when s is about to arrive. It
// reports whether s has to wait, because its requests have been executed for the first time.
func (f *flow) copies(s *segment) (waits bool) {
	n, redis := f.conn.to.program.(*node)
	if !redis || f.dir != forward || s.data == nil || s.copied || f.conn.from.client == noClient {
		return false
	}
	s.copied = true
	rule, w := f.gate.rule, f.conn.world
	if rule.Twice == 0 {
		f.requests.Take(s.data, nil)
		return false
	}
	var all []requests.Copy
	f.requests.Take(s.data, func(copied func() requests.Copy) {
		if f.dice.Concerned(rule) {
			all = append(all, copied())
		}
	})
	if rule.Twice == cluster.AfterReply {
		for _, one := range all {
			late := int64(f.dice.Late(rule)) + w.latency.draw(f.dice.Rand(rule))
			w.at(w.slots.snap(w.now()+1+late, f.slot), f.rank(), &lateCopy{one, n, f, rule})
		}
		return false
	}
	for _, one := range all {
		if n.execute(one, f.conn.source) {
			s.twice++
		}
	}
	if s.twice > 0 { // after an error nothing is resent
		s.due = w.slots.snap(w.now()+1+int64(f.dice.Late(rule)), f.slot)
		f.last = max(f.last, s.due)
		w.at(s.due, f.rank(), f)
	}
	return s.twice > 0
}

// execute executes a copy, and reports whether the server did not refuse it. The gate sends it on a connection of its
// own, to which the rules of the client's connections do not apply.
func (n *node) execute(one requests.Copy, source string) (executed bool) {
	if !n.up || n.server.Refuse() != "" {
		return false
	}
	var replies []byte
	peer := n.server.Open(source, func(p []byte) { replies = append(replies, p...) })
	peer.Feed(one.Data)
	_, executed = one.Executed(replies)
	peer.Close()
	n.done()
	return executed
}

// lateCopy is a request that its server is to execute a second time later.
type lateCopy struct {
	requests.Copy
	node *node
	flow *flow // of the request
	rule cluster.Rule
}

func (c *lateCopy) fire() {
	if c.flow.gate.rule != c.rule || c.flow.defers(c.node, c) {
		return
	}
	if c.node.execute(c.Copy, c.flow.conn.source) {
		c.flow.gate.twice++
	}
}

func (c *lateCopy) retry() { c.flow.retryNext(c) }
