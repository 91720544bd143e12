package cause

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Causes that lie with a majority, of the masters of a quorum or of the members of an ensemble, that granted the lock
// although another majority had granted it before.

// findSplitVotes: while a client waited, masters of a quorum kept the key for different clients, for none of them a
// majority.
func findSplitVotes(q *inquiry) *Cause {
	if q.p != nil || q.property != checker.WakeUp || !q.r.Quorum() {
		return nil
	}
	who, span := q.waited(nil)
	if span == nil {
		return nil
	}
	first, last, times := q.splits()
	if times < 2 { // once may happen to every lock
		return nil
	}
	c := because("the votes for %[2]s were split again and again, at %[3]s first: %[4]s; at %[5]s: %[6]s; no majority "+
		"for %[1]s", who, evidence.Quote(q.v.Key), first[0], q.votes(first), last[0], q.votes(last)).explain(
		seenIn(first[0], 9, "the votes are split: %s", q.votes(first)),
		seenIn(last[0], 8, "the votes are split again: %s", q.votes(last)))
	for f := range evidence.Each(q.r.Faults) {
		if f.DelaysReplies() && len(f.Nodes(q.r)) > 0 && len(f.Effects) > 0 && f.EffectTime() <= q.v.End &&
			f.Heal >= q.v.Start {
			c.blame(f, " (%s on %s from %s)", f, evidence.Subject(f.Target), f.Took())
		}
	}
	return c
}

// splits finds, in the time of the violation, when the last samples of the masters show votes for two clients or
// more, and a majority for none: it returns the samples of the first split and of the last, by node, and the number
// of splits. No hold was granted between the first and the last, because samples from before and after a grant look
// split at every handover.
func (q *inquiry) splits() (first, last []*history.Sample, times int) {
	samples := q.r.Witness.InOrder(q.v.Start, q.v.End)
	count := func(some []*history.Sample) {
		if f, l, n := q.splitsOf(some); n > times {
			first, last, times = f, l, n
		}
	}
	for h := range evidence.Each(q.r.Holds) { // in order of their grants
		if q.about(h.Key) {
			n := sort.Search(len(samples), func(k int) bool { return samples[k].Time >= h.From })
			count(samples[:n])
			samples = samples[n:]
		}
	}
	count(samples)
	return first, last, times
}

// splitsOf are the splits in samples between which nobody was granted the lock.
func (q *inquiry) splitsOf(samples []*history.Sample) (first, last []*history.Sample, times int) {
	w := &q.r.Witness
	latest := map[string]*history.Sample{}
	split := false
	for _, smp := range samples {
		latest[smp.Node] = smp
		was := split
		votes := map[string]int{}
		var all []*history.Sample
		for _, node := range w.Nodes {
			if have := latest[node]; have != nil && have.Keys[q.v.Key].Owner != "" && smp.Time-have.Time <= w.Gap {
				votes[have.Keys[q.v.Key].Owner]++
				all = append(all, have)
			}
		}
		split = len(votes) > 1 && slices.Max(slices.Collect(maps.Values(votes))) <= len(w.Nodes)/2
		if !split {
			continue
		}
		if last = all; first == nil {
			first = all
		}
		if !was {
			times++
		}
	}
	return first, last, times
}

// votes says for whom each node has the key: "n1 had it for client 0, n2 for client 1".
func (q *inquiry) votes(samples []*history.Sample) string {
	var parts []string
	for _, smp := range samples {
		who := "another owner"
		if client, ok := q.r.ClientOf(smp.Keys[q.v.Key].Owner); ok {
			who = evidence.ClientName(client)
		}
		parts = append(parts, smp.Node+" for "+who)
	}
	return evidence.List(parts)
}

// findForgottenMajority: of the majority that granted the second hold, some nodes
// were restarted or emptied after the first was requested.
func findForgottenMajority(q *inquiry) *Cause { return q.lostMajority(false) }

// findAheadMajority: of the majority that granted the second hold, some nodes that had granted the first had their
// clocks set forward.
func findAheadMajority(q *inquiry) *Cause { return q.lostMajority(true) }

// lostMajority is the cause that lies with the majority that granted the second hold; ofClock: with one of its clocks.
func (q *inquiry) lostMajority(ofClock bool) *Cause {
	if q.p == nil || !q.r.Quorum() || q.p.Outlived() {
		return nil
	}
	p := q.p
	nodes := format.Texts(p.ByB.Seen, func(smp history.Sample) string { return smp.Node })
	slices.Sort(nodes)
	c, clocks := new(Cause), false
	var parts []eventText
	for f := range evidence.Each(q.r.Faults) {
		hit := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return !f.On(n) })
		if len(nodes) <= len(q.r.Witness.Nodes)/2 { // the samples do not show the whole majority
			hit = f.Nodes(q.r)
		}
		if len(hit) == 0 || len(f.Effects) == 0 || f.Inject > p.B.From {
			continue
		}
		ahead := f == q.clockAhead(hit[0])
		if f.EffectTime() < p.A.Asked && !(ahead && f.Behind() != "") ||
			!ahead && !f.EndsProcess() && !f.RemovesKeys() {
			continue
		}
		clocks = clocks || ahead
		c.Faults = append(c.Faults, f)
		parts = append(parts, eventText{f.Took().Time, q.forgetting(f)})
	}
	if len(c.Faults) == 0 || clocks != ofClock {
		return nil
	}
	grants := []eventText{q.grantText(p.A), q.grantText(p.B)}
	c.Text = inOrder(slices.Concat(grants, parts)).Text
	c.Proofs = inOrder(slices.Concat(parts, grants)).Proofs // the proofs of the cause first
	return c
}

// findForgottenEnsemble: a majority of the members lost their disks after the first grant.
func findForgottenEnsemble(q *inquiry) *Cause {
	switch {
	case !q.r.ByMajority():
		return nil
	case q.p == nil:
		return q.tokenNotNewer(findForgottenEnsemble)
	case q.p.Outlived():
		return nil
	}
	p := q.p
	c := new(Cause)
	parts := []eventText{q.grantText(p.A), q.grantText(p.B)}
	lost := map[string]bool{}
	for f := range evidence.Each(q.r.Faults) {
		if !f.EndsProcess() || len(f.Effects) == 0 || f.EffectTime() < p.A.From || f.Inject > p.B.From {
			continue
		}
		if f.Class == history.FaultForgets {
			for _, n := range f.Nodes(q.r) {
				lost[n] = true
			}
			c.Faults = append([]*evidence.Fault{f}, c.Faults...)
		} else {
			c.Faults = append(c.Faults, f)
		}
		parts = append(parts, eventText{f.Took().Time, q.forgetting(f)})
	}
	if len(lost) <= len(q.r.Manifest.Nodes)/2 {
		return nil
	}
	if !slices.ContainsFunc(c.Faults, (*evidence.Fault).Empties) {
		c.advisedAs = "forgotten-unsynced"
	}
	c.Sentence = inOrder(parts)
	return c
}

// grantText is a grant as part of a sentence.
func (q *inquiry) grantText(h *evidence.Hold) eventText {
	s := evidence.Say("%s got %s at %s%s", h, h.Object("the lock"), h.GrantedAt(), q.p.KnownBy(h))
	if h == q.p.B {
		s.Add("%s", q.p.Early())
	}
	return eventText{h.From, s}
}

// eventText is a part of a sentence about an instant.
type eventText struct {
	at time.Duration
	evidence.Sentence
}

// inOrder joins the parts of a sentence in order of time. Their proofs stay in the order of parts.
func inOrder(parts []eventText) (s evidence.Sentence) {
	for _, part := range parts {
		s.Proofs = append(s.Proofs, part.Proofs...)
	}
	slices.SortStableFunc(parts, func(a, b eventText) int { return cmp.Compare(a.at, b.at) })
	s.Text = strings.Join(format.Texts(parts, func(part eventText) string { return part.Text }), "; ")
	return s
}

// forgetting is the effect of a fault on the nodes that it hit.
func (q *inquiry) forgetting(f *evidence.Fault) evidence.Sentence {
	if f.Skews() {
		s := f.ClockText()
		s.Text = fmt.Sprintf("the clock of %s (%s)", strings.Replace(s.Text, ", whose clock ", " ", 1), f)
		return s
	}
	hit := f.Nodes(q.r)
	if f.RemovesKeys() {
		return evidence.Say("the key was removed from %s at %s (%s)", evidence.List(hit), f.Took(), f)
	}
	return evidence.Say("%s %s", evidence.List(hit), q.restarted(f, len(hit)))
}

// restarted is when a fault ended n nodes, and when they were up again, if that was before the second grant: "were
// killed at 0.026 s and restarted empty at 0.354 s (`restart-empty`)".
func (q *inquiry) restarted(f *evidence.Fault, n int) evidence.Sentence {
	s := evidence.Say("%s at %s", f.Predicate(n), f.Took())
	if f.HealEvent >= 0 && f.Heal <= q.p.B.From && f.Heal > f.EffectTime() {
		s.Add(" and %s at %s", f.Back(), f.Healed())
	}
	s.Add(" (%s%s)%s", f, q.r.Persistence(), q.unsynced(f))
	return s
}

// unsynced names the fault that delayed the fsyncs of nodes before a power loss; empty if there was none.
func (q *inquiry) unsynced(f *evidence.Fault) evidence.Sentence {
	if f.LosesUnsynced() {
		lost := f.Nodes(q.r)
		for _, slow := range q.r.EffectiveFaults(f.EffectTime(), f.EffectTime(), (*evidence.Fault).DelaysFsyncs) {
			if slices.ContainsFunc(slow.Nodes(q.r), func(node string) bool { return slices.Contains(lost, node) }) {
				return evidence.Say(" while fsyncs were delayed (%s, since %s)", slow, slow.Took())
			}
		}
	}
	return evidence.Sentence{}
}
