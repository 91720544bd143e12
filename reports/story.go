package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

func newStory(r *Run, e explanation) story {
	s := story{Repeat: r.Manifest.Repeat}
	switch {
	case !r.Judged:
		s.Sentence = "this run has not been judged"
	case r.Judgement.Verdict == checker.Unsafe:
		fillUnsafe(r, e, &s)
	case r.Judgement.Verdict == checker.Inconclusive:
		s.Sentence = inconclusiveSentence(r)
	default:
		s.Sentence = safeSentence(r)
	}
	if len(s.Steps) == 0 {
		s.Steps = faultSteps(r)
	}
	s.Sentence = format.Capitalize(s.Sentence)
	s.Facts = facts(r)
	return s
}

// fillUnsafe writes the story of the violation that the page explains.
func fillUnsafe(r *Run, e explanation, s *story) {
	v, p, c := e.v, e.p, e.c
	if v == nil {
		s.Sentence = r.Judgement.Sentence
		return
	}
	headline := c.headline(p)
	s.Sentence, s.Proofs = headline.text, headline.proofs
	s.Cause, s.Advice = c.name, c.advise(r, v, p)
	if p != nil {
		s.Steps = p.steps(c, headline)
	} else {
		s.Steps = eventSteps(r, v, c)
	}
	if rest, ok := strings.CutPrefix(s.Sentence, v.Key+" "); ok && v.Key != "" {
		s.Sentence = quote(v.Key) + " " + rest // or the name would be capitalized
	}
	if s.Sentence == "" {
		s.Sentence = r.Judgement.Sentence
	}
}

// inconclusiveSentence lists what could not be decided.
func inconclusiveSentence(r *Run) string {
	var reasons []string
	for _, res := range r.Judgement.Results {
		summary := strings.TrimSuffix(res.Summary, ".")
		switch open := res.Outcome == checker.Undecided; {
		case summary == "":
		case res.Property == checker.Exercised && (open || res.Outcome == checker.Violated):
			reasons = append(reasons, summary) // about the run, and not about a property of the lock
		case open:
			reasons = append(reasons, fmt.Sprintf("%s: %s", res.Property, summary))
		}
	}
	switch {
	case len(reasons) == 0:
		return r.Judgement.Sentence
	case len(reasons) == 1 && strings.HasPrefix(reasons[0], "the run "):
		return "no violation was found, but " + reasons[0]
	}
	return "no violation was found, but the run is inconclusive: " + strings.Join(reasons, "; ")
}

// safeSentence lists the faults and the grants of a safe run.
func safeSentence(r *Run) string {
	var parts []string
	if effects := faultsSentence(r); effects != "" {
		parts = append(parts, effects)
	}
	parts = append(parts, r.grants()...)
	if free := longestFree(r); free.length() > 0 {
		parts = append(parts, fmt.Sprintf("a client waited for at most %s while no client %s the lock",
			format.Duration(free.length()), r.wasHeld()))
	}
	if len(parts) == 0 {
		return r.Judgement.Sentence
	}
	return strings.Join(parts, "; ")
}

// wasHeld is the verb of what is claimed of holders: an acquire of unknown outcome may have held the lock unseen.
func (r *Run) wasHeld() string {
	if len(r.unanswered) > 0 {
		return "was known to hold"
	}
	return "held"
}

// grants counts the grants, and says of each kind what was found to hold: owners of permits, and readers, may hold a
// lock at once.
func (r *Run) grants() (parts []string) {
	alone, permits, readers := 0, 0, false
	for i := range r.holds {
		if r.holds[i].Permits > 0 {
			permits++
			continue
		}
		alone++
		readers = readers || r.holds[i].Reader
	}
	kept := func(p checker.Property) *checker.Result {
		if x := r.Judgement.Result(p); x != nil && x.Outcome == checker.Holds {
			return x
		}
		return nil
	}
	if alone > 0 {
		text := format.Count(alone, "grant")
		if kept(checker.Exclusion) != nil {
			text += " without overlap"
			if readers {
				text += " of a writer with another client"
			}
		}
		parts = append(parts, text)
	}
	if permits > 0 {
		text := format.Count(permits, "grant") + " of permits"
		if x := kept(checker.Permits); x != nil {
			text += fmt.Sprintf(", at most %s held at once, not more than exist", format.Count(x.Counts["most_held"], "permit"))
		}
		parts = append(parts, text)
	}
	return parts
}

// faultsSentence says which faults took effect where, and whether the lock was held then.
func faultsSentence(r *Run) string {
	var names []string
	effective := map[string][]*injection{}
	for f := range each(r.faults) {
		if len(f.effects) == 0 {
			continue
		}
		if effective[f.name] == nil {
			names = append(names, f.name)
		}
		effective[f.name] = append(effective[f.name], f)
	}
	return strings.Join(format.Texts(names, func(name string) string {
		return faultSentence(r, name, effective[name])
	}), "; ")
}

func faultSentence(r *Run, name string, injections []*injection) string {
	held, kept := 0, 0
	targets := map[string]bool{}
	for _, f := range injections {
		switch { // the hold of a killed client ends before the effect is observed
		case r.heldAt(f.inject) || r.heldAt(f.effectTime()):
			held++
		case r.keptAt(f.inject):
			kept++
		}
		for target := range strings.SplitSeq(f.target, "+") {
			targets[target] = true
		}
	}
	text := fmt.Sprintf("%s took effect %s", quote(name), format.Count(len(injections), "time"))
	if len(injections) == 1 {
		text = fmt.Sprintf("%s took effect once", quote(name))
	}
	if nodes := len(r.Manifest.Nodes); nodes > 1 && r.areNodes(targets) {
		text = fmt.Sprintf("%s hit %d of %s", quote(name), len(targets), format.Count(nodes, "node"))
	}
	switch {
	case held == len(injections):
		return text + " while the lock was held"
	case held+kept == 0:
		return text + ", never while the lock was held"
	case held+kept == len(injections):
		return text + " while a server kept the lock"
	}
	held += kept
	return fmt.Sprintf("%s, %d of %d times while the lock was held", text, held, len(injections))
}

// heldAt reports whether any lock was held at t.
func (r *Run) heldAt(t time.Duration) bool {
	return slices.ContainsFunc(r.holds, func(h hold) bool { return h.From <= t && t <= h.to })
}

// keptAt reports whether, in the last samples before t, a server had any lock: one that is being granted, or one that
// its client no longer relies on.
func (r *Run) keptAt(t time.Duration) bool {
	return slices.ContainsFunc(r.witness.nodes, func(node string) bool {
		last := r.witness.latest(node, t)
		return last != nil && len(last.Keys) > 0
	})
}

// facts are the numbers that every format shows.
func facts(r *Run) []string {
	h := r.History
	all := []string{r.granted() + " in " + format.Duration(h.End)}
	all = append(all, r.crashes()...)
	unknown := allOf(h.Spans, func(s *history.Span) bool { return s.Outcome == history.Info })
	if n := len(unknown); n > 0 {
		all = append(all, format.Count(n, "operation")+" of unknown outcome (not counted as refused)")
	}
	if t := r.tally(); t.Injected+t.Missed > 0 {
		text := fmt.Sprintf("%s of %s took effect", format.Number(t.Effective), format.Count(t.Injected+t.Missed, "fault"))
		if t.Missed > 0 {
			text += fmt.Sprintf(", %s never injected", format.Number(t.Missed))
		}
		all = append(all, text)
	}
	if r.sampling != nil && r.sampling.wide() {
		all = append(all, fmt.Sprintf("near a fault, a node was not sampled for %s; shorter states may have been missed",
			format.Duration(r.sampling.NearFaults)))
	}
	if stale, rejected := staleWrites(h); stale > 0 {
		all = append(all, fmt.Sprintf("%s with a smaller token than one already seen reached the guarded resource, "+
			"%s rejected", format.Count(stale, "write"), format.Number(rejected)))
	}
	if n := len(h.Problems); n > 0 {
		all = append(all, format.Count(n, "problem")+" in the recorded history")
	}
	return all
}

// granted counts grants and the clients that had them: "9 grants to 1 of 4 clients".
func (r *Run) granted() string {
	clients := r.perClient()
	n := len(allOf(clients, func(c *clientStats) bool { return c.Grants > 0 }))
	text := format.Count(len(r.holds), "grant") + " to "
	if n < len(clients) {
		text += format.Number(n) + " of "
	}
	return text + format.Count(len(clients), "client")
}

// crashes are the ends of client processes: those that a fault killed, and the others. What was noticed about clients
// follows.
func (r *Run) crashes() []string {
	reason := map[int32]string{}
	for _, exit := range r.History.Exits {
		reason[exit.Index] = exit.Code
	}
	var all []string
	for _, n := range r.History.Notices {
		if n.F != history.Crash || reason[n.Index] == history.CodeExited || reason[n.Index] == history.CodeProtocol {
			continue
		}
		client := r.clientIn(n.Process)
		how := "exited unexpectedly at " + format.Instant(n.Time)
		if reason[n.Index] == history.CodeKilled {
			how = "was killed at " + format.Instant(n.Time)
		}
		for f := range each(r.faults) {
			if f.endsProcess() && f.on(cluster.ClientName(client)) && f.inject <= n.Time {
				how = fmt.Sprintf("was killed at %s (%s)", format.Instant(f.effectTime()), f.name)
			}
		}
		all = append(all, clientName(client)+" "+how)
	}
	for _, n := range r.notes {
		switch n.Name {
		case history.SourceIgnored, history.ProcessLeft, history.NoPassword:
			all = append(all, n.Detail)
		}
	}
	return append(all, checker.Unanswered(r.History)...)
}

// staleWrites counts the writes with a token smaller than one seen before, and how many were rejected.
func staleWrites(h *history.History) (stale, rejected int) {
	old := func(t *history.Touched) bool { return t.Token != 0 && t.Token < t.MaxSeen }
	refused := allOf(h.Touches, func(t *history.Touched) bool { return old(t) && !t.Accepted })
	return len(allOf(h.Touches, old)), len(refused)
}
