package sim

import (
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/requests"
)

// executor is a server that executes a copy of a request past the connections of clients.
type executor interface {
	// execute reports whether the server did not refuse the copy. The connection has the address source.
	execute(one requests.Copy, source string) bool
	ready() (*waiters, int64) // as of an end of a connection on its host
}

// copies makes the server execute requests of a client twice, see [cluster.Rule].Twice, when s is about to arrive. It
// reports whether s has to wait, because its requests have been executed for the first time.
func (f *flow) copies(s *segment) (waits bool) {
	to, able := f.conn.to.program.(executor)
	if !able || f.dir != forward || s.data == nil || s.copied || f.conn.from.client == noClient {
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
			w.at(w.slots.snap(w.now()+1+late, f.slot), f.rank(), &lateCopy{one, to, f, rule})
		}
		return false
	}
	for _, one := range all {
		if to.execute(one, f.conn.source) {
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

// lateCopy is a request that its server is to execute a second time later.
type lateCopy struct {
	requests.Copy
	server executor
	flow   *flow // of the request
	rule   cluster.Rule
}

func (c *lateCopy) fire() {
	if c.flow.gate.rule != c.rule || c.flow.defers(c.server, c) {
		return
	}
	if c.server.execute(c.Copy, c.flow.conn.source) {
		c.flow.gate.twice++
	}
}

func (c *lateCopy) retry() { c.flow.retryNext(c) }
