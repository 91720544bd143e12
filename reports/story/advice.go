package story

import (
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/cause"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
)

// advise lists ways to prevent the violation: the advice of its cause, and fencing where the violation is an overlap of
// exclusive holds.
func advise(c *cause.Cause, r *evidence.Run, v *checker.Violation, p *overlap.Pair) []evidence.Advice {
	all := append(measured(r), c.Advice()...)
	if p == nil || p.A.Permits > 0 {
		return all // fencing prevents neither missed wake-ups nor leaks, and permits have no order
	}
	if p.A.Token > 0 && p.B.Token > 0 && p.B.Token <= p.A.Token {
		text := fmt.Sprintf("Fencing with this lock's tokens would not have helped: token %d was granted after token %d.",
			p.B.Token, p.A.Token)
		switch {
		case r.Ensemble():
			text += " Its tokens are zxids, and zxids start over when a majority has lost its disks."
		case p.ByA.Node != p.ByB.Node || c.Name == cause.ForgottenInRestart:
			text += " Its counter is stored beside the lock and is lost with it" + clockOfTokens(p) +
				"; fencing needs a counter that survives."
		}
		return append(all, evidence.Advice{Measured: true, Text: text})
	}
	return append(all, fencingAdvice(p, v.Class)...)
}

// clockOfTokens says that the clock of the node that issued the second token was behind. A lock that begins its
// counter at the clock of the server issues a smaller token then.
func clockOfTokens(p *overlap.Pair) string {
	for f := range evidence.Each(p.R.Faults) {
		if by := f.Behind(); by != "" && f.On(p.ByB.Node) && f.Effective(p.B.Asked, p.B.From) {
			return fmt.Sprintf(", and the clock of %s was %s behind (%s)", p.ByB.Node, by, evidence.Quote(f.Name))
		}
	}
	return ""
}

// measured is the result of the scenario's twin with the same seed: a fact about how to prevent the violation. A twin
// that is not safe with this seed proves nothing.
func measured(r *evidence.Run) []evidence.Advice {
	t := r.Manifest.Twin
	if t == nil || t.Verdict != checker.Safe {
		return nil
	}
	what := fmt.Sprintf("scenario %s (%s)", evidence.Quote(t.Scenario), t.Summary)
	if len(t.Set) > 0 {
		what = "the same scenario with " + evidence.Quote(strings.Join(t.Set, ", "))
	}
	return []evidence.Advice{{Measured: true, Text: fmt.Sprintf("In simulation with seed %d, %s was %s: %s.", t.Seed, what,
		t.Verdict, strings.TrimSuffix(t.Sentence, "."))}}
}

// fencingAdvice says which writes fencing rejected, would have rejected, or could not have.
func fencingAdvice(p *overlap.Pair, class checker.Class) []evidence.Advice {
	r := p.R
	stale, rejected := staleWrites(r.History)
	switch {
	case stale > 0 && rejected == stale:
		return []evidence.Advice{{Measured: true,
			Text: fmt.Sprintf("The guarded resource checked tokens and rejected %s with a "+
				"smaller token than one already seen.", format.Count(stale, "write"))}}
	case stale > 0:
		text := "; the resource of this run rejected none"
		if rejected > 0 {
			text = fmt.Sprintf("; that of this run rejected %s of them", format.Number(rejected))
		}
		return []evidence.Advice{{Measured: true,
			Text: fmt.Sprintf("Fencing: a resource that rejects tokens smaller than one "+
				"already seen would have rejected %s of this run%s.", format.Count(stale, "write"), text)}}
	case class == "": // not an overlap, such as a waiter that was never woken
		return nil
	case !r.IssuesTokens():
		return []evidence.Advice{{Text: "Fencing: this lock issues no token. A guarded resource that checks a number which " +
			"grows with every grant rejects late writes, whatever the client believes.",
			Cost: "the resource has to store and compare the token of every write"}}
	}
	text := "Fencing: this lock issues tokens; the guarded resource must reject tokens smaller than one already seen. "
	if w := p.Stale; w != nil && w.Accepted {
		text += fmt.Sprintf("In this run that would have rejected nothing: %s wrote at %s, before the resource had seen a "+
			"greater token.", evidence.ClientName(p.A.Client), format.Instant(w.Time))
	} else {
		text += "In this run no late write reached it."
	}
	return []evidence.Advice{{Text: text,
		Cost: "the resource has to store and compare the token of every write"}}
}
