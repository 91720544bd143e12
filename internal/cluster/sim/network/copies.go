package network

import (
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/requests"
)

// executor is a server that executes a copy of a request past the connections of clients.
type executor interface {
	// execute reports whether the server did not refuse the copy. The connection has the address source.
	Execute(one requests.Copy, source string) bool
	Ready() (*Waiters, int64) // as of an end of a connection on its host
}

// copies makes the server execute requests of a client twice, see [cluster.Rule].Twice, when s is about to arrive. It
// reports whether s has to wait, because its requests have been executed for the first time.
func (f *flow) copies(s *Segment) (waits bool) {
	to, able := f.conn.to.Program.(executor)
	if !able || f.dir != Forward || s.Data == nil || s.copied || f.conn.From.Client == NoClient {
		return false
	}
	s.copied = true
	rule, w := f.gate.rule, f.conn.world
	if rule.Twice == 0 {
		f.requests.Take(s.Data, nil)
		return false
	}
	var all []requests.Copy
	f.requests.Take(s.Data, func(copied func() requests.Copy) {
		if f.dice.Concerned(rule) {
			all = append(all, copied())
		}
	})
	if rule.Twice == cluster.AfterReply {
		for _, one := range all {
			late := int64(f.dice.Late(rule)) + w.latency.draw(f.dice.Rand(rule))
			w.at(w.Slots.snap(w.Now()+1+late, f.slot), f.rank(), &lateCopy{one, to, f, rule})
		}
		return false
	}
	for _, one := range all {
		if to.Execute(one, f.conn.Source) {
			s.twice++
		}
	}
	if s.twice > 0 { // after an error nothing is resent
		s.due = w.Slots.snap(w.Now()+1+int64(f.dice.Late(rule)), f.slot)
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

func (c *lateCopy) Fire() {
	if c.flow.gate.rule != c.rule || c.flow.defers(c.server, c) {
		return
	}
	if c.server.Execute(c.Copy, c.flow.conn.Source) {
		c.flow.gate.twice++
	}
}

func (c *lateCopy) Retry() { c.flow.retryNext(c) }
