package sim

import (
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Directions of a connection, as indexes.
const (
	forward = 0 // from the dialler
	back    = 1
)

// caller is everything between one dialing end and one server: the counterpart of package gate on real servers.
type caller struct {
	name       string
	directions [2]gateDirection
	conns      []*conn

	client   int // its number; none: it is no client
	dials    int
	commands int
	keys     map[string]int // commands that name a key that is sampled

	keysShared bool // a sample has keys, so they must not be changed
}

// noClient is the client number of a caller that is not a client.
const noClient = -1

// gateDirection is one direction of a caller: the rule in force and its counters.
type gateDirection struct {
	rule    cluster.Rule
	held    waiters // flows whose next bytes are held
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
func (h *host) caller(name string) *caller {
	c := h.callers[name]
	if c == nil {
		c = &caller{name: name, client: noClient}
		if i, is := cluster.ClientNumber(name); is {
			c.client = i
		}
		for d := range c.directions {
			c.directions[d].rule = h.rules[d]
		}
		h.callers[name] = c
		h.order = append(h.order, c)
	}
	return c
}

// match returns the callers of that name, or all.
func (h *host) match(name string) []*caller {
	if name == cluster.Any {
		return h.order
	}
	return []*caller{h.caller(name)}
}

// setRule puts rule in force for one direction of caller from, or of all callers.
func (h *host) setRule(from string, d int, rule cluster.Rule) {
	if from == cluster.Any {
		h.rules[d] = rule
	}
	for _, c := range h.match(from) {
		c.set(d, rule)
	}
}

// set also resets the connections that cannot continue under the rule: all if the link is cut, those that lost
// bytes if bytes pass again.
func (c *caller) set(d int, rule cluster.Rule) {
	l := &c.directions[d]
	was := l.rule
	l.rule = rule
	if rule.Rate == 0 {
		l.free = 0
	}
	for _, conn := range append([]*conn(nil), c.conns...) {
		conn.flows[d].silent = conn.flows[d].silent || rule.Silent && conn.established()
		if rule.Mode == cluster.Cut || rule.Mode == cluster.Pass && conn.flows[d].lost {
			l.resets++
			conn.reset()
		} else if (was.Delays() || was.Twice == cluster.BeforeReply) && !rule.Delays() {
			conn.flows[d].arriveNow()
		}
		for i := range conn.flows[d].queue {
			conn.flows[d].queue[i].once = rule.Once
		}
	}
	if rule.Mode != cluster.Hold || rule.Once {
		l.held.release()
	}
}

// established reports whether the server has accepted the connection; what was sent before that is retransmitted.
func (c *conn) established() bool {
	_, opening := c.ends[back].(acceptingEnd)
	return !opening && (len(c.flows[back].queue) == 0 || c.flows[back].queue[0].kind != accepted)
}

func (c *caller) cut() bool {
	return c.directions[forward].rule.Mode == cluster.Cut || c.directions[back].rule.Mode == cluster.Cut
}

// addTo adds the counters of direction d.
func (c *caller) addTo(sum *cluster.Traffic, d int) {
	l := &c.directions[d]
	sum.Passed += l.passed
	sum.Dropped += l.dropped
	sum.Resets += l.resets
	sum.Messages += l.lost
	sum.Twice += l.twice
	if l.rule == (cluster.Rule{}) {
		return
	}
	for _, conn := range c.conns {
		for _, s := range conn.flows[d].queue {
			sum.Waiting += s.size
		}
	}
}

func (c *caller) forget(gone *conn) {
	for i, conn := range c.conns {
		if conn == gone {
			last := len(c.conns) - 1
			c.conns[i] = c.conns[last]
			c.conns[last] = nil
			c.conns = c.conns[:last]
			return
		}
	}
}

// resetAll resets the connections of the callers whose names satisfy of. The world is locked.
func (h *host) resetAll(of func(caller string) bool) {
	for _, caller := range h.order {
		if !of(caller.name) {
			continue
		}
		for _, conn := range append([]*conn(nil), caller.conns...) {
			conn.reset()
		}
	}
}

// waiters is what was deferred.
type waiters []waiter

// waiter resumes after retry was called, at its own next instant.
type waiter interface{ retry() }

func (w *waiters) release() {
	list := *w
	*w = nil
	for _, one := range list {
		one.retry()
	}
}
