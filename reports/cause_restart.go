package reports

import (
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// The cause that lies with a program that was started again: it uses the names of owners that it used before.

// findReusedName: a client was killed while it held the lock, and its next process was granted the same hold,
// because it requested the lock for an owner of the same name.
func findReusedName(q *inquiry) *cause {
	if q.p != nil {
		return nil
	}
	for f := range each(q.r.faults) {
		c, client := cluster.ClientNumber(f.target)
		if !client || !f.startsAgain() || len(f.effects) == 0 {
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
	for s := range each(q.r.History.Spans) {
		if !taking(s) || s.Outcome != history.OK || q.r.clientIn(s.Process) != client || !q.about(s.Key) {
			continue
		}
		if s.Return <= killed.effectTime() {
			first = s
			continue
		}
		if first == nil || s.Owner != first.Owner || s.Key != first.Key || s.Process == first.Process {
			continue
		}
		about := q.cites(s.Invoked, s.Ended) || q.v.Start >= s.Call && slices.Contains(q.v.Owners, q.r.ownerName(s.Owner))
		if about && (q.keptUntil(s) != nil || s.Token != 0 && s.Token == first.Token) {
			return first, s
		}
	}
	return nil, nil
}

// keptUntil is the last sample before an acquire in which a master has the key for its owner; nil if there is none.
func (q *inquiry) keptUntil(s *history.Span) (kept *history.Sample) {
	for _, node := range q.r.witness.nodes {
		last := q.r.witness.latest(node, s.Call)
		if last != nil && isMaster(last) && has(last, q.v.Key, q.r.ownerName(s.Owner)) {
			kept = last
		}
	}
	return kept
}

func (q *inquiry) reusedName(f *injection, first, again *history.Span) *cause {
	withToken := func(x *history.Span) sentence {
		if x.Token == 0 {
			return sentence{}
		}
		return say(" with %s", token(x.Token, replyAt(x)))
	}
	who := targetName(f.target)
	c := blame(f, "%s, granted %s%s at %s, was killed at %s (%s); its new process requested it at %s for an "+
		"owner of the same name, %s, and was granted that hold again at %s%s", who, quote(q.v.Key), withToken(first),
		replyAt(first), f.took(), f, callAt(again), quote(q.r.ownerName(again.Owner)), replyAt(again), withToken(again))
	c.explain(q.step(int(first.Ended)), q.step(int(again.Ended)))
	if kept := q.keptUntil(again); kept != nil {
		c.explain(seenIn(kept, 8, "%s still has the key of the killed process", kept.Node))
	}
	h := q.r.lastHold(again.Owner, again.Key, again.Return)
	if h == nil {
		return c
	}
	if twice := q.countAbove(h); twice != nil {
		count := twice.Keys[q.v.Key].Count
		c.add("; %s counted %s holds of it at %s", twice.Node, proved(proofCount, fmt.Sprint(count), sampleAt(twice)), twice)
		c.explain(seenIn(twice, 8, "%s counts %d holds of %s", twice.Node, count, who))
	}
	return c
}
