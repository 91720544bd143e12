package reports

import (
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// Causes that lie with replication: another node became master without the grant,
// with another clock, or beside a master that still served clients.

// findFailover: one node granted the lock, and another one, which replaced it.
func findFailover(q *inquiry) *cause {
	if q.p == nil {
		return q.tokenNotNewer(findFailover)
	}
	if !q.promoted() {
		return nil
	}
	p, w := q.p, &q.r.witness
	c := because("%s granted %s to %s at %s", q.granter(), p.a.it(), p.a, p.a.granted())
	if f := p.faultOn(p.granterA, p.a.Asked, (*injection).keepsFromReplicas); f != nil {
		c.blame(f, " and %s %s (%s)", f.predicate(1), f.when(), f)
	} else if down := w.firstDown(p.granterA, p.a.From, p.b.From); down != nil {
		c.add(" and did not reply at %s", down)
	}
	reached := slices.ContainsFunc(p.observedA, func(x history.Sample) bool { return x.Node == p.granterB })
	if hold := q.replicationFault(); hold != nil {
		c.blame(hold, ", while its writes were kept from %s (%s since %s)", p.granterB, hold, hold.took())
	} else if p.unreplicated {
		c.add(", before its write was seen on any other node")
	} else if !reached && len(p.observedA) > 0 && w.sampled(p.granterB, p.a.From, p.b.From) {
		c.add("; its write was never seen on %s", p.granterB)
	}
	if f := q.r.promotion(p.granterB, p.a.From); f != nil { // it no longer replicated
		c.blame(f, "; %s %s %s (%s)", p.granterB, f.predicate(1), f.when(), f)
	}
	c.add("; %s", q.takeover())
	return c
}

// tokenNotNewer: two holds did not overlap, but the token of the second is older or the same, for the reason that find
// finds.
func (q *inquiry) tokenNotNewer(find func(*inquiry) *cause) *cause {
	if q.property != checker.Fencing {
		return nil
	}
	two := allOf(q.r.holds, func(h *hold) bool { return q.about(h.Key) && q.cites(h.Granted) })
	if len(two) != 2 || two[1].Token > two[0].Token {
		return nil
	}
	same := ""
	if two[1].Token == two[0].Token {
		same = "the same "
	}
	p := &pair{r: q.r, v: q.v, a: two[0], b: two[1], key: q.v.Key}
	p.findNodes()
	c := find(&inquiry{r: q.r, v: q.v, property: q.property, p: p})
	if c != nil {
		c.sentence = say("%s was granted %s with %s, and later %s with %s%s: %s", p.a, quote(p.key),
			token(p.a.Token, p.a.granted()), p.b, same, token(p.b.Token, p.b.granted()), c.sentence)
	}
	return c
}

// promoted reports whether the second grant came from another node than the first.
func (q *inquiry) promoted() bool {
	p := q.p
	if q.r.quorum() || q.r.byMajority() {
		return false
	}
	return p != nil && p.granterA != "" && p.granterB != "" && p.granterA != p.granterB && !p.outlived()
}

// granter names the node that granted the first hold, or the one that must have: a
// master that dies within a millisecond of its grant is seldom sampled with it.
func (q *inquiry) granter() string {
	if q.p.inferred {
		return q.p.granterA + ", the only master seen,"
	}
	return q.p.granterA
}

// takeover is the end of a failover: the new master and the second grant.
func (q *inquiry) takeover() sentence {
	p := q.p
	granted := say("granted %s to %s at %s", p.b.it(), p.b, p.b.granted())
	switch {
	case p.promoted == nil:
		return say("%s %s", p.granterB, granted)
	case p.promoted.Time > p.b.From: // sampled after it had granted the lock
		return say("%s %s and was seen as master from %s", p.granterB, granted, p.promoted)
	}
	return say("%s was seen as master from %s and %s", p.granterB, p.promoted, granted)
}

// replicationFault is the fault that kept the first grant from the node that
// granted the second; nil if none did.
func (q *inquiry) replicationFault() *injection {
	a, b := q.p.granterA, q.p.granterB
	return firstOf(q.r.faults, func(f *injection) bool {
		return (f.on(a) || f.on(b+">"+a) || f.on(a+">"+b)) && f.keepsFromReplicas() &&
			f.effective(q.p.a.Asked, q.p.b.From) && f.heal >= q.p.a.From
	})
}

// findSplitBrain: the first master still served clients when the second had been promoted.
func findSplitBrain(q *inquiry) *cause {
	if !q.promoted() || q.p.promoted == nil {
		return nil
	}
	p := q.p
	still := firstOf(q.r.witness.during(p.granterA, p.promoted.Time, p.a.to), isMaster)
	f := q.replicationFault()
	if still == nil || f == nil {
		return nil
	}
	c := blame(f, "%s %s from %s (%s), granted it to %s at %s and was still seen as master at %s", q.granter(),
		f.predicate(1), f.injected(), f, p.a, p.a.granted(), still) // its effect, a second master, comes after the injection
	if link := q.cutFromSentinel(); link != nil {
		c.blame(link, "; %s %s from %s (%s)", subject(link.target), link.predicate(1), link.injected(), link)
	}
	c.add("; %s", q.takeover())
	return c
}

// cutFromSentinel is the fault on the link of a Sentinel to the first master that was in force before the second was
// promoted: why it was promoted; nil if there is none.
func (q *inquiry) cutFromSentinel() *injection {
	return firstOf(q.r.faults, func(f *injection) bool {
		from, to, link := strings.Cut(f.target, ">")
		inForce := len(f.effects) > 0 && f.inject <= q.p.promoted.Time && q.p.promoted.Time <= f.heal
		if !link || !inForce || !f.cutsOff() {
			return false
		}
		if from == q.p.granterA {
			from, to = to, from
		}
		return to == q.p.granterA && !isClient(from) && !q.r.areNodes(map[string]bool{from: true})
	})
}

// findAheadReplica: by the clock of the promoted node the lease had ended.
func findAheadReplica(q *inquiry) *cause {
	if !q.promoted() {
		return nil
	}
	p := q.p
	f := q.clockAhead(p.granterB)
	if f == nil || q.replicationFault() != nil {
		return nil
	}
	c := &cause{faults: []*injection{f}}
	why := sentence{}
	if over := p.faultOn(p.granterA, p.a.Asked, nil); over != nil {
		c.faults = append(c.faults, over)
		why = say(" and %s %s (%s)", over.predicate(1), over.when(), over)
	}
	c.add("the key expired early on %[2]s (%[3]s): %[4]s granted it to %[5]s at %[6]s%[1]s; %[7]s%[8]s", why,
		f.clockText(), f, q.granter(), p.a, p.a.granted(), q.takeover(), q.early())
	return c
}

// clockAhead is a fault that set the clock of node forward by the time of the
// second grant; nil if there is none.
func (q *inquiry) clockAhead(node string) *injection {
	return q.r.clockAhead(node, q.p.a.Asked, q.p.a.From, q.p.b.From)
}
