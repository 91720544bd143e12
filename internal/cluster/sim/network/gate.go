package network

import (
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Directions of a connection, as indexes.
const (
	Forward = 0 // from the dialler
	Back    = 1
)

// caller is everything between one dialing end and one server: the counterpart of package gate on real servers.
type caller struct {
	name       string
	directions [2]gateDirection
	Conns      []*Conn

	Client   int // its number; none: it is no client
	Dials    int
	Commands int
	Keys     map[string]int // commands that name a key that is sampled

	KeysShared bool // a sample has keys, so they must not be changed
}

// NoClient is the client number of a caller that is not a client.
const NoClient = -1

// gateDirection is one direction of a caller: the rule in force and its counters.
type gateDirection struct {
	rule    cluster.Rule
	held    Waiters // flows whose next bytes are held
	passed  int64
	dropped int64
	resets  int64
	lost    int64 // published messages
	twice   int64 // requests that were executed a second time
	free    int64 // when a link with a rate has sent all bytes so far
}

// delay is the delay that the rule adds to size bytes that flow f sends at an instant.
func (l *gateDirection) delay(f *flow, leaves, size int64) int64 {
	wait := int64(l.rule.Delay)
	if l.rule.Rate > 0 {
		l.free = max(l.free, leaves) + int64(float64(size)/float64(l.rule.Rate)*float64(time.Second))
		wait += l.free - leaves
	}
	return wait + int64(f.dice.Jitter(l.rule))
}

// caller finds or makes the caller of that name at the server.
func (h *Host) caller(name string) *caller {
	c := h.callers[name]
	if c == nil {
		c = &caller{name: name, Client: NoClient}
		if i, is := cluster.ClientNumber(name); is {
			c.Client = i
		}
		for d := range c.directions {
			c.directions[d].rule = h.rules[d]
		}
		h.callers[name] = c
		h.Order = append(h.Order, c)
	}
	return c
}

// Match returns the callers of that name, or all.
func (h *Host) Match(name string) []*caller {
	if name == cluster.Any {
		return h.Order
	}
	return []*caller{h.caller(name)}
}

// SetRule puts rule in force for one direction of caller from, or of all callers.
func (h *Host) SetRule(from string, d int, rule cluster.Rule) {
	if from == cluster.Any {
		h.rules[d] = rule
	}
	for _, c := range h.Match(from) {
		c.set(d, rule)
	}
}

// set also resets the connections that cannot continue under the rule: all if the link is cut, the ones with lost bytes
// if bytes pass again.
func (c *caller) set(d int, rule cluster.Rule) {
	l := &c.directions[d]
	was := l.rule
	l.rule = rule
	if rule.Rate == 0 {
		l.free = 0
	}
	for _, conn := range append([]*Conn(nil), c.Conns...) {
		conn.Flows[d].silent = conn.Flows[d].silent || rule.Silent && conn.established()
		if rule.Mode == cluster.Cut || rule.Mode == cluster.Pass && conn.Flows[d].lost {
			l.resets++
			conn.Reset()
		} else if (was.Delays() || was.Twice == cluster.BeforeReply) && !rule.Delays() {
			conn.Flows[d].arriveNow()
		}
		for i := range conn.Flows[d].queue {
			conn.Flows[d].queue[i].once = rule.Once
		}
	}
	if rule.Mode != cluster.Hold || rule.Once {
		l.held.Release()
	}
}

// established reports whether the server has accepted the connection; bytes sent before that are retransmitted.
func (c *Conn) established() bool {
	_, opening := c.Ends[Back].(acceptingEnd)
	return !opening && (len(c.Flows[Back].queue) == 0 || c.Flows[Back].queue[0].Kind != Accepted)
}

func (c *caller) cut() bool {
	return c.directions[Forward].rule.Mode == cluster.Cut || c.directions[Back].rule.Mode == cluster.Cut
}

// AddTo adds the counters of direction d.
func (c *caller) AddTo(sum *cluster.Traffic, d int) {
	l := &c.directions[d]
	sum.Passed += l.passed
	sum.Dropped += l.dropped
	sum.Resets += l.resets
	sum.Messages += l.lost
	sum.Twice += l.twice
	if l.rule == (cluster.Rule{}) {
		return
	}
	for _, conn := range c.Conns {
		for _, s := range conn.Flows[d].queue {
			sum.Waiting += s.Size
		}
	}
}

func (c *caller) forget(gone *Conn) {
	for i, conn := range c.Conns {
		if conn == gone {
			last := len(c.Conns) - 1
			c.Conns[i] = c.Conns[last]
			c.Conns[last] = nil
			c.Conns = c.Conns[:last]
			return
		}
	}
}

// ResetAll resets the connections of the callers whose names satisfy of. The world is locked.
func (h *Host) ResetAll(of func(caller string) bool) {
	for _, caller := range h.Order {
		if !of(caller.name) {
			continue
		}
		for _, conn := range append([]*Conn(nil), caller.Conns...) {
			conn.Reset()
		}
	}
}

// Waiters are deferred deliveries.
type Waiters []waiter

// waiter resumes after retry was called, at its own next instant.
type waiter interface{ Retry() }

func (w *Waiters) Release() {
	list := *w
	*w = nil
	for _, one := range list {
		one.Retry()
	}
}
