package reports

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// sentence says who held what at once, for how long, and why.
func (p *pair) sentence() string {
	if p.cause == byStall {
		return p.stallSentence()
	}
	lead := p.lead()
	var why string
	switch p.cause {
	case byFailover:
		why = p.failoverClause()
	case byRestart:
		why = p.restartClause()
	case byExpiry:
		why = fmt.Sprintf("the lease of %s had ended at %s and it went on until %s%s; %s was granted %s at %s%s",
			clientName(p.a.Client), format.Instant(p.validTill), format.Instant(p.a.to), p.howAEnded(),
			clientName(p.b.Client), p.b.what("the lock"), format.Instant(p.b.From), p.staleClause())
	default:
		why = p.plainClause()
	}
	return lead + ": " + why
}

// lead says who held what at once.
func (p *pair) lead() string {
	if p.a.Permits == 0 {
		return fmt.Sprintf("%s both held %s for %s", p.who(), quote(p.key), format.Duration(p.overlap()))
	}
	limit := p.r.History.Limit(p.a.Key)
	text := fmt.Sprintf("%s held %d and %d of the %d permits of %s",
		p.who(), p.a.Permits, p.b.Permits, limit, quote(p.key))
	if p.a.Permits+p.b.Permits <= limit {
		text += ", and others the rest and more,"
	}
	return text + " for " + format.Duration(p.overlap())
}

// failoverClause: granted by a node that went away, then by the one that took its place.
func (p *pair) failoverClause() string {
	w := &p.r.seen
	var b strings.Builder
	fmt.Fprintf(&b, "%s got it %s", clientName(p.a.Client), p.grantedA())
	if p.hit != nil {
		link := ", which"
		if p.inferred {
			link = "; " + p.ga.node
		}
		fmt.Fprintf(&b, "%s %s %s", link, hitVerb(p.hit.name), after(p.hit.hit()-p.a.From))
	}
	if p.unspread {
		b.WriteString(" before the write was seen on any other node")
	}
	fmt.Fprintf(&b, "; %s", w.name(p.gb.node))
	if p.promoted > 0 {
		fmt.Fprintf(&b, " was seen as master from %s and", format.Instant(p.promoted))
	}
	fmt.Fprintf(&b, " granted it to %s at %s", clientName(p.b.Client), format.Instant(p.b.From))
	return b.String()
}

// grantedA says which node granted the first hold, and how that is known: a
// master that dies within a millisecond of its grant is seldom seen with it.
func (p *pair) grantedA() string {
	if p.inferred {
		return "when " + p.r.seen.name(p.ga.node) + " was the only master seen"
	}
	return "from " + p.nodes(p.seenA)
}

// restartClause: the node that granted it came back and had forgotten.
func (p *pair) restartClause() string {
	w := &p.r.seen
	text := fmt.Sprintf("%s got it %s", clientName(p.a.Client), p.grantedA())
	if p.hit != nil {
		text += fmt.Sprintf("; %s %s %s", p.ga.node, hitVerb(p.hit.name), after(p.hit.hit()-p.a.From))
	} else if t, ok := w.down(p.ga.node, p.a.From, p.b.From); ok {
		text += fmt.Sprintf("; %s did not answer at %s", p.ga.node, format.Instant(t))
	}
	return text + fmt.Sprintf("; %s was granted it at %s by %s",
		clientName(p.b.Client), format.Instant(p.b.From), p.nodes(p.seenB))
}

// plainClause says what is known and what is not.
func (p *pair) plainClause() string {
	text := fmt.Sprintf("%s was granted it at %s by %s, %s at %s by %s",
		clientName(p.a.Client), format.Instant(p.a.From), p.nodes(p.seenA),
		clientName(p.b.Client), format.Instant(p.b.From), p.nodes(p.seenB))
	if p.validTill > p.b.From {
		text += fmt.Sprintf("; %s had been promised the lock until %s", clientName(p.a.Client), format.Instant(p.validTill))
	}
	return text
}

// stallSentence tells of a client that stood still and came back late.
func (p *pair) stallSentence() string {
	a, b := clientName(p.a.Client), clientName(p.b.Client)
	text := fmt.Sprintf("%s stalled%s while it held %s", a, p.stallLength(), quote(p.key))
	if s := &p.r.History.Spans[p.a.Span]; s.Valid > 0 {
		text += fmt.Sprintf(" with a promise of %s", format.Duration(s.Valid-s.Return))
	}
	text += fmt.Sprintf("; the promise ended at %s, %s was granted %s at %s%s",
		format.Instant(p.validTill), b, p.b.what("the lock"), format.Instant(p.b.From), p.staleClause())
	if p.stale == nil {
		text += fmt.Sprintf(", and %s still held %s, as it believed, until %s", a, p.a.what("it"), format.Instant(p.a.to))
	}
	return text
}

func (p *pair) stallLength() string {
	if p.hit.heal <= p.r.History.End {
		return " for " + format.Duration(p.hit.heal-p.hit.inject)
	}
	return ""
}

// staleClause tells of the late write, if there was one, and what fencing did or would have done.
func (p *pair) staleClause() string {
	t := p.stale
	if t == nil {
		return ""
	}
	text := fmt.Sprintf(", and %s wrote at %s", clientName(p.a.Client), format.Instant(t.Time))
	if t.Token == 0 {
		return text + " without a token: the lock mints none, so nothing could have refused that write"
	}
	if t.MaxSeen <= t.Token {
		return text + fmt.Sprintf(" with token %d, before a newer one had been seen", t.Token)
	}
	text += fmt.Sprintf(" with token %d after token %d had been seen", t.Token, t.MaxSeen)
	switch {
	case !t.Accepted:
		return text + ": the guarded resource refused that write"
	case t.Fenced:
		return text + ": the guarded resource took that write although it fences"
	}
	return text + ": fencing would have refused that write"
}

// howAEnded says how the first holder left, where that explains something.
func (p *pair) howAEnded() string {
	switch p.a.End {
	case checker.LossReported, checker.RenewalRefused:
		return ", when it was told of the loss"
	case checker.Crashed:
		return ", when it crashed"
	}
	return ""
}

// nodes names who was seen with an owner; a quorum is counted.
func (p *pair) nodes(all []sighting) string {
	w := &p.r.seen
	switch {
	case len(all) == 0 && len(p.r.Witness) == 0:
		return "a node that nobody watched"
	case len(all) == 0:
		return "a node on which it was not seen"
	case p.r.Manifest.Topology.Kind == cluster.Quorum:
		var names []string
		for _, s := range all {
			names = append(names, s.node)
		}
		text := fmt.Sprintf("%d of %d nodes (%s)", len(all), len(w.nodes), strings.Join(names, ", "))
		if len(all) < len(w.nodes)/2+1 { // more of them granted it than were looked at in time
			return "a majority, seen on " + text
		}
		return text
	}
	return w.name(w.granter(all).node)
}

// after puts a distance in time into words.
func after(d time.Duration) string {
	if d < 0 {
		return format.Duration(-d) + " earlier"
	}
	return format.Duration(d) + " later"
}

// hitVerb is what a fault does to its target, in the passive voice; a fault
// that this table does not know is called by its name.
func hitVerb(fault string) string {
	switch fault {
	case "kill":
		return "was killed"
	case "pause-client", "pause-node":
		return "was stopped"
	case "replication-hold":
		return "had its replication held back"
	case "restart":
		return "was restarted"
	case "power-loss":
		return "lost power"
	case "partition", "isolate":
		return "was cut off"
	case "failover":
		return "was asked to hand over"
	}
	return "was hit by " + quote(fault)
}
