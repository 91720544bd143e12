package network

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Priorities has messages arrive by priorities instead of by their latencies alone: Burckhardt et al. 2010, "A
// randomized scheduler with probabilistic guarantees of finding bugs". An order in which one message is slower than
// ten others in sequence almost never results from random latencies; with priorities it is one of few possible
// orders.
//
// The seed decides the kind of thing that has a priority: each client or server, each pair of the two, or each
// connection. A message waits while others of a higher priority are in flight, and half the limit longer, because the
// receiver often sends a reply; up to a limit, so that none starves. At a few instants the next sender gets the lowest
// priority of all.
type Priorities struct {
	Seed    uint64
	Horizon time.Duration // from the end of Start: in it priorities change
}

// group is the kind of thing that has a priority.
type group int

const (
	groupActors group = iota
	groupLinks
	groupConnections
)

func (g group) String() string {
	return [...]string{"clients and servers", "links", "connections"}[g]
}

const (
	priorityLevels = 16
	maxChanges     = 3
)

// limits are how long a message may wait: long beside latencies, and so short that a request and its reply together
// take less than 50 ms, the shortest time that a lock of the catalog waits for a reply (a master of a quorum).
func limits() []time.Duration {
	return []time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond}
}

// order delays messages by priority. Its methods are called with the world locked; on nil they do nothing.
type order struct {
	world   *World
	seed    uint64
	by      group
	limit   int64
	changes []int64 // instants to come
	lowered map[uint64]int
	under   [maxChanges + priorityLevels]int64 // by level: until when something is in flight
}

func NewOrder(w *World, p Priorities) *order {
	dice := rand.New(rand.NewPCG(p.Seed, NameHash("priorities")))
	o := &order{world: w, seed: dice.Uint64(), lowered: map[uint64]int{}}
	o.by = group(min(dice.IntN(4), int(groupConnections))) // connections in half of the runs
	o.limit = int64(limits()[dice.IntN(len(limits()))])
	if w.ZooKeeper { // the members exchange four messages more before the reply to a write
		o.limit /= 4
	}
	for range dice.IntN(maxChanges + 1) {
		o.changes = append(o.changes, w.Now()+dice.Int64N(max(int64(p.Horizon), 1)))
	}
	slices.Sort(o.changes)
	return o
}

// String describes it, for reports.
func (o *order) String() string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf("by priorities of %s, of which %d change; no message waits longer than %v",
		o.by, len(o.changes), time.Duration(o.limit))
}

// member identifies the source of f's priority.
func (o *order) member(f *flow) uint64 {
	switch o.by {
	case groupActors:
		return NameHash(f.conn.From.name)
	case groupLinks:
		return Mix(NameHash(f.conn.From.name), NameHash(f.conn.to.Name))
	}
	return f.conn.id
}

func (o *order) level(f *flow) int {
	m := o.member(f)
	if l, ok := o.lowered[m]; ok {
		return l
	}
	return maxChanges + int(Mix(o.seed, m)>>32%priorityLevels)
}

// sent records that f has sent something that arrives at due.
func (o *order) sent(f *flow, due int64) {
	if o == nil {
		return
	}
	if len(o.changes) > 0 && o.world.Now() >= o.changes[0] {
		o.changes = o.changes[1:]
		o.lowered[o.member(f)] = len(o.changes) // the last change is the lowest of all
	}
	l := o.level(f)
	o.under[l] = max(o.under[l], due+o.limit/2)
}

// wait is the instant until which the first message of f, which is due, waits; not later than now: it does not
// wait.
func (o *order) wait(f *flow) int64 {
	if o == nil {
		return 0
	}
	now, end := o.world.Now(), f.queue[0].due+o.limit
	if now >= end {
		return 0
	}
	l, until := o.level(f), int64(0)
	for _, u := range o.under[l+1:] {
		until = max(until, u)
	}
	if until <= now {
		return 0
	}
	until = o.world.Slots.snap(min(until+1, end), f.slot)
	o.under[l] = max(o.under[l], until)
	return until
}
