package reports

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// sentence says who held what at once, for how long, and why.
func (p *pair) sentence() string {
	switch p.cause {
	case byStall:
		return p.stallSentence()
	case byFailover:
		return p.headline() + ": " + p.failoverClause()
	case byRestart:
		return p.headline() + ": " + p.restartClause()
	case byExpiry:
		return fmt.Sprintf("%s: %s kept it until %s%s although its validity had ended at %s; %s was granted %s at %s%s",
			p.headline(), clientName(p.a.Client), format.Instant(p.a.to), p.endingA(), format.Instant(p.validUntil),
			clientName(p.b.Client), p.b.what("the lock"), format.Instant(p.b.From), p.staleClause())
	}
	return p.headline() + ": " + p.unknownClause()
}

// headline says who held what at once.
func (p *pair) headline() string {
	a, b, key := clientName(p.a.Client), clientName(p.b.Client), quote(p.key)
	who := a + " and " + b
	if p.a.Client == p.b.Client {
		who = a
	}
	took := format.Duration(p.overlap())
	if p.a.Permits == 0 && p.a.Client == p.b.Client {
		return fmt.Sprintf("%s held %s twice at once for %s", a, key, took)
	}
	if p.a.Permits == 0 {
		return fmt.Sprintf("%s both held %s for %s", who, key, took)
	}
	limit := p.r.History.Limit(p.a.Key)
	text := fmt.Sprintf("%s held %d and %d of the %s of %s", who, p.a.Permits, p.b.Permits,
		format.Count(limit, "permit"), key)
	if p.a.Permits+p.b.Permits <= limit {
		text += " while other clients held more than the rest"
	}
	return text + " for " + took
}

// failoverClause: one node granted the lock and another one replaced it.
func (p *pair) failoverClause() string {
	w := &p.r.witness
	var b strings.Builder
	fmt.Fprintf(&b, "%s got it %s", clientName(p.a.Client), p.grantedA())
	if p.fault != nil {
		link := ", which"
		if p.inferred {
			link = "; " + p.granterA
		}
		fmt.Fprintf(&b, "%s %s %s", link, faultVerb(p.fault.name), relative(p.fault.effectTime()-p.a.From))
	}
	if p.unreplicated {
		b.WriteString(", before the write was seen on any other node")
	}
	fmt.Fprintf(&b, "; %s", w.name(p.granterB))
	if p.promoted > 0 {
		fmt.Fprintf(&b, " was seen as master from %s and", format.Instant(p.promoted))
	}
	fmt.Fprintf(&b, " granted it to %s at %s", clientName(p.b.Client), format.Instant(p.b.From))
	return b.String()
}

// grantedA says which node granted the first hold, or which one must have: a
// master that dies within a millisecond of its grant is seldom sampled with it.
func (p *pair) grantedA() string {
	if p.inferred {
		return "when " + p.r.witness.name(p.granterA) + " was the only master seen"
	}
	return "from " + p.nodes(p.observedA)
}

// restartClause: the node that granted the lock restarted without it.
func (p *pair) restartClause() string {
	w := &p.r.witness
	text := fmt.Sprintf("%s got it %s", clientName(p.a.Client), p.grantedA())
	if p.fault != nil {
		text += fmt.Sprintf("; %s %s %s", p.granterA, faultVerb(p.fault.name), relative(p.fault.effectTime()-p.a.From))
	} else if t, ok := w.firstDown(p.granterA, p.a.From, p.b.From); ok {
		text += fmt.Sprintf("; %s did not reply at %s", p.granterA, format.Instant(t))
	}
	return text + fmt.Sprintf("; %s was granted it at %s by %s",
		clientName(p.b.Client), format.Instant(p.b.From), p.nodes(p.observedB))
}

// unknownClause says which nodes granted what.
func (p *pair) unknownClause() string {
	text := fmt.Sprintf("%s was granted it at %s by %s, %s at %s by %s",
		clientName(p.a.Client), format.Instant(p.a.From), p.nodes(p.observedA),
		clientName(p.b.Client), format.Instant(p.b.From), p.nodes(p.observedB))
	if p.validUntil > p.b.From {
		text += fmt.Sprintf("; the grant of %s was valid until %s", clientName(p.a.Client), format.Instant(p.validUntil))
	}
	return text
}

// stallSentence: a client was paused past its lease.
func (p *pair) stallSentence() string {
	a, b := clientName(p.a.Client), clientName(p.b.Client)
	text := fmt.Sprintf("%s stalled%s while it held %s", a, p.stallLength(), quote(p.key))
	if s := &p.r.History.Spans[p.a.Span]; s.Valid > 0 {
		text += ", valid for " + format.Duration(s.Valid-s.Return)
	}
	text += fmt.Sprintf("; the validity ended at %s, %s was granted %s at %s%s",
		format.Instant(p.validUntil), b, p.b.what("the lock"), format.Instant(p.b.From), p.staleClause())
	if p.stale == nil {
		text += fmt.Sprintf(", and %s believed that it held %s until %s", a, p.a.what("it"), format.Instant(p.a.to))
	}
	return text
}

func (p *pair) stallLength() string {
	if p.fault.heal <= p.r.History.End {
		return " for " + format.Duration(p.fault.heal-p.fault.inject)
	}
	return ""
}

// staleClause describes the late write, if any, and what fencing did or would have done.
func (p *pair) staleClause() string {
	t := p.stale
	if t == nil {
		return ""
	}
	text := fmt.Sprintf(", and %s wrote at %s", clientName(p.a.Client), format.Instant(t.Time))
	if t.Token == 0 {
		return text + " without a token: the lock issues none, so nothing could have rejected that write"
	}
	if t.MaxSeen <= t.Token {
		return text + fmt.Sprintf(" with token %d, before a newer one had been seen", t.Token)
	}
	text += fmt.Sprintf(" with token %d after token %d had been seen", t.Token, t.MaxSeen)
	switch {
	case !t.Accepted:
		return text + ": the guarded resource rejected that write"
	case t.Fenced:
		return text + ": the guarded resource accepted that write although it checks tokens"
	}
	return text + ": fencing would have rejected that write"
}

// endingA says how the first hold ended, where that explains something.
func (p *pair) endingA() string {
	switch {
	case p.a.lost():
		return ", when it learned of the loss,"
	case p.a.End == checker.Crashed:
		return ", when it crashed,"
	}
	return ""
}

// nodes names the node that granted a hold, or counts those of a quorum.
func (p *pair) nodes(all []history.Sample) string {
	w := &p.r.witness
	switch {
	case len(p.r.Manifest.Nodes) == 1:
		return w.name(p.r.Manifest.Nodes[0].Name)
	case len(all) == 0 && len(p.r.Samples) == 0:
		return "an unknown node (nodes were not sampled)"
	case len(all) == 0:
		return "an unknown node (no sample shows the grant)"
	case p.r.Manifest.Topology.Kind == cluster.Quorum:
		names := make([]string, len(all))
		for i, s := range all {
			names[i] = s.Node
		}
		text := fmt.Sprintf("%d of %s (%s)", len(all), format.Count(len(w.nodes), "node"), strings.Join(names, ", "))
		if len(all) < len(w.nodes)/2+1 { // a majority granted it, but not all were sampled in time
			return "a majority, seen on " + text
		}
		return text
	}
	return w.name(w.granter(all))
}

// relative is a time difference: "14 ms later".
func relative(d time.Duration) string {
	if d < 0 {
		return format.Duration(-d) + " earlier"
	}
	return format.Duration(d) + " later"
}

// faultVerb is what a fault does to its target, in the passive voice.
func faultVerb(fault string) string {
	switch fault {
	case "kill":
		return "was killed"
	case "client-crash":
		return "crashed"
	case "pause-client", "pause-node":
		return "was paused"
	case "replication-hold":
		return "had its replication held back"
	case "restart":
		return "was restarted"
	case "power-loss":
		return "lost power"
	case "partition", "isolate":
		return "was cut off"
	case "failover":
		return "was failed over"
	}
	return "was hit by fault " + quote(fault)
}
