package reports

import (
	"fmt"
	"slices"
)

func movedAddressMechanism() mechanism {
	return mechanism{name: "moved-address", find: findMovedAddress, advice: []adviceItem{{
		Text: "Make a grant wait for a replica (`WAIT 1`), or set `min-replicas-to-write 1` with a short " +
			"`min-replicas-max-lag`: the replicas follow the new master, so the old one can no longer grant the lock.",
		Cost: "each grant takes a replication round trip, and fails while no replica is attached",
	}, {
		Text: "Resolve the name at every connect, with a short time to live in every cache " +
			"(`networkaddress.cache.ttl` of a JVM), and close a client's connections when the address has changed.",
		Cost: "more lookups; clients use the old address for a shorter time, but still for some time",
	}, quorumAdvice()}}
}

// findMovedAddress: the master's address had moved to another node, and a client that still reached the old master was
// granted the lock by it.
func findMovedAddress(q *inquiry) *cause {
	if !q.promoted() {
		return nil
	}
	p, s, w := q.p, q.s, &q.r.witness
	moved := slices.IndexFunc(q.r.faults, func(f injection) bool {
		return f.is("endpoint-change") && f.inject <= p.a.From && f.heal >= p.b.From
	})
	if moved < 0 {
		return nil
	}
	f := &q.r.faults[moved]
	old, now, byOld, byNow := p.granterA, p.granterB, p.a, p.b
	if !slices.ContainsFunc(w.during(old, 0, f.inject), isMaster) {
		old, now, byOld, byNow = p.granterB, p.granterA, p.b, p.a
	}
	c := &cause{faults: []*injection{f}}
	c.text = fmt.Sprintf("the master's address moved from %s to %s at %s (%s), but %s still reached %s and was granted "+
		"it there at %s; %s granted it to %s at %s", old, now, s.instant(f.injected()), quote(f.name),
		clientName(byOld.Client), old, s.instant(byOld.granted()), now, clientName(byNow.Client), s.instant(byNow.granted()))
	return c
}
