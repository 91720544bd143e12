package cause

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Causes of violations that are not about two holders: a lock that is never free again, a waiter that sleeps; and the
// causes of last resort.

// findNoLease: a hold ended without a release, or an operation had no reply, and the key stays without an expiry.
func findNoLease(q *inquiry) *Cause {
	if q.p != nil || q.v.Key == "" || q.r.ByMajority() { // an entry without an expiry there ends with a session
		return nil
	}
	for f := range evidence.Each(q.r.Faults) {
		c, client := cluster.ClientNumber(f.Target)
		if !client || !f.EndsProcess() || len(f.Effects) == 0 || f.EffectTime() > q.v.End {
			continue
		}
		kept := q.keptWithoutExpiry(f.EffectTime())
		asked, last := q.lastAcquire(c)
		if kept == nil || asked == nil || asked.Outcome == history.OK && last == nil {
			continue
		}
		return q.noLease(f, asked, last, kept)
	}
	return cmp.Or(q.unansweredNoLease(), q.abandoned())
}

// keptWithoutExpiry is the last sample before the end of the violation in which a master has the key without an
// expiry, if it had it in every sample as master since t; else nil. There may be two masters: a node that was
// restarted is one until it is made a replica.
func (q *inquiry) keptWithoutExpiry(t time.Duration) *history.Sample {
	until := max(q.v.End, q.r.History.End)
	if q.property == checker.Leak {
		until = q.v.End // then the harness probes the lock, and releases it
	}
	return q.r.KeptWithoutExpiry(q.v.Key, evidence.Interval{From: t, Until: until})
}

// lastAcquire is the last acquire of the key by a client, and the hold that it
// began; nil if it has no reply.
func (q *inquiry) lastAcquire(client int) (asked *history.Span, began *evidence.Hold) {
	asked = evidence.LastOf(q.r.History.Spans, func(s *history.Span) bool {
		return evidence.Taking(s) && q.r.ClientIn(s.Process) == client && q.about(s.Key) && s.Outcome != history.Fail
	})
	if asked != nil && asked.Outcome == history.OK {
		began = q.r.LastHold(asked.Owner, asked.Key, asked.Return)
	}
	return asked, began
}

func (q *inquiry) noLease(f *evidence.Fault, asked *history.Span, last *evidence.Hold, kept *history.Sample) *Cause {
	c := &Cause{Faults: []*evidence.Fault{f}}
	who, key := evidence.TargetName(f.Target), evidence.Quote(q.v.Key)
	died := evidence.Say("was killed at %s (%s)", f.Took(), f)
	if last != nil {
		c.Add("%[2]s, granted %[3]s at %[4]s, %[1]s", died, who, key, last.GrantedAt())
		return q.keeps(c, kept, int(last.Granted))
	}
	held := evidence.Sentence{}
	if late := q.otherFault(f, asked.Call); late != nil {
		c.Faults = append(c.Faults, late)
		held = evidence.Say(", while replies to it were held back (%s from %s)", late, late.Took())
	}
	c.Add("%[3]s asked for %[4]s at %[5]s and %[1]s%[2]s", died, held, who, key, evidence.CallAt(asked))
	return q.keeps(c, kept)
}

// keeps adds to a cause that a node still has the key, and its consequence.
func (q *inquiry) keeps(c *Cause, kept *history.Sample, events ...int) *Cause {
	c.Add(", and the key has no expiry: %s still had it at %s%s", kept.Node, kept, q.consequence())
	for _, e := range events {
		c.explain(q.r.StepAt(e))
	}
	return c.explain(seenIn(kept, 8, "%s still has the key, with no expiry", kept.Node))
}

// seenIn is a sample as a step.
func seenIn(x *history.Sample, weight int, text string, args ...any) evidence.Step {
	return evidence.Step{Time: x.Time, Event: -1, Weight: weight, Text: fmt.Sprintf(text, args...)}
}

// otherFault is a fault on the target of f that was in force between from and f; nil if there is none.
func (q *inquiry) otherFault(f *evidence.Fault, from time.Duration) *evidence.Fault {
	return evidence.FirstOf(q.r.Faults, func(g *evidence.Fault) bool {
		return g.ActsOn(history.ObjectReplies) && g != f && g.Target == f.Target && g.Effective(from, f.EffectTime())
	})
}

// consequence describes the violation in the words of a headline.
func (q *inquiry) consequence() evidence.Sentence {
	switch s := q.refused(); {
	case q.property == checker.WakeUp && s != nil:
		return evidence.Say("; the %s of %s, sent at %s, was refused at %s", s.Op, q.r.Who(s.Process), evidence.CallAt(s),
			evidence.ReplyAt(s))
	case q.property != checker.Recovery:
		return evidence.Sentence{}
	}
	p := evidence.FirstOf(q.r.History.Probes, func(p *history.Probe) bool {
		return p.Time == q.v.End && p.Outcome == history.Fail
	})
	if p != nil {
		return evidence.Say("; after the run, at %s, an acquire was refused", evidence.EventAt(p.Index, p.Time))
	}
	if who, span := q.waited(nil); span != nil && span.Outcome == history.Fail {
		return evidence.Say("; %s, was not granted it", who)
	}
	return evidence.Sentence{}
}

// waited is the wait that was not served: "client 0, which asked for `orders` at 0.606 s and waited until 2.500 s";
// nil if the violation does not end with one, or with the acquire except.
func (q *inquiry) waited(except *history.Span) (text evidence.Sentence, span *history.Span) {
	s := evidence.FirstOf(q.r.History.Spans, func(s *history.Span) bool {
		return s.Op == history.OpAcquire && s != except && len(q.v.Events) > 0 &&
			int(s.Ended) == q.v.Events[len(q.v.Events)-1] && (except == nil || s.Outcome != history.OK)
	})
	if s == nil {
		return text, nil
	}
	return evidence.Say("%s, which asked for %s at %s and waited until %s", q.r.Who(s.Process), evidence.Quote(q.v.Key),
		evidence.CallAt(s), evidence.ReplyAt(s)), s
}

// findLostMessage: a message was kept from the waiter, and the lock was free.
func findLostMessage(q *inquiry) *Cause {
	if q.p != nil || q.property != checker.WakeUp {
		return nil
	}
	who, span := q.waited(nil)
	if span == nil {
		return nil
	}
	waiter := cluster.ClientName(q.r.ClientIn(span.Process))
	f := evidence.FirstOf(q.r.Faults, func(f *evidence.Fault) bool {
		return (f.ActsOn(history.ObjectMessages) || f.Unsubscribes()) && (!evidence.IsClient(f.Target) ||
			f.Target == waiter) && len(f.Effects) > 0 &&
			f.EffectTime() <= span.Return && f.Heal >= span.Call
	})
	if f == nil {
		return nil
	}
	return blame(f, "nobody woke %[1]s: %[3]s at %[4]s (%[5]s: %[6]s)%[2]s", who, q.released(), lostMessage(f),
		f.Took(), f, evidence.Quoted(f.Effects[0].Detail, f.Took()))
}

// released is the release after which the lock was free: "; client 1 had released it at 0.604 s".
func (q *inquiry) released() evidence.Sentence {
	s := evidence.LastOf(q.r.History.Spans, func(s *history.Span) bool {
		return s.Op == history.OpRelease && s.Outcome == history.OK && q.about(s.Key) && s.Return <= q.v.Start
	})
	if s == nil {
		return evidence.Sentence{}
	}
	return evidence.Say("; %s had released it at %s", q.r.Who(s.Process), evidence.CallAt(s))
}

// lostMessage is the fate of the messages for a waiter.
func lostMessage(f *evidence.Fault) string {
	switch {
	case !f.Unsubscribes():
		return "a message was lost"
	case f.Class == history.FaultRefuses:
		return "its subscription was refused"
	}
	return "its subscription was cut"
}

// findCountedTwice: the reply to an acquire was lost, and a server counted a
// second hold that the client does not know of.
func findCountedTwice(q *inquiry) *Cause {
	if q.p != nil {
		return nil
	}
	for c, f := range q.lostReplies(true) {
		at := f.EffectTime()
		asked, h := q.granted(func(s *history.Span) bool { // it was in flight when the reply was lost
			return q.r.ClientIn(s.Process) == c && s.Call <= at && s.Return >= at && q.about(s.Key)
		})
		if h == nil {
			continue
		}
		if twice := q.countAbove(h); twice != nil {
			return q.countedTwice(f, asked, h, twice, evidence.Say("was sent again because its reply was lost at %s (%s)",
				f.Took(), f))
		}
	}
	return nil
}

// countAbove is the first sample with a higher hold count than the client knows of; nil if there is none.
func (q *inquiry) countAbove(h *evidence.Hold) *history.Sample {
	for _, node := range q.r.Witness.Nodes {
		above := evidence.FirstOf(q.r.Witness.During(node, h.Asked, h.To), func(x *history.Sample) bool {
			return evidence.Has(x, q.v.Key, q.r.OwnerName(h.Owner)) && x.Keys[q.v.Key].Count > 1
		})
		if above != nil {
			return above
		}
	}
	return nil
}

func (q *inquiry) countedTwice(
	f *evidence.Fault, asked *history.Span, h *evidence.Hold, twice *history.Sample, how evidence.Sentence,
) *Cause {
	count := twice.Keys[q.v.Key].Count
	c := blame(f, "counted twice: the acquire of %[2]s, sent at %[3]s, %[1]s, and %[4]s counted %[5]s holds at "+
		"%[6]s", how, h, evidence.CallAt(asked), twice.Node, evidence.Proved(evidence.ProofCount, fmt.Sprint(count),
		evidence.SampleAt(twice)), twice)
	if kept := q.keptAfter(h, twice.Node); kept != nil {
		c.Add("; %s released it once, at %s, and %s still had it at %s", h, h.EndedAt(), twice.Node, kept)
	}
	if who, span := q.waited(asked); span != nil {
		c.Add("; %s, was not granted it", who)
	}
	return c.explain(q.r.StepAt(int(asked.Invoked)), seenIn(twice, 9, "%s counts %d holds of %s", twice.Node, count, h))
}

// keptAfter is the last sample of node with a hold after its owner released it; nil if there is none.
func (q *inquiry) keptAfter(h *evidence.Hold, node string) *history.Sample {
	if h.End != checker.Released {
		return nil
	}
	return evidence.LastOf(q.r.Witness.During(node, h.To, q.r.History.End), func(x *history.Sample) bool {
		return x.Sent > h.To && evidence.Has(x, q.v.Key, q.r.OwnerName(h.Owner))
	})
}

// findBetween names the last fault that took effect between the two grants, or
// between the events of the violation.
func findBetween(q *inquiry) *Cause {
	f := q.between()
	if f == nil {
		return nil
	}
	return blame(f, "%[2]s; %[1]s", f.TookEffect(), q.plain())
}

func (q *inquiry) between() (f *evidence.Fault) {
	from, to := q.v.Start, q.v.End
	if q.p != nil {
		from, to = q.p.A.Asked, q.p.B.From
	}
	for g := range evidence.Each(q.r.Faults) {
		if len(g.Effects) > 0 && g.Inject <= to && max(g.EffectTime(), g.Heal) >= from &&
			(f == nil || g.EffectTime() >= f.EffectTime()) {
			f = g
		}
	}
	return f
}

// findUnknown says that no fault is part of the cause.
func findUnknown(q *inquiry) *Cause {
	c := &Cause{Sentence: q.plain()}
	if q.p != nil && !(q.r.HistoryOnly() && len(q.r.Faults) == 0) { // whether there were faults is known
		c.Add("; no fault took effect between the two grants")
	}
	return c
}

// plain is the violation without a cause.
func (q *inquiry) plain() evidence.Sentence {
	if q.p == nil {
		return evidence.Prove(q.v.Text, q.operations())
	}
	return q.p.Grants()
}

// operations are the request and the reply, if there is one, of each operation that the violation names as evidence.
func (q *inquiry) operations() (ops [][]evidence.Point) {
	for s := range evidence.Each(q.r.History.Spans) {
		if !q.cites(s.Invoked, s.Ended) {
			continue
		}
		op := []evidence.Point{evidence.CallAt(s)}
		if s.Return != history.Infinity {
			op = append(op, evidence.ReplyAt(s))
		}
		ops = append(ops, op)
	}
	return ops
}
