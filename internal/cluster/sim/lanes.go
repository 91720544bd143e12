package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// A lane is the instants at which one actor may be awake: those whose
// remainder by the modulus is in the lane's range of slots, of which each
// connection has its own. No two actors are ever able to run at the same
// instant then, so it does not matter which of them Go would run first. Sleeps
// that are a multiple of the modulus stay on the lane.
//
// From the bottom: the clients, each with as many slots as it may have
// connections; the harness, one slot for each lane; the servers.
type lanes struct {
	modulus int64 // nanoseconds
	clients int
	hosts   int
	each    int // slots for the connections of a client to one server
}

const (
	otherLanes  = 64  // for names that are not in the table
	serverSlots = 512 // for what goes on between servers
	maxEach     = 15
)

// word is a row of the table of lanes of the harness: "bite" is so many lanes,
// from "bite-0", which is also "bite", on.
type word struct {
	name  string
	lanes int
}

func words() []word {
	return []word{{"main", 1}, {"plan", 64}, {"drawn", 64}, {"nemesis", 64}, {"witness", 64}, {"bite", 1024},
		{"heal", 1024}, {"check", 64}, {"probe", 64}, {"guard", 64}, {"test", 64}}
}

// moduli are tried from the smallest: it is what latencies are rounded up by.
// All divide a millisecond.
func moduli() []int64 {
	return []int64{10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000}
}

func newLanes(clients, hosts int) (lanes, error) {
	for _, m := range moduli() {
		l := lanes{modulus: m, clients: clients, hosts: hosts, each: maxEach}
		if l.need() <= m {
			return l, nil
		}
	}
	l := lanes{modulus: moduli()[len(moduli())-1], clients: clients, hosts: hosts, each: 1}
	if l.need() > l.modulus {
		return l, fmt.Errorf("%d clients at %d servers are more than a simulation can keep apart: take fewer clients",
			clients, hosts)
	}
	for l.each++; l.need() <= l.modulus; l.each++ {
	}
	l.each--
	return l, nil
}

// width is the slots of one client: its own, those of its connections, and that
// of what it tells unasked.
func (l lanes) width() int { return 2 + l.hosts*l.each }

func (l lanes) harness() int {
	n := otherLanes
	for _, w := range words() {
		n += w.lanes
	}
	return n
}

func (l lanes) need() int64 { return int64(l.clients*l.width() + l.harness() + serverSlots) }

// client is the slot of client i.
func (l lanes) client(i int) int { return i * l.width() }

// connection is the slot of a client's k-th connection to a server.
func (l lanes) connection(base, host, k int) int { return base + 1 + host*l.each + k%l.each }

// named is the slot of a lane of the harness. A name that is not in the table
// has one of the other lanes by its hash, which another such name may have too.
func (l lanes) named(name string) int {
	first, number, numbered := strings.Cut(name, "-")
	n, err := 0, error(nil)
	if numbered {
		n, err = strconv.Atoi(strings.TrimLeft(number, "ns")) // "witness-n1"
	}
	if first == "notices" && err == nil && n >= 0 && n < l.clients {
		return l.client(n) + l.width() - 1
	}
	base := l.clients * l.width()
	for _, w := range words() {
		if w.name == first && err == nil && n >= 0 {
			return base + n%w.lanes
		}
		base += w.lanes
	}
	return base + int(nameHash(name)%otherLanes)
}

// server is a slot for what goes on between servers. Those may share one: they
// do not run on goroutines of their own.
func (l lanes) server(id uint64) int { return int(l.modulus) - serverSlots + int(id%serverSlots) }

// snap is the earliest instant of a slot that is not before the given one.
func (l lanes) snap(instant int64, slot int) int64 {
	d := int64(slot) - instant%l.modulus
	if d < 0 {
		d += l.modulus
	}
	return instant + d
}
