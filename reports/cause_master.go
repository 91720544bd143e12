package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Causes that lie with replication: another node became master without the grant,
// with another clock, or beside a master that still served clients.

func splitBrainMechanism() mechanism {
	return mechanism{name: "split-brain", find: findSplitBrain, advice: []adviceItem{{
		Text: "Set `min-replicas-to-write 1` and a short `min-replicas-max-lag`: a master that is cut off from its " +
			"replicas then refuses to grant the lock.",
		Cost: "no grants while no replica is attached, such as right after a failover",
	}, quorumAdvice()}}
}

func aheadReplicaMechanism() mechanism {
	return mechanism{name: "replica-clock-ahead", find: findAheadReplica, advice: []adviceItem{{
		Text: "Monitor the clocks of all servers, slew them instead of stepping them, and keep Sentinel from promoting a " +
			"server whose clock is off by more than the safety margin of the leases (`replica-priority 0`).",
		Cost: "monitoring; fewer servers that can take over",
	}, quorumAdvice()}}
}

func failoverMechanism() mechanism {
	return mechanism{name: "lost-in-failover", find: findFailover, advice: []adviceItem{{
		Text: "Make a grant wait for all replicas that may be promoted: `WAIT n` on the connection of the write (on " +
			"another connection it waits for other writes), and give the lock back if fewer acknowledge it. `WAIT` for some " +
			"of them is not enough, because another one may be promoted.",
		Cost: "each grant takes a replication round trip, and fails while a replica is away",
	}, quorumAdvice()}}
}

func quorumAdvice() adviceItem {
	return adviceItem{
		Text: "Do not rely on one master: a quorum of independent masters with `appendfsync always`, or with restarts " +
			"delayed by more than the longest lease, survives the loss of any minority.",
		Cost: "five independent servers; each grant asks all of them",
	}
}

// findFailover: one node granted the lock, and another one, which replaced it.
func findFailover(q *inquiry) *cause {
	if q.p == nil {
		return q.tokenNotNewer(findFailover)
	}
	if !q.promoted() {
		return nil
	}
	p, s, w := q.p, q.s, &q.r.witness
	c := &cause{}
	text := fmt.Sprintf("%s granted %s to %s at %s", q.granter(), p.a.it(), clientName(p.a.Client),
		s.instant(p.a.granted()))
	if f := p.faultOn(p.granterA, p.a.Asked, replicationFaults()...); f != nil {
		c.faults = append(c.faults, f)
		text += fmt.Sprintf(" and %s %s (%s)", faultVerb(f.name), f.when(s), quote(f.name))
	} else if down, ok := w.firstDown(p.granterA, p.a.From, p.b.From); ok {
		text += fmt.Sprintf(" and did not reply at %s", s.instant(sampleAt(down)))
	}
	reached := slices.ContainsFunc(p.observedA, func(x history.Sample) bool { return x.Node == p.granterB })
	if hold := q.replicationFault(); hold != nil {
		c.faults = append(c.faults, hold)
		text += fmt.Sprintf(", while its writes were kept from %s (%s since %s)", p.granterB, quote(hold.name),
			s.instant(hold.took()))
	} else if p.unreplicated {
		text += ", before its write was seen on any other node"
	} else if !reached && len(p.observedA) > 0 && w.sampled(p.granterB, p.a.From, p.b.From) {
		text += fmt.Sprintf("; its write was never seen on %s", p.granterB)
	}
	if f := q.r.promotedByHand(p.granterB, p.a.From); f != nil { // it no longer replicated
		c.faults = append(c.faults, f)
		text += fmt.Sprintf("; %s was promoted by hand %s (%s)", p.granterB, f.when(s), quote(f.name))
	}
	c.text = text + "; " + q.takeover()
	return c
}

// promotedByHand is the fault that promoted node before t without the Sentinels; nil if none did.
func (r *Run) promotedByHand(node string, t time.Duration) *injection {
	i := slices.IndexFunc(r.faults, func(f injection) bool {
		return f.is("manual-promotion") && f.on(node) && f.inject <= t
	})
	if i < 0 {
		return nil
	}
	return &r.faults[i]
}

// tokenNotNewer: two holds did not overlap, but the token of the second is older or the same, for the reason that find
// finds.
func (q *inquiry) tokenNotNewer(find func(*inquiry) *cause) *cause {
	if q.property != checker.Fencing {
		return nil
	}
	var two []*hold
	for i := range q.r.holds {
		if h := &q.r.holds[i]; q.r.keyName(h.Key) == q.v.Key && slices.Contains(q.v.Events, int(h.Granted)) {
			two = append(two, h)
		}
	}
	if len(two) != 2 || two[1].Token > two[0].Token {
		return nil
	}
	same := ""
	if two[1].Token == two[0].Token {
		same = "the same "
	}
	p, s := &pair{r: q.r, v: q.v, a: two[0], b: two[1], key: q.v.Key}, q.s
	p.findNodes()
	text := fmt.Sprintf("%s was granted %s with %s, and later %s with %s%s", clientName(p.a.Client), quote(p.key),
		s.token(p.a.Token, p.a.granted()), clientName(p.b.Client), same, s.token(p.b.Token, p.b.granted()))
	c := find(&inquiry{r: q.r, v: q.v, property: q.property, p: p, s: s})
	if c != nil {
		c.text = text + ": " + c.text
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
func (q *inquiry) takeover() string {
	p, s := q.p, q.s
	text := p.granterB
	late := p.promoted != nil && p.promoted.Time > p.b.From // sampled after it had granted the lock
	if p.promoted != nil && !late {
		text += fmt.Sprintf(" was seen as master from %s and", s.instant(sampleAt(p.promoted)))
	}
	text += fmt.Sprintf(" granted %s to %s at %s", p.b.it(), clientName(p.b.Client), s.instant(p.b.granted()))
	if late {
		text += fmt.Sprintf(" and was seen as master from %s", s.instant(sampleAt(p.promoted)))
	}
	return text
}

// replicationFaults keep writes of a master from replicas, but leave it to its clients.
func replicationFaults() []string {
	return []string{"replication-hold", "replication-lag", "partition", "partition-one-way", "split-brain"}
}

// replicationFault is the fault that kept the first grant from the node that
// granted the second; nil if none did.
func (q *inquiry) replicationFault() *injection {
	a, b := q.p.granterA, q.p.granterB
	for i := range q.r.faults {
		f := &q.r.faults[i]
		on := f.on(a) || f.on(b+">"+a) || f.on(a+">"+b)
		if on && f.is(replicationFaults()...) && f.effective(q.p.a.Asked, q.p.b.From) && f.heal >= q.p.a.From {
			return f
		}
	}
	return nil
}

// findSplitBrain: the first master still served clients when the second had been promoted.
func findSplitBrain(q *inquiry) *cause {
	if !q.promoted() || q.p.promoted == nil {
		return nil
	}
	p, s := q.p, q.s
	both := slices.IndexFunc(q.r.witness.during(p.granterA, p.promoted.Time, p.a.to), isMaster)
	f := q.replicationFault()
	if both < 0 || f == nil {
		return nil
	}
	still := &q.r.witness.during(p.granterA, p.promoted.Time, p.a.to)[both]
	since := f.injected() // its effect, a second master, comes later
	c := &cause{faults: []*injection{f}}
	c.text = fmt.Sprintf("%s %s from %s (%s), granted it to %s at %s and was still seen as master at %s", q.granter(),
		cutOff(f), s.instant(since), quote(f.name), clientName(p.a.Client), s.instant(p.a.granted()),
		s.instant(sampleAt(still)))
	if link := q.cutFromSentinel(); link != nil {
		c.faults = append(c.faults, link)
		c.text += fmt.Sprintf("; %s %s from %s (%s)", subject(link.target), faultVerb(link.name),
			s.instant(link.injected()), quote(link.name))
	}
	c.text += "; " + q.takeover()
	return c
}

// cutFromSentinel is the fault on the link of a Sentinel to the first master that was in force before the second was
// promoted: why it was promoted; nil if there is none.
func (q *inquiry) cutFromSentinel() *injection {
	for i := range q.r.faults {
		f := &q.r.faults[i]
		from, to, link := strings.Cut(f.target, ">")
		inForce := len(f.effects) > 0 && f.inject <= q.p.promoted.Time && q.p.promoted.Time <= f.heal
		if !link || !inForce || !f.is(cutFaults()...) {
			continue
		}
		if from == q.p.granterA {
			from, to = to, from
		}
		if to == q.p.granterA && !isClient(from) && !q.r.areNodes(map[string]bool{from: true}) {
			return f
		}
	}
	return nil
}

// cutOff is what a replication fault did to the master.
func cutOff(f *injection) string {
	if f.is("split-brain") {
		return "was cut off from Sentinels and replicas"
	}
	return faultVerb(f.name)
}

// findAheadReplica: by the clock of the promoted node the lease had ended.
func findAheadReplica(q *inquiry) *cause {
	if !q.promoted() {
		return nil
	}
	p, s := q.p, q.s
	f := q.clockAhead(p.granterB)
	if f == nil || q.replicationFault() != nil {
		return nil
	}
	c := &cause{faults: []*injection{f}}
	why := ""
	if over := p.faultOn(p.granterA, p.a.Asked); over != nil {
		c.faults = append(c.faults, over)
		why = fmt.Sprintf(" and %s %s (%s)", faultVerb(over.name), over.when(s), quote(over.name))
	}
	c.text = fmt.Sprintf("the key expired early on %s (%s): %s granted it to %s at %s%s; %s%s", q.clockText(f),
		quote(f.name), q.granter(), clientName(p.a.Client), s.instant(p.a.granted()), why, q.takeover(), q.early())
	return c
}

// clockAhead is a fault that set the clock of node forward by the time of the
// second grant; nil if there is none.
func (q *inquiry) clockAhead(node string) *injection {
	return q.r.clockAhead(node, q.p.a.Asked, q.p.a.From, q.p.b.From)
}

// clockAhead is a fault that set the clock of node forward between the request for a hold, which was granted at
// granted, and t, also by healing a clock that it had set back; nil if there is none.
func (r *Run) clockAhead(node string, asked, granted, t time.Duration) *injection {
	for i := range r.faults {
		f := &r.faults[i]
		if !f.is("clock-jump", "clock-drift") || !f.on(node) {
			continue
		}
		corrected := f.behind() != "" && f.healEvent >= 0 && f.heal >= asked && f.heal <= t
		if corrected || f.ahead() != "" && f.effective(asked, t) && f.heal >= granted {
			return f
		}
	}
	return nil
}

// clockText is a node with a clock that was set forward, as the fault observed it.
func (q *inquiry) clockText(f *injection) string {
	text := fmt.Sprintf("%s, whose clock ", f.target)
	if f.is("clock-drift") {
		gained := q.s.quote(f.amount(), f.injected())
		return text + fmt.Sprintf("gained %s every second from %s", gained, q.s.instant(f.injected()))
	}
	if by := f.behind(); by != "" {
		return text + fmt.Sprintf("jumped %s ahead at %s, when it was corrected", q.s.quote(by, f.took()),
			q.s.instant(f.healed()))
	}
	return text + fmt.Sprintf("jumped %s ahead at %s", q.s.quote(f.ahead(), f.took()), q.s.instant(f.took()))
}

// faultOn is the last fault on target between from and the second grant that has
// none of the names in except, preferably one that took effect.
func (p *pair) faultOn(target string, from time.Duration, except ...string) *injection {
	var best *injection
	for i := range p.r.faults {
		f := &p.r.faults[i]
		if !f.on(target) || f.effectTime() < from || f.inject > p.b.From || f.is(except...) {
			continue
		}
		if best == nil || len(f.effects) >= len(best.effects) {
			best = f
		}
	}
	return best
}

// isClient reports whether a target is a client.
func isClient(target string) bool {
	_, is := cluster.ClientNumber(target)
	return is
}
