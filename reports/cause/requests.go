package cause

import (
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Causes that lie with how a lock handles single requests: a late reply, a repeated request, a re-entry, a release for
// an owner that holds nothing.

// findLateGrant: an acquire succeeded after the end of the validity that it reported.
func findLateGrant(q *inquiry) *Cause {
	if q.p != nil || q.property != checker.Honesty {
		return nil
	}
	x := evidence.FirstOf(q.r.History.Spans, func(x *history.Span) bool {
		return evidence.Taking(x) && x.Expired && q.about(x.Key) && q.cites(x.Ended)
	})
	if x == nil {
		return nil
	}
	c := because("%s asked for %s at %s and was granted it by a reply at %s, when its validity had ended",
		q.r.Who(x.Process), evidence.Quote(q.v.Key), evidence.CallAt(x), evidence.ReplyAt(x)).
		explain(q.r.StepAt(int(x.Invoked)))
	client := cluster.ClientName(q.r.ClientIn(x.Process))
	return q.alsoDuring(c, x, func(f *evidence.Fault) bool {
		return (!evidence.IsClient(f.Target) || f.On(client) || strings.HasPrefix(f.Target, client+">")) &&
			(f.DelaysReplies() || f.CutsOff() || f.Class == history.FaultPauses)
	})
}

// alsoDuring names the first fault that was in effect during an operation and that ok accepts, if there is one.
func (q *inquiry) alsoDuring(c *Cause, x *history.Span, ok func(*evidence.Fault) bool) *Cause {
	f := evidence.FirstOf(q.r.Faults, func(f *evidence.Fault) bool { return ok(f) && f.Effective(x.Call, x.Return) })
	if f == nil {
		return c
	}
	return c.blame(f, "; %s %s", evidence.Subject(f.Target), f.During())
}

// findOwnKey: an acquire was refused, and a server has the key for the owner that it names.
func findOwnKey(q *inquiry) *Cause {
	if q.p != nil || q.property != checker.Leak {
		return nil
	}
	for x := range evidence.Each(q.r.History.Spans) {
		if !evidence.Taking(x) || x.Outcome != history.Fail || !q.about(x.Key) || !q.cites(x.Ended) {
			continue
		}
		for _, node := range q.r.Witness.Nodes {
			kept := evidence.FirstOf(q.r.Witness.During(node, x.Return, max(q.v.End, q.r.History.End)),
				func(y *history.Sample) bool { return evidence.Has(y, q.v.Key, q.r.OwnerName(x.Owner)) })
			if kept != nil {
				return q.ownKey(x, kept)
			}
		}
	}
	return nil
}

func (q *inquiry) ownKey(x *history.Span, kept *history.Sample) *Cause {
	c := because("%s asked for %s at %s and was refused it at %s, although a request of the same acquire had set the "+
		"key: %s had it for that owner, %s, at %s", q.r.Who(x.Process), evidence.Quote(q.v.Key), evidence.CallAt(x),
		evidence.ReplyAt(x), kept.Node, evidence.Quote(q.r.OwnerName(x.Owner)), kept).explain(q.r.StepAt(int(x.Invoked)),
		seenIn(kept, 9, "%s has the key for the owner that was refused", kept.Node))
	return q.alsoDuring(c, x, func(f *evidence.Fault) bool {
		return f.LosesReply() && (!evidence.IsClient(f.Target) || f.On(cluster.ClientName(q.r.ClientIn(x.Process))))
	})
}

// findShortened: a later request of the same owner made the lease end before the end that was promised.
func findShortened(q *inquiry) *Cause {
	if q.p != nil || q.property != checker.Honesty {
		return nil
	}
	promised := (*history.Span)(nil)
	for x := range evidence.Each(q.r.History.Spans) {
		switch {
		case x.Outcome != history.OK || !q.about(x.Key) || x.Return > q.v.Start:
		case x.Valid == q.v.End && q.cites(x.Ended):
			promised = x
		case promised != nil && x.Owner == promised.Owner && x.Call >= promised.Return && x.Op != history.OpOther:
			return q.shortened(promised, x)
		}
	}
	return nil
}

func (q *inquiry) shortened(promised, later *history.Span) *Cause {
	until := evidence.Point{Event: int(promised.Ended), Until: true, Time: promised.Valid}
	c := because("%s was promised %s until %s at %s; its next %s, at %s, set a lease that ended before that",
		q.r.Who(promised.Process), evidence.Quote(q.v.Key), until, evidence.ReplyAt(promised), later.Op,
		evidence.CallAt(later))
	owner := q.r.OwnerName(promised.Owner)
	for _, node := range q.r.Witness.Nodes {
		x := evidence.FirstOf(q.r.Witness.During(node, later.Return, q.v.End), func(x *history.Sample) bool {
			k, ok := x.Keys[q.v.Key]
			return ok && evidence.Has(x, q.v.Key, owner) && k.TTL >= 0 && x.Time+k.TTL < promised.Valid
		})
		if x == nil {
			continue
		}
		c.Add(", at %s on %s", evidence.LeaseAt(x, q.v.Key), node)
		return c.explain(q.r.StepAt(int(promised.Ended)), q.r.StepAt(int(later.Ended)),
			seenIn(x, 9, "%s has the key with a lease that ends too early", node))
	}
	return nil
}

// releaseByNonHolder: a release between the two grants succeeded for an owner that did not hold the lock.
func (q *inquiry) releaseByNonHolder() *Cause {
	a, b := q.p.A, q.p.B
	for rel, mine := range q.releases() {
		if rel.Call < a.From || mine != nil && (mine.End != checker.Released || mine.To > a.From) {
			continue
		}
		c := because("%s, granted it at %s, ", a, a.GrantedAt())
		owner := evidence.Quote(q.r.OwnerName(rel.Owner))
		if client := q.r.ClientIn(rel.Process); client == a.Client {
			c.Add("released it at %s, without an error, for another owner (%s), which did not hold it", evidence.CallAt(rel),
				owner)
		} else {
			c.Add("still held it when %s released it at %s, without an error, for an owner that did not hold it (%s)",
				evidence.ClientName(client), evidence.CallAt(rel), owner)
		}
		if gone := q.gone(q.p.ByA.Node, a, b.From, rel.Call); gone != nil {
			c.Add("; the key was no longer there at %s", gone)
		}
		c.Add("; %s was granted it at %s", b, b.GrantedAt())
		return c.explain(q.r.StepAt(int(rel.Ended)))
	}
	return nil
}
