package reports

import (
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
)

// advise lists what would have prevented the violation: the advice of its cause,
// and fencing where the violation is an overlap of exclusive holds.
func (c *cause) advise(r *Run, v *checker.Violation, p *pair) []adviceItem {
	all := append(measured(r), c.advice...)
	if p == nil || p.a.Permits > 0 {
		return all // fencing prevents neither missed wake-ups nor leaks, and permits have no order
	}
	if p.a.Token > 0 && p.b.Token > 0 && p.b.Token <= p.a.Token {
		text := fmt.Sprintf("Fencing with this lock's tokens would not have helped: token %d was granted after token %d.",
			p.b.Token, p.a.Token)
		switch {
		case r.ensemble():
			text += " Its tokens are zxids, and zxids start over when a majority has lost its disks."
		case p.granterA != p.granterB || c.name == forgottenInRestart:
			text += " Its counter is stored beside the lock and is lost with it" + p.clockOfTokens() +
				"; fencing needs a counter that survives."
		}
		return append(all, adviceItem{Measured: true, Text: text})
	}
	return append(all, p.fencingAdvice(v.Class)...)
}

// clockOfTokens says that the clock of the node that issued the second token was behind. A lock that begins its
// counter at the clock of the server issues a smaller token then.
func (p *pair) clockOfTokens() string {
	for f := range each(p.r.faults) {
		if by := f.behind(); by != "" && f.on(p.granterB) && f.effective(p.b.Asked, p.b.From) {
			return fmt.Sprintf(", and the clock of %s was %s behind (%s)", p.granterB, by, quote(f.name))
		}
	}
	return ""
}

// measured is what the twin of the scenario did with the same seed: what would have prevented the violation, as a fact.
// A twin that is not safe with this seed proves nothing.
func measured(r *Run) []adviceItem {
	t := r.Manifest.Twin
	if t == nil || t.Verdict != checker.Safe {
		return nil
	}
	what := fmt.Sprintf("scenario %s (%s)", quote(t.Scenario), t.Summary)
	if len(t.Set) > 0 {
		what = "the same scenario with " + quote(strings.Join(t.Set, ", "))
	}
	return []adviceItem{{Measured: true, Text: fmt.Sprintf("In simulation with seed %d, %s was %s: %s.", t.Seed, what,
		t.Verdict, strings.TrimSuffix(t.Sentence, "."))}}
}

// fencingAdvice says which writes fencing rejected, would have rejected, or could not have.
func (p *pair) fencingAdvice(class checker.Class) []adviceItem {
	r := p.r
	stale, rejected := staleWrites(r.History)
	switch {
	case stale > 0 && rejected == stale:
		return []adviceItem{{Measured: true, Text: fmt.Sprintf("The guarded resource checked tokens and rejected %s with a "+
			"smaller token than one already seen.", format.Count(stale, "write"))}}
	case stale > 0:
		text := "; the resource of this run rejected none"
		if rejected > 0 {
			text = fmt.Sprintf("; that of this run rejected %s of them", format.Number(rejected))
		}
		return []adviceItem{{Measured: true, Text: fmt.Sprintf("Fencing: a resource that rejects tokens smaller than one "+
			"already seen would have rejected %s of this run%s.", format.Count(stale, "write"), text)}}
	case class == "": // not an overlap, such as a waiter that was never woken
		return nil
	case !r.issuesTokens():
		return []adviceItem{{Text: "Fencing: this lock issues no token. A guarded resource that checks a number which " +
			"grows with every grant rejects late writes, whatever the client believes.",
			Cost: "the resource has to store and compare the token of every write"}}
	}
	text := "Fencing: this lock issues tokens; the guarded resource must reject tokens smaller than one already seen. "
	if w := p.stale; w != nil && w.Accepted {
		text += fmt.Sprintf("In this run that would have rejected nothing: %s wrote at %s, before the resource had seen a "+
			"greater token.", clientName(p.a.Client), format.Instant(w.Time))
	} else {
		text += "In this run no late write reached it."
	}
	return []adviceItem{{Text: text,
		Cost: "the resource has to store and compare the token of every write"}}
}
