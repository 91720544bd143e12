package reports

import (
	"iter"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// findLeftBehind: the reply to an acquire was lost, and what it created stayed at the servers.
func findLeftBehind(q *inquiry) *cause {
	if q.p != nil || q.property != checker.Leak {
		return nil
	}
	for c, f := range q.lostReplies(false) {
		asked := q.unanswered(c, f)
		if asked == nil {
			continue
		}
		lost := "was lost at"
		if len(f.effects) == 0 || f.effectTime() < asked.Call || f.effectTime() > asked.Return {
			lost = "did not come: its replies were dropped from"
		}
		left := "the acquire had created was not removed"
		if asked.Op == history.OpRelease {
			left = "it should have removed stayed"
		}
		found := blame(f, "left behind: the reply to the %s of %s by %s, sent at %s, %s %s (%s), and what %s",
			asked.Op, quote(q.v.Key), clientName(c), callAt(asked), lost, f.took(), f, left)
		found.of = &c
		found.explain(q.step(int(asked.Invoked)))
		if kept := q.keptBy(c, f.effectTime()); kept != nil {
			found.add(": %s still had it at %s, and it %s", kept.Node, kept, q.r.ends())
			found.explain(seenIn(kept, 9, "%s still has the key of %s", kept.Node, clientName(c)))
		}
		return found
	}
	return nil
}

// keptBy is the last sample by the end of the violation in which a node has the key without an expiry, if it had that
// of this client in each sample since t; nil if there is none.
func (q *inquiry) keptBy(client int, t time.Duration) (kept *history.Sample) {
	for _, node := range q.r.witness.nodes {
		var last *history.Sample
		for x := range each(q.r.witness.during(node, t, q.v.End)) {
			k, held := x.Keys[q.v.Key]
			if held && k.TTL < 0 && q.r.heldBy(q.v.Key, x).client == client {
				last = x
			} else if last != nil {
				last = nil
				break
			}
		}
		if last != nil && (kept == nil || last.Time > kept.Time) {
			kept = last
		}
	}
	return kept
}

// lostReplies are the faults that drop a client's replies, injected by the end of the violation, each with the client;
// if observed, those that were seen to have dropped one by then.
func (q *inquiry) lostReplies(observed bool) iter.Seq2[int, *injection] {
	return func(yield func(int, *injection) bool) {
		for f := range each(q.r.faults) {
			c, client := cluster.ClientNumber(f.target)
			lost := client && f.does(history.FaultDrops, history.ObjectReplies) && f.effectTime() <= q.v.End
			if lost && (!observed || len(f.effects) > 0) && !yield(c, f) {
				return
			}
		}
	}
}

// unanswered is the operation of a client whose reply f may have dropped, and that did not succeed: an acquire that was
// in flight when f took effect or else an acquire or a release during f; nil if there is none.
func (q *inquiry) unanswered(client int, f *injection) (found *history.Span) {
	for s := range each(q.r.History.Spans) {
		if !taking(s) && s.Op != history.OpRelease || q.r.clientIn(s.Process) != client || s.Outcome == history.OK ||
			!q.about(s.Key) {
			continue
		}
		if taking(s) && len(f.effects) > 0 && s.Call <= f.effectTime() && s.Return >= f.effectTime() {
			return s
		}
		if found == nil && f.inject <= s.Return && f.heal >= s.Call {
			found = s
		}
	}
	return found
}
