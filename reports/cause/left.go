package cause

import (
	"cmp"
	"iter"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Causes that lie with keys that a request of unknown outcome, or another program, leaves at the servers.

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
		if kept := q.r.KeptBy(c, q.v.Key, evidence.Interval{From: f.EffectTime(), Until: q.v.End}); kept != nil {
			found.Add(": %s still had it at %s, and it %s", kept.Node, kept, q.r.Ends())
			found.explain(seenIn(kept, 9, "%s still has the key of %s", kept.Node, evidence.ClientName(c)))
		}
		return found
	}
	return nil
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

// unansweredNoLease: an acquire, or the release of the last hold, had an unknown outcome, and the key stays without an
// expiry.
func (q *inquiry) unansweredNoLease() *Cause {
	h := q.r.History
	if q.property != checker.Leak && q.property != checker.Recovery {
		return nil
	}
	if last := q.unreleased(); last != nil && last.End == checker.ReleaseUnknown {
		kept := q.keptWithoutExpiry(last.From)
		if kept == nil { // the release took effect late, or the lock was granted again meanwhile
			kept = q.r.KeptWithoutExpiry(q.v.Key, evidence.Interval{From: last.From, Until: q.v.End - q.r.Witness.Gap})
		}
		if kept != nil && kept.Time >= q.v.Start {
			return q.unansweredRelease(last, kept)
		}
	}
	for _, u := range h.Unknown {
		asked := &h.Spans[u.Span]
		if !evidence.Taking(asked) || !q.about(asked.Key) || !q.cites(asked.Invoked) {
			continue
		}
		kept := q.keptWithoutExpiry(min(u.Time, q.v.End))
		if kept == nil { // samples may have ended before, or the request came late
			kept = q.keptWithoutExpiry(q.v.Start - q.r.Witness.Gap)
		}
		if kept == nil {
			continue
		}
		if last, of := q.r.HoldNamed(q.v.Key, kept.Keys[q.v.Key].Owner); of && last.Owner != asked.Owner {
			return q.unansweredRelease(last, kept) // the key is of another owner
		}
		text := evidence.Say("%s asked for %s at %s, with an unknown outcome", q.r.Who(asked.Process),
			evidence.Quote(q.v.Key), evidence.CallAt(asked))
		inFlight := evidence.Interval{From: asked.Call, Until: u.Time}
		return q.stays(q.r.ClientIn(asked.Process), text, inFlight, kept, int(asked.Invoked))
	}
	return nil
}

// unreleased is the hold that the violation begins with, else the last one of its key; nil if there is none.
func (q *inquiry) unreleased() *evidence.Hold {
	begins := func(x *evidence.Hold) bool {
		return q.about(x.Key) && len(q.v.Events) > 0 && q.v.Events[0] == int(x.Granted)
	}
	return cmp.Or(evidence.FirstOf(q.r.Holds, begins), evidence.LastOf(q.r.Holds,
		func(x *evidence.Hold) bool { return q.about(x.Key) }))
}

// unansweredRelease: the outcome of the release of a hold is unknown, and the key of that hold stays.
func (q *inquiry) unansweredRelease(last *evidence.Hold, kept *history.Sample) *Cause {
	h := q.r.History
	for _, u := range h.Unknown {
		rel := &h.Spans[u.Span]
		if rel.Op != history.OpRelease || rel.Owner != last.Owner || rel.Key != last.Key || rel.Call < last.From {
			continue
		}
		text := evidence.Say("%s, granted %s at %s, asked to release it at %s, with an unknown outcome", last,
			evidence.Quote(q.v.Key), last.GrantedAt(), evidence.CallAt(rel))
		inFlight := evidence.Interval{From: rel.Call, Until: u.Time}
		return q.stays(last.Client, text, inFlight, kept, int(last.Granted), int(rel.Invoked))
	}
	return nil
}

// abandoned: the promise to a hold ended without a release, its key stays without an expiry, and a request was refused
// although the lock was free from when it was sent.
func (q *inquiry) abandoned() *Cause {
	refused := q.refused()
	if q.property != checker.Recovery && (q.property != checker.WakeUp || refused == nil || refused.Call < q.v.Start) {
		return nil
	}
	last := evidence.LastOf(q.r.Holds, func(h *evidence.Hold) bool {
		end := h.ValidUntil()
		return q.about(h.Key) && h.End != checker.Released && end != 0 && end <= q.v.Start
	})
	if last == nil {
		return nil
	}
	kept := q.r.KeptWithoutExpiry(q.v.Key, evidence.Interval{From: last.ValidUntil(), Until: q.v.End})
	if kept == nil || kept.Sent <= last.ValidUntil() {
		return nil
	}
	if h, named := q.r.HoldNamed(q.v.Key, kept.Keys[q.v.Key].Owner); named && h != last {
		return nil
	}
	c := because("%s, granted %s at %s, did not release it by the end of %s at %s", last, evidence.Quote(q.v.Key),
		last.GrantedAt(), q.r.ValidityName(last), q.r.Validity(last))
	return q.keeps(c, kept, int(last.Granted))
}

// stays is the cause of a key that stays without an expiry after a request of unknown outcome, which was in flight
// during when.
func (q *inquiry) stays(client int, asked evidence.Sentence, when evidence.Interval, kept *history.Sample,
	events ...int) *Cause {
	c, name := &Cause{Sentence: asked}, cluster.ClientName(client)
	f := evidence.FirstOf(q.r.Faults, func(f *evidence.Fault) bool {
		hit := f.On(name) || f.On(kept.Node) || strings.HasPrefix(f.Target, name+">")
		return hit && !f.Skews() && f.Effective(when.From, when.Until)
	})
	if f != nil {
		c.blame(f, " (%s at %s, %s)", f.Clause(), f.Took(), f)
	}
	return q.keeps(c, kept, events...)
}

// findForeignData: another program keeps data at the key of a lock, which the lock changed or deleted, or took for a
// hold of another owner.
func findForeignData(q *inquiry) *Cause {
	if q.p != nil {
		return nil
	}
	for _, f := range q.r.EffectiveFaults(q.v.Start, q.v.End, (*evidence.Fault).PlantsData) {
		if f.HealEvent < 0 {
			continue
		}
		c := blame(f, "data of another program were at the key %s on %s from %s (%s), and ", evidence.Quote(q.v.Key),
			f.Target, f.Took(), f)
		if q.property == checker.Damage && q.cites(f.Event) {
			c.Add("a client changed or deleted them by %s", f.Healed())
			return c
		}
		refused, seen := q.refused(), q.seenForeign(f)
		if refused == nil || seen == nil {
			continue
		}
		c.Add("still at %s: the %s of %s, sent at %s, was refused at %s", seen, refused.Op, q.r.Who(refused.Process),
			evidence.CallAt(refused), evidence.ReplyAt(refused))
		return c
	}
	return nil
}

// refused is the first acquire or try that the violation names and that was refused; nil if there is none.
func (q *inquiry) refused() *history.Span {
	return evidence.FirstOf(q.r.History.Spans, func(s *history.Span) bool {
		return evidence.Taking(s) && s.Outcome == history.Fail && q.cites(s.Ended)
	})
}

// seenForeign is the last sample before the end of the violation in which a node that f hit has the key without an
// expiry for none of the owners; nil if there is none.
func (q *inquiry) seenForeign(f *evidence.Fault) (seen *history.Sample) {
	for _, node := range f.Nodes(q.r) {
		seen = cmp.Or(evidence.LastOf(q.r.Witness.During(node, f.EffectTime(), min(q.v.End, f.Heal)),
			func(x *history.Sample) bool {
				k, held := x.Keys[q.v.Key]
				_, ours := q.r.ClientOf(k.Owner)
				return held && !ours && k.TTL < 0
			}), seen)
	}
	return seen
}
