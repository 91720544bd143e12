package cause

import (
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// The cause that lies with a program that was started again: it uses the names of owners that it used before.

// findReusedName: a client was killed while it held the lock, and its next process was granted the same hold,
// because it requested the lock for an owner of the same name.
func findReusedName(q *inquiry) *Cause {
	if q.p != nil {
		return nil
	}
	for f := range evidence.Each(q.r.Faults) {
		c, client := cluster.ClientNumber(f.Target)
		if !client || !f.StartsAgain() || len(f.Effects) == 0 {
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
func (q *inquiry) requestedAgain(client int, killed *evidence.Fault) (first, again *history.Span) {
	for s := range evidence.Each(q.r.History.Spans) {
		if !evidence.Taking(s) || s.Outcome != history.OK || q.r.ClientIn(s.Process) != client || !q.about(s.Key) {
			continue
		}
		if s.Return <= killed.EffectTime() {
			first = s
			continue
		}
		if first == nil || s.Owner != first.Owner || s.Key != first.Key || s.Process == first.Process {
			continue
		}
		about := q.cites(s.Invoked, s.Ended) || q.v.Start >= s.Call && slices.Contains(q.v.Owners, q.r.OwnerName(s.Owner))
		if about && (q.keptUntil(s) != nil || s.Token != 0 && s.Token == first.Token) {
			return first, s
		}
	}
	return nil, nil
}

// keptUntil is the last sample before an acquire in which a master has the key for its owner; nil if there is none.
func (q *inquiry) keptUntil(s *history.Span) (kept *history.Sample) {
	for _, node := range q.r.Witness.Nodes {
		last := q.r.Witness.Latest(node, s.Call)
		if last != nil && evidence.IsMaster(last) && evidence.Has(last, q.v.Key, q.r.OwnerName(s.Owner)) {
			kept = last
		}
	}
	return kept
}

func (q *inquiry) reusedName(f *evidence.Fault, first, again *history.Span) *Cause {
	withToken := func(x *history.Span) evidence.Sentence {
		if x.Token == 0 {
			return evidence.Sentence{}
		}
		return evidence.Say(" with %s", evidence.Token(x.Token, evidence.ReplyAt(x)))
	}
	who := evidence.TargetName(f.Target)
	c := blame(f, "%s, granted %s%s at %s, was killed at %s (%s); its new process requested it at %s for an "+
		"owner of the same name, %s, and was granted that hold again at %s%s", who, evidence.Quote(q.v.Key), withToken(first),
		evidence.ReplyAt(first), f.Took(), f, evidence.CallAt(again), evidence.Quote(q.r.OwnerName(again.Owner)),
		evidence.ReplyAt(again), withToken(again))
	c.explain(q.r.StepAt(int(first.Ended)), q.r.StepAt(int(again.Ended)))
	if kept := q.keptUntil(again); kept != nil {
		c.explain(seenIn(kept, 8, "%s still has the key of the killed process", kept.Node))
	}
	h := q.r.LastHold(again.Owner, again.Key, again.Return)
	if h == nil {
		return c
	}
	if twice := q.countAbove(h); twice != nil {
		count := twice.Keys[q.v.Key].Count
		c.Add("; %s counted %s holds of it at %s", twice.Node, evidence.Proved(evidence.ProofCount, fmt.Sprint(count),
			evidence.SampleAt(twice)), twice)
		c.explain(seenIn(twice, 8, "%s counts %d holds of %s", twice.Node, count, who))
	}
	return c
}
