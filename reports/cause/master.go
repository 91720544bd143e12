package cause

import (
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
)

// Causes that lie with replication: another node became master without the grant,
// with another clock, or beside a master that still served clients.

// findFailover: one node granted the lock, and another one, which replaced it.
func findFailover(q *inquiry) *Cause {
	if q.p == nil {
		return q.tokenNotNewer(findFailover)
	}
	if !q.promoted() {
		return nil
	}
	p, w := q.p, &q.r.Witness
	c := because("%s granted %s to %s at %s", q.p.Granter(q.p.A), p.A.It(), p.A, p.A.GrantedAt())
	if f := p.FaultOn(p.ByA.Node, p.A.Asked, (*evidence.Fault).KeepsFromReplicas); f != nil {
		c.blame(f, " and %s %s (%s)", f.Predicate(1), f.When(), f)
	} else if down := w.FirstDown(p.ByA.Node, p.A.From, p.B.From); down != nil {
		c.Add(" and did not reply at %s", down)
	}
	reached := slices.ContainsFunc(p.ByA.Seen, func(x history.Sample) bool { return x.Node == p.ByB.Node })
	if hold := q.replicationFault(); hold != nil {
		c.blame(hold, ", while its writes were kept from %s (%s since %s)", p.ByB.Node, hold, hold.Took())
	} else if p.Unreplicated && q.r.OfSession() {
		c.Add(", and locks of sessions are not replicated")
	} else if p.Unreplicated {
		c.Add(", before its write was seen on any other node")
	} else if !reached && len(p.ByA.Seen) > 0 && w.Sampled(p.ByB.Node, p.A.From, p.B.From) {
		c.Add("; its write was never seen on %s", p.ByB.Node)
	}
	if f := q.r.Promotion(p.ByB.Node, p.A.From); f != nil { // it no longer replicated
		c.blame(f, "; %s %s %s (%s)", p.ByB.Node, f.Predicate(1), f.When(), f)
	}
	c.Add("; %s", q.takeover())
	return c
}

// tokenNotNewer: two holds did not overlap, but the token of the second is older or the same, for the reason that find
// finds.
func (q *inquiry) tokenNotNewer(find func(*inquiry) *Cause) *Cause {
	if q.property != checker.Fencing {
		return nil
	}
	two := evidence.AllOf(q.r.Holds, func(h *evidence.Hold) bool { return q.about(h.Key) && q.cites(h.Granted) })
	if len(two) != 2 || two[1].Token > two[0].Token {
		return nil
	}
	same := ""
	if two[1].Token == two[0].Token {
		same = "the same "
	}
	p := &overlap.Pair{R: q.r, V: q.v, A: two[0], B: two[1], Key: q.v.Key}
	p.FindNodes()
	c := find(&inquiry{r: q.r, v: q.v, property: q.property, p: p})
	if c != nil {
		c.Sentence = evidence.Say("%s was granted %s with %s, and later %s with %s%s: %s", p.A, evidence.Quote(p.Key),
			evidence.Token(p.A.Token, p.A.GrantedAt()), p.B, same, evidence.Token(p.B.Token, p.B.GrantedAt()), c.Sentence)
	}
	return c
}

// promoted reports whether the second grant came from another node than the first.
func (q *inquiry) promoted() bool {
	p := q.p
	if q.r.Quorum() || q.r.ByMajority() {
		return false
	}
	return p != nil && p.ByA.Node != "" && p.ByB.Node != "" && p.ByA.Node != p.ByB.Node && !p.Outlived()
}

// findDemoted: a server refused a request because it is a replica, after a fault that moved or demoted a master.
func findDemoted(q *inquiry) *Cause {
	refused := evidence.FirstOf(q.r.History.Failures, func(x *history.Failure) bool {
		return strings.Contains(x.Why, "READONLY") && q.cites(q.r.History.Spans[x.Span].Invoked)
	})
	if q.p != nil || refused == nil {
		return nil
	}
	s := &q.r.History.Spans[refused.Span]
	c := because("the %s of %s by %s, sent at %s, ended with an error at %s, because its connection led to a server that "+
		"is a replica (READONLY)", s.Op, evidence.Quote(q.v.Key), q.r.Who(s.Process), evidence.CallAt(s),
		evidence.EventAt(s.Ended, refused.Time)).explain(q.r.StepAt(int(s.Invoked)))
	f := evidence.LastOf(q.r.Faults, func(f *evidence.Fault) bool {
		return (f.ActsOn(history.ObjectAddress) || f.Class == history.FaultDemotes) && len(f.Effects) > 0 &&
			f.EffectTime() <= refused.Time
	})
	if f != nil {
		c.blame(f, "; %s", f.TookEffect())
	}
	return c
}

// takeover is the end of a failover: the new master and the second grant.
func (q *inquiry) takeover() evidence.Sentence {
	p := q.p
	granted := evidence.Say("granted %s to %s at %s", p.B.It(), p.B, p.B.GrantedAt())
	if p.ByB.Inferred {
		granted = evidence.Say("was the only master seen when %s got %s at %s", p.B, p.B.Object("the lock"), p.B.GrantedAt())
	}
	switch {
	case p.Promoted == nil:
		return evidence.Say("%s %s", p.ByB.Node, granted)
	case p.Promoted.Time > p.B.From: // sampled after it had granted the lock
		return evidence.Say("%s %s and was seen as master from %s", p.ByB.Node, granted, p.Promoted)
	}
	return evidence.Say("%s was seen as master from %s and %s", p.ByB.Node, p.Promoted, granted)
}

// replicationFault is the fault that kept the first grant from the node that
// granted the second; nil if none did.
func (q *inquiry) replicationFault() *evidence.Fault {
	a, b := q.p.ByA.Node, q.p.ByB.Node
	return evidence.FirstOf(q.r.Faults, func(f *evidence.Fault) bool {
		return (f.On(a) || f.On(b+">"+a) || f.On(a+">"+b)) && f.KeepsFromReplicas() &&
			f.Effective(q.p.A.Asked, q.p.B.From) && f.Heal >= q.p.A.From
	})
}

// findSplitBrain: the first master still served clients when the second had been promoted.
func findSplitBrain(q *inquiry) *Cause {
	if !q.promoted() || q.p.Promoted == nil {
		return nil
	}
	p := q.p
	still := evidence.FirstOf(q.r.Witness.During(p.ByA.Node, p.Promoted.Time, p.A.To), evidence.IsMaster)
	f := q.replicationFault()
	if still == nil || f == nil {
		return nil
	}
	// from the injection: its effect, a second master, comes after it
	c := blame(f, "%s %s from %s (%s), granted it to %s at %s and was still seen as master at %s", q.p.Granter(q.p.A),
		f.Predicate(1), f.Injected(), f, p.A, p.A.GrantedAt(), still)
	if link := q.cutFromSentinel(); link != nil {
		c.blame(link, "; %s from %s (%s)", link.Clause(), link.Injected(), link)
	}
	c.Add("; %s", q.takeover())
	return c
}

// cutFromSentinel is the fault on the link of a Sentinel to the first master that was in force before the second was
// promoted: why it was promoted; nil if there is none.
func (q *inquiry) cutFromSentinel() *evidence.Fault {
	return evidence.FirstOf(q.r.Faults, func(f *evidence.Fault) bool {
		from, to, link := strings.Cut(f.Target, ">")
		inForce := len(f.Effects) > 0 && f.Inject <= q.p.Promoted.Time && q.p.Promoted.Time <= f.Heal
		if !link || !inForce || !f.CutsOff() {
			return false
		}
		if from == q.p.ByA.Node {
			from, to = to, from
		}
		return to == q.p.ByA.Node && !evidence.IsClient(from) && !q.r.AreNodes(map[string]bool{from: true})
	})
}

// findAheadReplica: by the clock of the promoted node the lease had ended.
func findAheadReplica(q *inquiry) *Cause {
	if !q.promoted() {
		return nil
	}
	p := q.p
	f := q.clockAhead(p.ByB.Node)
	if f == nil || q.replicationFault() != nil {
		return nil
	}
	c := &Cause{Faults: []*evidence.Fault{f}}
	why := evidence.Sentence{}
	if over := p.FaultOn(p.ByA.Node, p.A.Asked, nil); over != nil {
		c.Faults = append(c.Faults, over)
		why = evidence.Say(" and %s %s (%s)", over.Predicate(1), over.When(), over)
	}
	c.Add("the key expired early on %[2]s (%[3]s): %[4]s granted it to %[5]s at %[6]s%[1]s; %[7]s%[8]s", why,
		f.ClockText(), f, q.p.Granter(q.p.A), p.A, p.A.GrantedAt(), q.takeover(), q.p.Early())
	return c
}

// clockAhead is a fault that set the clock of node forward by the time of the
// second grant; nil if there is none.
func (q *inquiry) clockAhead(node string) *evidence.Fault {
	return q.r.ClockAhead(node, q.p.A.Asked, q.p.A.From, q.p.B.From)
}

// findMovedAddress: the master's address had moved to another node, and a client that still reached the old master was
// granted the lock by it. If no sample shows which nodes granted the lock, that client is the target of the fault.
func findMovedAddress(q *inquiry) *Cause {
	p := q.p
	if p == nil || p.Outlived() || p.ByA.Node != "" && p.ByA.Node == p.ByB.Node {
		return nil
	}
	f := evidence.FirstOf(q.r.Faults, func(f *evidence.Fault) bool {
		return f.Does(history.FaultMoves, history.ObjectAddress) && f.Inject <= p.A.From && f.Heal >= p.B.From
	})
	if f == nil {
		return nil
	}
	old, now := q.r.Witness.SoleMaster(f.Inject), q.r.Witness.Only(func(node string) bool {
		return q.r.Witness.Promotion(node, f.Inject, p.B.To) != nil
	})
	stale := func(h *evidence.Hold) bool { return f.On(cluster.ClientName(h.Client)) }
	byOld, byNow := p.A, p.B
	if p.Grant(byNow).Node == old || stale(byNow) {
		byOld, byNow = p.B, p.A
	}
	atOld, atNow := p.Grant(byOld).Node, p.Grant(byNow).Node
	contradicted := atOld == now || atNow == old
	shown := atOld == old && atNow == now
	if old == "" || now == "" || contradicted || !shown && (!stale(byOld) || stale(byNow)) {
		return nil
	}
	return blame(f, "the master's address moved from %s to %s at %s (%s), but %s still reached %s and was "+
		"granted it there at %s; %s granted it to %s at %s", old, now, f.Injected(), f, byOld, old, byOld.GrantedAt(), now,
		byNow, byNow.GrantedAt())
}
