package reports

import (
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Causes of violations that are not about two holders: a lock that is never free
// again, a waiter that sleeps. And the causes of last resort.

// findNoLease: a client was killed, or its acquire had no reply, and its key stays without an expiry.
func findNoLease(q *inquiry) *cause {
	if q.p != nil || q.v.Key == "" || q.r.byMajority() { // what has no expiry there ends with a session
		return nil
	}
	for f := range each(q.r.faults) {
		c, client := cluster.ClientNumber(f.target)
		if !client || !f.endsProcess() || len(f.effects) == 0 || f.effectTime() > q.v.End {
			continue
		}
		kept := q.keptWithoutExpiry(f.effectTime())
		asked, last := q.lastAcquire(c)
		if kept == nil || asked == nil || asked.Outcome == history.OK && last == nil {
			continue
		}
		return q.noLease(f, asked, last, kept)
	}
	return q.unansweredNoLease()
}

// keptWithoutExpiry is the last sample before the end of the violation in which a master has the key without an
// expiry, if it had it in every sample as master since t; else nil. There may be two masters: a node that was
// restarted is one until it is made a replica.
func (q *inquiry) keptWithoutExpiry(t time.Duration) *history.Sample {
	if q.property == checker.Leak {
		return q.keptWithin(interval{t, q.v.End}) // then the harness probes the lock, and releases it
	}
	return q.keptWithin(interval{t, max(q.v.End, q.r.History.End)})
}

// keptWithin is keptWithoutExpiry for the samples of one interval.
func (q *inquiry) keptWithin(w interval) *history.Sample {
	var kept *history.Sample
	for _, node := range q.r.witness.nodes {
		samples := q.r.witness.during(node, w.from, w.until)
		without := firstOf(samples, func(x *history.Sample) bool {
			k, held := x.Keys[q.v.Key]
			return isMaster(x) && (!held || k.TTL >= 0)
		})
		last := lastOf(samples, isMaster)
		if without == nil && last != nil && (kept == nil || last.Time > kept.Time) {
			kept = last
		}
	}
	return kept
}

// lastAcquire is the last acquire of the key by a client, and the hold that it
// began; nil if it has no reply.
func (q *inquiry) lastAcquire(client int) (asked *history.Span, began *hold) {
	asked = lastOf(q.r.History.Spans, func(s *history.Span) bool {
		return taking(s) && q.r.clientIn(s.Process) == client && q.about(s.Key) && s.Outcome != history.Fail
	})
	if asked != nil && asked.Outcome == history.OK {
		began = q.r.lastHold(asked.Owner, asked.Key, asked.Return)
	}
	return asked, began
}

func (q *inquiry) noLease(f *injection, asked *history.Span, last *hold, kept *history.Sample) *cause {
	c := &cause{faults: []*injection{f}}
	who, key := targetName(f.target), quote(q.v.Key)
	died := say("was killed at %s (%s)", f.took(), f)
	stays := say("%s still had it at %s", kept.Node, kept)
	if last != nil {
		c.add("%[3]s, granted %[4]s at %[5]s, %[1]s, and the key has no expiry: %[2]s", died, stays, who, key,
			last.granted())
		c.explain(q.step(int(last.Granted)))
	} else {
		held := sentence{}
		if late := q.otherFault(f, asked.Call); late != nil {
			c.faults = append(c.faults, late)
			held = say(", while replies to it were held back (%s from %s)", late, late.took())
		}
		c.add("%[4]s asked for %[5]s at %[6]s and %[1]s%[3]s, and the key has no expiry: %[2]s", died, stays, held, who, key,
			callAt(asked))
	}
	c.add("%s", q.consequence())
	return c.explain(seenIn(kept, 8, "%s still has the key of %s, with no expiry", kept.Node, who))
}

// seenIn is a sample as a step.
func seenIn(x *history.Sample, weight int, text string, args ...any) storyStep {
	return storyStep{Time: x.Time, Event: -1, weight: weight, Text: fmt.Sprintf(text, args...)}
}

// step is an event as a step.
func (q *inquiry) step(event int) storyStep {
	t, text, _ := q.r.describe(event)
	return storyStep{Time: t, Event: event, weight: 9, Text: text}
}

// otherFault is a fault on the target of f that was in force between from and f; nil if there is none.
func (q *inquiry) otherFault(f *injection, from time.Duration) *injection {
	return firstOf(q.r.faults, func(g *injection) bool {
		return g.actsOn(history.ObjectReplies) && g != f && g.target == f.target && g.effective(from, f.effectTime())
	})
}

// consequence is what the violation is, in the words of a headline.
func (q *inquiry) consequence() sentence {
	if q.property != checker.Recovery {
		return sentence{}
	}
	p := firstOf(q.r.History.Probes, func(p *history.Probe) bool {
		return p.Time == q.v.End && p.Outcome == history.Fail
	})
	if p != nil {
		return say("; after the run, at %s, an acquire was refused", eventAt(p.Index, p.Time))
	}
	if who, span := q.waited(nil); span != nil && span.Outcome == history.Fail {
		return say("; %s, was not granted it", who)
	}
	return sentence{}
}

// waited is the wait that was not served: "client 0, which asked for `orders` at 0.606 s and waited until 2.500 s";
// nil if the violation does not end with one, or with the acquire except.
func (q *inquiry) waited(except *history.Span) (text sentence, span *history.Span) {
	s := firstOf(q.r.History.Spans, func(s *history.Span) bool {
		return s.Op == history.OpAcquire && s != except && len(q.v.Events) > 0 &&
			int(s.Ended) == q.v.Events[len(q.v.Events)-1] && (except == nil || s.Outcome != history.OK)
	})
	if s == nil {
		return text, nil
	}
	return say("%s, which asked for %s at %s and waited until %s", q.r.who(s.Process), quote(q.v.Key), callAt(s),
		replyAt(s)), s
}

// findLostMessage: a message was kept from the waiter, and the lock was free.
func findLostMessage(q *inquiry) *cause {
	if q.p != nil || q.property != checker.WakeUp {
		return nil
	}
	who, span := q.waited(nil)
	if span == nil {
		return nil
	}
	waiter := cluster.ClientName(q.r.clientIn(span.Process))
	f := firstOf(q.r.faults, func(f *injection) bool {
		return (f.actsOn(history.ObjectMessages) || f.unsubscribes()) && (!isClient(f.target) || f.target == waiter) && len(f.effects) > 0 &&
			f.effectTime() <= span.Return && f.heal >= span.Call
	})
	if f == nil {
		return nil
	}
	return blame(f, "nobody woke %[1]s: %[3]s at %[4]s (%[5]s: %[6]s)%[2]s", who, q.released(), lostMessage(f),
		f.took(), f, quoted(f.effects[0].Detail, f.took()))
}

// released is the release after which the lock was free: "; client 1 had released it at 0.604 s".
func (q *inquiry) released() sentence {
	s := lastOf(q.r.History.Spans, func(s *history.Span) bool {
		return s.Op == history.OpRelease && s.Outcome == history.OK && q.about(s.Key) && s.Return <= q.v.Start
	})
	if s == nil {
		return sentence{}
	}
	return say("; %s had released it at %s", q.r.who(s.Process), callAt(s))
}

// lostMessage is what happened to the messages for a waiter.
func lostMessage(f *injection) string {
	switch {
	case !f.unsubscribes():
		return "a message was lost"
	case f.class == history.FaultRefuses:
		return "its subscription was refused"
	}
	return "its subscription was cut"
}

// findCountedTwice: the reply to an acquire was lost, and a server counted a
// second hold that the client does not know of.
func findCountedTwice(q *inquiry) *cause {
	if q.p != nil {
		return nil
	}
	for c, f := range q.lostReplies(true) {
		at := f.effectTime()
		asked, h := q.granted(func(s *history.Span) bool { // it was in flight when the reply was lost
			return q.r.clientIn(s.Process) == c && s.Call <= at && s.Return >= at && q.about(s.Key)
		})
		if h == nil {
			continue
		}
		if twice := q.countAbove(h); twice != nil {
			return q.countedTwice(f, asked, h, twice, say("was sent again because its reply was lost at %s (%s)", f.took(), f))
		}
	}
	return nil
}

// countAbove is the first sample with a higher hold count than the client knows of; nil if there is none.
func (q *inquiry) countAbove(h *hold) *history.Sample {
	for _, node := range q.r.witness.nodes {
		above := firstOf(q.r.witness.during(node, h.Asked, h.to), func(x *history.Sample) bool {
			return has(x, q.v.Key, q.r.ownerName(h.Owner)) && x.Keys[q.v.Key].Count > 1
		})
		if above != nil {
			return above
		}
	}
	return nil
}

func (q *inquiry) countedTwice(
	f *injection, asked *history.Span, h *hold, twice *history.Sample, how sentence,
) *cause {
	count := twice.Keys[q.v.Key].Count
	c := blame(f, "counted twice: the acquire of %[2]s, sent at %[3]s, %[1]s, and %[4]s counted %[5]s holds at "+
		"%[6]s", how, h, callAt(asked), twice.Node, proved(proofCount, fmt.Sprint(count), sampleAt(twice)), twice)
	if kept := q.keptAfter(h, twice.Node); kept != nil {
		c.add("; %s released it once, at %s, and %s still had it at %s", h, h.ended(), twice.Node, kept)
	}
	if who, span := q.waited(asked); span != nil {
		c.add("; %s, was not granted it", who)
	}
	return c.explain(q.step(int(asked.Invoked)), seenIn(twice, 9, "%s counts %d holds of %s", twice.Node, count, h))
}

// keptAfter is the last sample of node with a hold after its owner released it; nil if there is none.
func (q *inquiry) keptAfter(h *hold, node string) *history.Sample {
	if h.End != checker.Released {
		return nil
	}
	return lastOf(q.r.witness.during(node, h.to, q.r.History.End), func(x *history.Sample) bool {
		return x.Sent > h.to && has(x, q.v.Key, q.r.ownerName(h.Owner))
	})
}

// findBetween names the last fault that took effect between the two grants, or
// between the events of the violation.
func findBetween(q *inquiry) *cause {
	f := q.between()
	if f == nil {
		return nil
	}
	return blame(f, "%[2]s; %[1]s", f.tookEffect(), q.plain())
}

func (q *inquiry) between() (f *injection) {
	from, to := q.v.Start, q.v.End
	if q.p != nil {
		from, to = q.p.a.Asked, q.p.b.From
	}
	for g := range each(q.r.faults) {
		if len(g.effects) > 0 && g.inject <= to && max(g.effectTime(), g.heal) >= from &&
			(f == nil || g.effectTime() >= f.effectTime()) {
			f = g
		}
	}
	return f
}

// findUnknown says that no fault is part of the cause.
func findUnknown(q *inquiry) *cause {
	c := &cause{sentence: q.plain()}
	if q.p != nil && !(q.r.alone() && len(q.r.faults) == 0) { // whether there were faults is known
		c.add("; no fault took effect between the two grants")
	}
	return c
}

// plain is the violation without a cause.
func (q *inquiry) plain() sentence {
	p := q.p
	if p == nil {
		return prove(q.v.Text, q.operations())
	}
	return say("%s was granted it at %s%s, %s at %s%s%s", p.a, p.a.granted(), p.by(p.a), p.b, p.b.granted(), p.by(p.b),
		q.early())
}

// operations are the request and the reply, if there is one, of each operation that the violation names as evidence.
func (q *inquiry) operations() (ops [][]point) {
	for s := range each(q.r.History.Spans) {
		if !q.cites(s.Invoked, s.Ended) {
			continue
		}
		op := []point{callAt(s)}
		if s.Return != history.Infinity {
			op = append(op, replyAt(s))
		}
		ops = append(ops, op)
	}
	return ops
}
