package network

import (
	"fmt"
	"strconv"
	"strings"
)

// slotTable assigns scheduler slots. A slot is the set of instants whose remainder by the modulus is the slot's number;
// an actor may run only at instants of its slots, and each of its connections has its own. So two actors never run at
// the same instant, and it does not matter which of them Go would schedule first. A sleep of a multiple of the modulus
// keeps the slot.
//
// In ascending order: the clients, each with as many slots as it may have connections; the harness; the servers.
type slotTable struct {
	modulus int64 // nanoseconds
	clients int
	hosts   int
	each    int // slots for the connections of a client to one server
}

const (
	otherSlots  = 64  // for names that are not in the table
	serverSlots = 512 // for messages between servers
	maxEach     = 15
)

// harnessActor is a part of the harness and its number of slots: "effect" has 1024, from "effect-0", which is also
// "effect".
type harnessActor struct {
	name  string
	slots int
}

func harnessActors() []harnessActor {
	return []harnessActor{{"main", 1}, {"plan", 64}, {"drawn", 64}, {"nemesis", 64}, {"witness", 64}, {"effect", 1024},
		{"heal", 1024}, {"check", 64}, {"probe", 64}, {"guard", 64}, {"test", 64}}
}

// moduli are tried from the smallest: latencies are rounded up to it. All divide a millisecond.
func moduli() []int64 {
	return []int64{10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000}
}

func NewSlotTable(clients, hosts int) (slotTable, error) {
	for _, m := range moduli() {
		l := slotTable{modulus: m, clients: clients, hosts: hosts, each: maxEach}
		if l.need() <= m {
			return l, nil
		}
	}
	l := slotTable{modulus: moduli()[len(moduli())-1], clients: clients, hosts: hosts, each: 1}
	if l.need() > l.modulus {
		return l, fmt.Errorf("%d clients of %d servers need more scheduler slots than a simulation has: use fewer clients",
			clients, hosts)
	}
	for l.each++; l.need() <= l.modulus; l.each++ {
	}
	l.each--
	return l, nil
}

// width is the number of slots of one client: its own, its connections', and one for its notices.
func (l slotTable) width() int { return 2 + l.hosts*l.each }

func (l slotTable) harness() int {
	n := otherSlots
	for _, w := range harnessActors() {
		n += w.slots
	}
	return n
}

func (l slotTable) need() int64 { return int64(l.clients*l.width() + l.harness() + serverSlots) }

// Client is the slot of client i.
func (l slotTable) Client(i int) int { return i * l.width() }

// connection is the slot of a client's k-th connection to a server.
func (l slotTable) connection(base, host, k int) int { return base + 1 + host*l.each + k%l.each }

// named is a slot of the harness. A name that is not in the table shares one of the other slots with all names of the
// same hash.
func (l slotTable) named(name string) int {
	first, number, numbered := strings.Cut(name, "-")
	n, err := 0, error(nil)
	if numbered {
		if len(number) > 1 && (number[0] == 'n' || number[0] == 's') { // "witness-n1"
			number = number[1:]
		}
		n, err = strconv.Atoi(number)
	}
	if first == "notices" && err == nil && n >= 0 && n < l.clients {
		return l.Client(n) + l.width() - 1
	}
	base := l.clients * l.width()
	for _, w := range harnessActors() {
		if w.name == first && err == nil && n >= 0 {
			return base + n%w.slots
		}
		base += w.slots
	}
	return base + int(NameHash(name)%otherSlots)
}

// Server is a slot for messages between servers. Servers may share one: they have no goroutines of their own.
func (l slotTable) Server(id uint64) int { return int(l.modulus) - serverSlots + int(id%serverSlots) }

// snap is the first instant of a slot at or after the given one.
func (l slotTable) snap(instant int64, slot int) int64 {
	d := int64(slot) - instant%l.modulus
	if d < 0 {
		d += l.modulus
	}
	return instant + d
}
