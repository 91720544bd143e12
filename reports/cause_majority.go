package reports

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Causes that lie with a majority, of the masters of a quorum or of the members of an ensemble, that granted the lock
// although another majority had granted it before.

func forgottenMajorityMechanism() mechanism {
	return mechanism{name: "forgotten-by-majority", find: findForgottenMajority,
		advice: []adviceItem{{
			Text: "A master must not come back without its grants: `appendonly yes` with `appendfsync always`.",
			Cost: "an fsync for each grant, renewal and release on every master",
		}, {
			Text: "Or keep a restarted master away from clients for longer than the longest lease.",
			Cost: "one master fewer meanwhile",
		}}}
}

func aheadMajorityMechanism() mechanism {
	return mechanism{name: "clock-in-majority", find: findAheadMajority,
		advice: []adviceItem{{
			Text: "Two majorities may share only one master, so one wrong clock is enough: slew clocks " +
				"(`chronyd`, `ntpd -x`) and never step them while locks are held.",
			Cost: "a clock that is far off takes a long time to correct",
		}, {
			Text: "Or require one grant more than a majority: a single wrong clock then does not decide.",
			Cost: "of five masters only one may be down, instead of two",
		}}}
}

func forgottenEnsembleMechanism() mechanism {
	return mechanism{name: "forgotten-by-ensemble", find: findForgottenEnsemble,
		advice: []adviceItem{{
			Text: "The ensemble keeps only what a majority has on disk. Replace disks one member at a time, and wait until " +
				"each has copied the leader's data before replacing the next.",
			Cost: "maintenance takes as many steps as there are members",
		}, {
			Text: "After the loss of a majority of the disks, block clients for as long as the longest session timeout or " +
				"lease, so that every hold that was granted before has expired.",
			Cost: "no lock is granted meanwhile",
		}}}
}

// unsyncedAdvice is that against a power loss, which costs a member only what it had not synced.
func unsyncedAdvice() []adviceItem {
	return []adviceItem{{
		Text: "Acknowledge a write only when a majority has it on disk: ZooKeeper's `forceSync=yes`, etcd without " +
			"`--unsafe-no-fsync`. Both are the defaults.",
		Cost: "an fsync on a majority of the members for each write",
	}, {
		Text: "Otherwise, after a power loss that hit a majority, block clients for as long as the longest session timeout " +
			"or lease, so that every hold that was granted before has expired.",
		Cost: "no lock is granted meanwhile",
	}}
}

func splitVotesMechanism() mechanism {
	return mechanism{name: "split-votes", find: findSplitVotes, advice: []adviceItem{{
		Text: "Retry after a random delay, several times as long as it takes to ask all masters, so that one client " +
			"asks alone.",
		Cost: "some of the delays are longer than needed",
	}, {
		Text: "Ask all masters in parallel: the shorter an attempt is, the less often two attempts overlap.",
		Cost: "a connection to each master is in use at the same time",
	}}}
}

// findSplitVotes: while a client waited, masters of a quorum kept the key for different clients, for none of them a
// majority.
func findSplitVotes(q *inquiry) *cause {
	if q.p != nil || q.property != checker.WakeUp || !q.r.quorum() {
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
	s := q.s
	c := &cause{text: fmt.Sprintf("the votes for %s were split again and again, at %s first: %s; at %s: %s",
		quote(q.v.Key), s.instant(sampleAt(first[0])), q.votes(first), s.instant(sampleAt(last[0])), q.votes(last)),
		steps: []storyStep{{Time: first[0].Time, Event: -1, weight: 9, Text: "the votes are split: " + q.votes(first)},
			{Time: last[0].Time, Event: -1, weight: 8, Text: "the votes are split again: " + q.votes(last)}}}
	c.text += "; no majority for " + who
	for i := range q.r.faults {
		f := &q.r.faults[i]
		if f.is(delayFaults()...) && len(f.nodes(q.r)) > 0 && len(f.effects) > 0 && f.effectTime() <= q.v.End &&
			f.heal >= q.v.Start {
			c.faults = append(c.faults, f)
			c.text += fmt.Sprintf(" (%s on %s from %s)", quote(f.name), subject(f.target), s.instant(f.took()))
		}
	}
	return c
}

// splits finds, in the time of the violation, when the last samples of the masters show votes for two clients or
// more, and a majority for none: it returns the samples of the first split and of the last, by node, and the number
// of splits. No hold was granted between the first and the last, because samples from before and after a grant look
// split at every handover.
func (q *inquiry) splits() (first, last []*history.Sample, times int) {
	samples := q.r.witness.inOrder(q.v.Start, q.v.End)
	count := func(some []*history.Sample) {
		if f, l, n := q.splitsOf(some); n > times {
			first, last, times = f, l, n
		}
	}
	for i := range q.r.holds { // in order of their grants
		if h := &q.r.holds[i]; q.r.keyName(h.Key) == q.v.Key {
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
	w := &q.r.witness
	latest := map[string]*history.Sample{}
	split := false
	for _, smp := range samples {
		latest[smp.Node] = smp
		was := split
		votes := map[string]int{}
		var all []*history.Sample
		for _, node := range w.nodes {
			if have := latest[node]; have != nil && have.Keys[q.v.Key].Owner != "" && smp.Time-have.Time <= w.gap {
				votes[have.Keys[q.v.Key].Owner]++
				all = append(all, have)
			}
		}
		most := 0
		for _, n := range votes { // order does not matter: the maximum
			most = max(most, n)
		}
		split = len(votes) > 1 && most <= len(w.nodes)/2
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
		if client, ok := q.r.clientOf(smp.Keys[q.v.Key].Owner); ok {
			who = clientName(client)
		}
		parts = append(parts, smp.Node+" for "+who)
	}
	return list(parts)
}

// findForgottenMajority: of the majority that granted the second hold, some nodes
// were restarted or emptied after the first was requested.
func findForgottenMajority(q *inquiry) *cause {
	c, clocks := q.lostMajority()
	if clocks {
		return nil
	}
	return c
}

// findAheadMajority: of the majority that granted the second hold, some nodes that had granted the first had their
// clocks set forward.
func findAheadMajority(q *inquiry) *cause {
	c, clocks := q.lostMajority()
	if !clocks {
		return nil
	}
	return c
}

// lostMajority is the cause that lies with the majority that granted the second hold; clocks: with a clock.
func (q *inquiry) lostMajority() (c *cause, clocks bool) {
	if q.p == nil || !q.r.quorum() || q.p.outlived() {
		return nil, false
	}
	p := q.p
	nodes := format.Texts(p.observedB, func(smp history.Sample) string { return smp.Node })
	slices.Sort(nodes)
	c = &cause{}
	var parts []eventText
	for i := range q.r.faults {
		f := &q.r.faults[i]
		hit := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return !f.on(n) })
		if len(nodes) <= len(q.r.witness.nodes)/2 { // the samples do not show the whole majority
			hit = f.nodes(q.r)
		}
		if len(hit) == 0 || len(f.effects) == 0 || f.inject > p.b.From {
			continue
		}
		ahead := f == q.clockAhead(hit[0])
		if f.effectTime() < p.a.Asked && !(ahead && f.behind() != "") {
			continue
		}
		if !ahead && !f.is(restartFaults()...) && removals()[f.name] == "" {
			continue
		}
		clocks = clocks || ahead
		c.faults = append(c.faults, f)
		parts = append(parts, eventText{f.took().Time, q.forgetting(f)})
	}
	if len(c.faults) == 0 {
		return nil, false
	}
	c.text = q.inOrder(append([]eventText{q.grantText(p.a), q.grantText(p.b)}, parts...))
	return c, clocks
}

// findForgottenEnsemble: a majority of the members lost their disks after the first grant.
func findForgottenEnsemble(q *inquiry) *cause {
	switch {
	case !q.r.byMajority():
		return nil
	case q.p == nil:
		return q.tokenNotNewer(findForgottenEnsemble)
	case q.p.outlived():
		return nil
	}
	p := q.p
	c := &cause{}
	parts := []eventText{q.grantText(p.a), q.grantText(p.b)}
	lost := map[string]bool{}
	for i := range q.r.faults {
		f := &q.r.faults[i]
		if !f.is(restartFaults()...) || len(f.effects) == 0 || f.effectTime() < p.a.From || f.inject > p.b.From {
			continue
		}
		text := q.forgetting(f)
		if f.is("restart-empty", "power-loss") {
			for _, n := range f.nodes(q.r) {
				lost[n] = true
			}
			c.faults = append([]*injection{f}, c.faults...)
		} else {
			c.faults = append(c.faults, f)
		}
		parts = append(parts, eventText{f.took().Time, text})
	}
	if len(lost) <= len(q.r.Manifest.Nodes)/2 {
		return nil
	}
	if !slices.ContainsFunc(c.faults, func(f *injection) bool { return f.is("restart-empty") }) {
		c.rows = unsyncedAdvice()
	}
	c.text = q.inOrder(parts)
	return c
}

// grantText is a grant as part of a sentence.
func (q *inquiry) grantText(h *hold) eventText {
	p, s := q.p, q.s
	text := fmt.Sprintf("%s was granted it at %s%s", clientName(h.Client), s.instant(h.granted()), p.knownBy(s, h))
	if h == p.b {
		text += q.early()
	}
	return eventText{h.From, text}
}

// eventText is a part of a sentence about an instant.
type eventText struct {
	at   time.Duration
	text string
}

// inOrder joins the parts of a sentence in order of time.
func (q *inquiry) inOrder(parts []eventText) string {
	slices.SortStableFunc(parts, func(a, b eventText) int { return cmp.Compare(a.at, b.at) })
	return strings.Join(format.Texts(parts, func(part eventText) string { return part.text }), "; ")
}

// forgetting is what a fault did to the nodes that it hit.
func (q *inquiry) forgetting(f *injection) string {
	if f.is("clock-jump", "clock-drift") {
		return "the clock of " + strings.Replace(q.clockText(f), ", whose clock ", " ", 1) + " (" + quote(f.name) + ")"
	}
	hit := f.nodes(q.r)
	verb := removals()[f.name]
	if verb == "" {
		return list(hit) + " " + q.restarted(f, len(hit))
	}
	return fmt.Sprintf("the key was %s on %s at %s (%s)", verb, list(hit), q.s.instant(f.took()), quote(f.name))
}

// restarted is when a fault ended n nodes, and when they were back, if that was before the second grant: "were killed
// at 0.026 s and were back, empty, at 0.354 s (`restart-empty`)".
func (q *inquiry) restarted(f *injection, n int) string {
	text := fmt.Sprintf("%s at %s", faultVerbs(f.name, n), q.s.instant(f.took()))
	if f.healEvent >= 0 && f.heal <= q.p.b.From && f.heal > f.effectTime() {
		text += fmt.Sprintf(" and %s at %s", f.back(n), q.s.instant(f.healed()))
	}
	return text + " (" + quote(f.name) + q.persistence() + ")" + q.unsynced(f)
}

// unsynced names the fault that delayed the fsyncs of nodes before a power loss; "" if there was none.
func (q *inquiry) unsynced(f *injection) string {
	if !f.is("power-loss") {
		return ""
	}
	lost := f.nodes(q.r)
	for _, slow := range q.r.effectiveFaults(f.effectTime(), f.effectTime(), "slow-disk") {
		if slices.ContainsFunc(slow.nodes(q.r), func(node string) bool { return slices.Contains(lost, node) }) {
			return fmt.Sprintf(" while fsyncs were delayed (%s, since %s)", quote(slow.name), q.s.instant(slow.took()))
		}
	}
	return ""
}
