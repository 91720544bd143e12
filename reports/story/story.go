// Package story describes a run in words: the reason for its verdict, the steps from cause to effect, numbers, and
// advice. It makes only claims that the data shows.
package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/clientfailures"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

func newStory(r *evidence.Run, e explanation) evidence.Story {
	s := evidence.Story{Repeat: r.Manifest.Repeat}
	switch {
	case !r.Judged:
		s.Sentence = "this run has not been judged"
	case r.Judgement.Verdict == checker.NotRun:
		s.Sentence = format.Capitalize(r.Judgement.Sentence)
		return s
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
func fillUnsafe(r *evidence.Run, e explanation, s *evidence.Story) {
	v, p, c := e.v, e.p, e.c
	if v == nil {
		s.Sentence = r.Judgement.Sentence
		return
	}
	head := headline(c, p)
	s.Sentence, s.Proofs = head.Text, head.Proofs
	s.Cause, s.Advice = c.Name, advise(c, r, v, p)
	if p != nil {
		s.Steps = stepsOfPair(p, c, head)
	} else {
		s.Steps = eventSteps(r, v, c)
	}
	if rest, ok := strings.CutPrefix(s.Sentence, v.Key+" "); ok && v.Key != "" {
		s.Sentence = evidence.Quote(v.Key) + " " + rest // or the name would be capitalized
	}
	if s.Sentence == "" {
		s.Sentence = r.Judgement.Sentence
	}
}

// inconclusiveSentence lists the undecided properties.
func inconclusiveSentence(r *evidence.Run) string {
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
func safeSentence(r *evidence.Run) string {
	var parts []string
	if effects := faultsSentence(r); effects != "" {
		parts = append(parts, effects)
	}
	parts = append(parts, grants(r)...)
	if free := evidence.LongestFree(r); free.Length() > 0 {
		parts = append(parts, fmt.Sprintf("a client waited for at most %s while no client %s the lock",
			format.Duration(free.Length()), wasHeld(r)))
	}
	if len(parts) == 0 {
		return r.Judgement.Sentence
	}
	return strings.Join(parts, "; ")
}

// wasHeld is the verb of claims about holders: an acquire of unknown outcome may have held the lock unseen.
func wasHeld(r *evidence.Run) string {
	if len(r.Unanswered) > 0 {
		return "was known to hold"
	}
	return "held"
}

// grants counts the grants, and states the findings for each kind: owners of permits, and readers, may hold a lock at
// once.
func grants(r *evidence.Run) (parts []string) {
	alone, permits, readers := 0, 0, false
	for i := range r.Holds {
		if r.Holds[i].Permits > 0 {
			permits++
			continue
		}
		alone++
		readers = readers || r.Holds[i].Reader
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
func faultsSentence(r *evidence.Run) string {
	var names []string
	effective := map[string][]*evidence.Fault{}
	for f := range evidence.Each(r.Faults) {
		if len(f.Effects) == 0 {
			continue
		}
		if effective[f.Name] == nil {
			names = append(names, f.Name)
		}
		effective[f.Name] = append(effective[f.Name], f)
	}
	return strings.Join(format.Texts(names, func(name string) string {
		return faultSentence(r, name, effective[name])
	}), "; ")
}

func faultSentence(r *evidence.Run, name string, injections []*evidence.Fault) string {
	if injections[0].Unplanned {
		return stallSentence(injections)
	}
	held, kept := 0, 0
	targets := map[string]bool{}
	for _, f := range injections {
		switch { // the hold of a killed client ends before the effect is observed
		case heldAt(r, f.Inject) || heldAt(r, f.EffectTime()):
			held++
		case keptAt(r, f.Inject):
			kept++
		}
		for target := range strings.SplitSeq(f.Target, "+") {
			targets[target] = true
		}
	}
	text := fmt.Sprintf("%s took effect %s", evidence.Quote(name), format.Count(len(injections), "time"))
	if len(injections) == 1 {
		text = fmt.Sprintf("%s took effect once", evidence.Quote(name))
	}
	if nodes := len(r.Manifest.Nodes); nodes > 1 && r.AreNodes(targets) {
		text = fmt.Sprintf("%s hit %d of %s", evidence.Quote(name), len(targets), format.Count(nodes, "node"))
	}
	switch {
	case held == len(injections):
		return text + " while the lock was held"
	case held+kept == 0:
		return text + ", never while the lock was held"
	case held+kept == len(injections):
		return text + " while a server stored the lock"
	}
	held += kept
	return fmt.Sprintf("%s, %d of %d times while the lock was held", text, held, len(injections))
}

// heldAt reports whether any lock was held at t.
func heldAt(r *evidence.Run, t time.Duration) bool {
	return slices.ContainsFunc(r.Holds, func(h evidence.Hold) bool { return h.From <= t && t <= h.To })
}

// keptAt reports whether, in the last samples before t, a server had any lock: while it is being granted, or after its
// client has stopped relying on it.
func keptAt(r *evidence.Run, t time.Duration) bool {
	return slices.ContainsFunc(r.Witness.Nodes, func(node string) bool {
		last := r.Witness.Latest(node, t)
		return last != nil && len(last.Keys) > 0
	})
}

// facts are the numbers that every format shows.
func facts(r *evidence.Run) []string {
	h := r.History
	all := []string{granted(r) + " in " + format.Duration(h.End)}
	all = append(all, crashes(r)...)
	unknown := evidence.AllOf(h.Spans, func(s *history.Span) bool { return s.Outcome == history.Info })
	if n := len(unknown); n > 0 {
		all = append(all, format.Count(n, "operation")+" of unknown outcome (not counted as refused)")
	}
	if t := r.Tally(); t.Injected+t.Missed > 0 {
		text := fmt.Sprintf("%s of %s took effect", format.Number(t.Effective), format.Count(t.Injected+t.Missed, "fault"))
		if t.Missed > 0 {
			text += fmt.Sprintf(", %s never injected", format.Number(t.Missed))
		}
		all = append(all, text)
	}
	if why := r.Unsampled(); why != "" && len(r.Samples) > 0 {
		all = append(all, "locks at the servers were not sampled: "+why)
	}
	if r.Sampling != nil && r.Sampling.Wide() {
		all = append(all, fmt.Sprintf("near a fault, a node was not sampled for %s: shorter changes may have been missed",
			format.Duration(r.Sampling.NearFaults)))
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
func granted(r *evidence.Run) string {
	clients := r.PerClient()
	n := len(evidence.AllOf(clients, func(c *evidence.ClientStats) bool { return c.Grants > 0 }))
	text := format.Count(len(r.Holds), "grant") + " to "
	if n < len(clients) {
		text += format.Number(n) + " of "
	}
	return text + format.Count(len(clients), "client")
}

// crashes are the ends of client processes: killed by a fault, and the others. Notes about clients follow.
func crashes(r *evidence.Run) []string {
	reason := map[int32]string{}
	for _, exit := range r.History.Exits {
		reason[exit.Index] = exit.Code
	}
	var all []string
	for _, n := range r.History.Notices {
		if n.F != history.Crash || reason[n.Index] == history.CodeExited || reason[n.Index] == history.CodeProtocol {
			continue
		}
		client := r.ClientIn(n.Process)
		how := "exited unexpectedly at " + format.Instant(n.Time)
		if reason[n.Index] == history.CodeKilled {
			how = "was killed at " + format.Instant(n.Time)
		}
		for f := range evidence.Each(r.Faults) {
			if f.EndsProcess() && f.On(cluster.ClientName(client)) && f.Inject <= n.Time {
				how = fmt.Sprintf("was killed at %s (%s)", format.Instant(f.EffectTime()), f.Name)
			}
		}
		all = append(all, evidence.ClientName(client)+" "+how)
	}
	for _, n := range r.Notes {
		switch n.Name {
		case history.SourceIgnored, history.ProcessLeft:
			all = append(all, n.Detail)
		}
	}
	return append(all, clientfailures.Describe(r.History)...)
}

// stallSentence says who did not run although no fault was the reason.
func stallSentence(stalls []*evidence.Fault) string {
	longest := slices.MaxFunc(stalls, func(a, b *evidence.Fault) int {
		return cmp.Compare(a.Heal-a.Inject, b.Heal-b.Inject)
	})
	text := fmt.Sprintf("%s %s for %s, and no fault was the reason", evidence.Subject(longest.Target), longest.Verb,
		format.Duration(longest.Heal-longest.Inject))
	if n := len(stalls) - 1; n > 0 {
		text += fmt.Sprintf(" (and %s)", format.Count(n, "shorter stall"))
	}
	return text
}

// staleWrites counts the writes with a token smaller than one seen before, and how many were rejected.
func staleWrites(h *history.History) (stale, rejected int) {
	old := func(t *history.Touched) bool { return t.Token != 0 && t.Token < t.MaxSeen }
	refused := evidence.AllOf(h.Touches, func(t *history.Touched) bool { return old(t) && !t.Accepted })
	return len(evidence.AllOf(h.Touches, old)), len(refused)
}
