package cause

import (
	"iter"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// findLeftBehind: the reply to an acquire was lost, and its keys stayed at the servers.
func findLeftBehind(q *inquiry) *Cause {
	if q.p != nil || q.property != checker.Leak {
		return nil
	}
	for c, f := range q.lostReplies(false) {
		asked := q.unanswered(c, f)
		if asked == nil {
			continue
		}
		lost := "was lost at"
		if len(f.Effects) == 0 || f.EffectTime() < asked.Call || f.EffectTime() > asked.Return {
			lost = "did not come: its replies were dropped from"
		}
		left := "the acquire had created was not removed"
		if asked.Op == history.OpRelease {
			left = "it should have removed stayed"
		}
		found := blame(f, "left behind: the reply to the %s of %s by %s, sent at %s, %s %s (%s), and what %s",
			asked.Op, evidence.Quote(q.v.Key), evidence.ClientName(c), evidence.CallAt(asked), lost, f.Took(), f, left)
		found.Of = &c
		found.explain(q.r.StepAt(int(asked.Invoked)))
		if kept := q.keptBy(c, f.EffectTime()); kept != nil {
			found.Add(": %s still had it at %s, and it %s", kept.Node, kept, q.r.Ends())
			found.explain(seenIn(kept, 9, "%s still has the key of %s", kept.Node, evidence.ClientName(c)))
		}
		return found
	}
	return nil
}

// keptBy is the last sample by the end of the violation in which a node has the key without an expiry, if the key was
// this client's in each sample since t; nil if there is none.
func (q *inquiry) keptBy(client int, t time.Duration) (kept *history.Sample) {
	for _, node := range q.r.Witness.Nodes {
		var last *history.Sample
		for x := range evidence.Each(q.r.Witness.During(node, t, q.v.End)) {
			k, held := x.Keys[q.v.Key]
			if held && k.TTL < 0 && q.r.HeldBy(q.v.Key, x).Client == client {
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
// if observed, only faults that were seen to have dropped one by then.
func (q *inquiry) lostReplies(observed bool) iter.Seq2[int, *evidence.Fault] {
	return func(yield func(int, *evidence.Fault) bool) {
		for f := range evidence.Each(q.r.Faults) {
			c, client := cluster.ClientNumber(f.Target)
			lost := client && f.Does(history.FaultDrops, history.ObjectReplies) && f.EffectTime() <= q.v.End
			if lost && (!observed || len(f.Effects) > 0) && !yield(c, f) {
				return
			}
		}
	}
}

// unanswered is the operation of a client whose reply f may have dropped, and that did not succeed: an acquire that was
// in flight when f took effect or else an acquire or a release during f; nil if there is none.
func (q *inquiry) unanswered(client int, f *evidence.Fault) (found *history.Span) {
	for s := range evidence.Each(q.r.History.Spans) {
		if !evidence.Taking(s) && s.Op != history.OpRelease || q.r.ClientIn(s.Process) != client || s.Outcome == history.OK ||
			!q.about(s.Key) {
			continue
		}
		if evidence.Taking(s) && len(f.Effects) > 0 && s.Call <= f.EffectTime() && s.Return >= f.EffectTime() {
			return s
		}
		if found == nil && f.Inject <= s.Return && f.Heal >= s.Call {
			found = s
		}
	}
	return found
}
