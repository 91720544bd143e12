package reports

import (
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// The cause that lies with a program that was started again: it uses the names of owners that it used before.

func reusedNameMechanism() mechanism {
	return mechanism{name: "owner-name-reused", find: findReusedName, advice: []adviceItem{{
		Text: "Draw a random id when the process starts, and begin the names of its owners with it. A name made of a host " +
			"name, a process id or a counter can recur after a restart.",
		Cost: "after a crash, the new process waits like any other client until the lease of the dead one has ended",
	}, {
		Text: "Or use a lock that is not reentrant: it refuses an owner that already holds it.",
		Cost: "an owner cannot acquire it again while it holds it",
	}}}
}

// findReusedName: a client was killed while it held the lock, and its next process was granted the same hold,
// because it requested the lock for an owner of the same name.
func findReusedName(q *inquiry) *cause {
	if q.p != nil {
		return nil
	}
	for i := range q.r.faults {
		f := &q.r.faults[i]
		c, client := cluster.ClientNumber(f.target)
		if !client || !f.is("client-restart") || len(f.effects) == 0 {
			continue
		}
		if first, again := q.requestedAgain(c, f); again != nil {
			return q.reusedName(f, first, again)
		}
	}
	return nil
}

// requestedAgain are the acquire that began the hold that a client had when it was killed, and the one by which its
// next process was granted that hold; nil if the violation is not about them.
func (q *inquiry) requestedAgain(client int, killed *injection) (first, again *history.Span) {
	h := q.r.History
	for i := range h.Spans {
		s := &h.Spans[i]
		if (s.Op != history.OpAcquire && s.Op != history.OpTry) || s.Outcome != history.OK ||
			s.Process.Client(h.Clients) != client || q.r.keyName(s.Key) != q.v.Key {
			continue
		}
		if s.Return <= killed.effectTime() {
			first = s
			continue
		}
		if first == nil || s.Owner != first.Owner || s.Key != first.Key || s.Process == first.Process {
			continue
		}
		about := slices.Contains(q.v.Events, int(s.Invoked)) || slices.Contains(q.v.Events, int(s.Ended)) ||
			q.v.Start >= s.Call && slices.Contains(q.v.Owners, q.r.ownerName(s.Owner))
		if about && (q.keptUntil(s) != nil || s.Token != 0 && s.Token == first.Token) {
			return first, s
		}
	}
	return nil, nil
}

// keptUntil is the last sample before an acquire in which a master has the key for its owner; nil if there is none.
func (q *inquiry) keptUntil(s *history.Span) (kept *history.Sample) {
	for _, node := range q.r.witness.nodes {
		samples := q.r.witness.during(node, s.Call-q.r.witness.gap, s.Call)
		if len(samples) == 0 {
			continue
		}
		last := &samples[len(samples)-1]
		if isMaster(*last) && has(last, q.v.Key, q.r.ownerName(s.Owner)) {
			kept = last
		}
	}
	return kept
}

func (q *inquiry) reusedName(f *injection, first, again *history.Span) *cause {
	s := q.s
	withToken := func(x *history.Span) string {
		if x.Token == 0 {
			return ""
		}
		return " with " + s.token(x.Token, eventAt(x.Ended, x.Return))
	}
	who := targetName(f.target)
	text := fmt.Sprintf("%s, granted %s%s at %s, was killed at %s (%s); its new process requested it at %s for an owner "+
		"of the same name, %s, and was granted that hold again at %s%s", who, quote(q.v.Key), withToken(first),
		s.instant(eventAt(first.Ended, first.Return)), s.instant(f.took()), quote(f.name),
		s.instant(eventAt(again.Invoked, again.Call)), quote(q.r.ownerName(again.Owner)),
		s.instant(eventAt(again.Ended, again.Return)), withToken(again))
	c := &cause{faults: []*injection{f}, steps: []storyStep{q.step(int(first.Ended)), q.step(int(again.Ended))}}
	if kept := q.keptUntil(again); kept != nil {
		c.steps = append(c.steps, storyStep{Time: kept.Time, Event: -1, weight: 8,
			Text: fmt.Sprintf("%s still has the key of the killed process", kept.Node)})
	}
	if h := q.r.lastHold(again.Owner, again.Key, again.Return); h != nil {
		if twice := q.countAbove(h); twice != nil {
			count := twice.Keys[q.v.Key].Count
			text += fmt.Sprintf("; %s counted %s holds of it at %s", twice.Node,
				s.add(proofCount, fmt.Sprint(count), sampleAt(twice)), s.instant(sampleAt(twice)))
			c.steps = append(c.steps, storyStep{Time: twice.Time, Event: -1, weight: 8,
				Text: fmt.Sprintf("%s counts %d holds of %s", twice.Node, count, who)})
		}
	}
	c.text = text
	return c
}
