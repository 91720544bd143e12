package gate

import (
	"cmp"
	"errors"
	"slices"
)

// Move moves the address of g to gate to, like a DNS name or a service address that moves to another server: gate to
// serves new connections under its rules, and refuses them if it refuses its own. Connections of the caller named stale
// ("": none), whose resolver keeps the old address, still reach the gate that had the address, until [Gate.Settle].
// Open connections continue, see [Gate.Reset]. Moving g to itself gives it its address back.
func (g *Gate) Move(to *Gate, stale string) error {
	g.mu.Lock()
	former := cmp.Or(g.moved, g)
	g.moved, g.stale, g.former = to, stale, former
	if to == g {
		g.moved = nil
	}
	g.mu.Unlock()
	former.mu.Lock()
	former.fronts = slices.DeleteFunc(former.fronts, func(front *Gate) bool { return front == g })
	former.mu.Unlock()
	if to == g {
		return g.Admit()
	}
	to.mu.Lock()
	to.fronts = append(to.fronts, g)
	to.mu.Unlock()
	return to.Admit()
}

// Settle ends the exception for the stale caller.
func (g *Gate) Settle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stale = ""
}

// Reset resets the open connections of the callers whose names satisfy of.
func (g *Gate) Reset(of func(caller string) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, from := range g.callers {
		if !of(name) {
			continue
		}
		for c := range from.conns {
			c.reset(nil)
		}
	}
}

// leadsTo returns the gate that serves a new connection of the caller of that name.
func (g *Gate) leadsTo(name string) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stale != "" && name == g.stale {
		return g.former
	}
	return cmp.Or(g.moved, g)
}

// eachAddress calls do for the gates whose addresses lead to the server of g: g itself, unless it has moved, and gates
// that have moved to it.
func (g *Gate) eachAddress(do func(*Gate) error) error {
	g.mu.Lock()
	all := slices.Clone(g.fronts)
	if g.moved == nil {
		all = append(all, g)
	}
	g.mu.Unlock()
	var errs []error
	for _, each := range all {
		errs = append(errs, do(each))
	}
	return errors.Join(errs...)
}
