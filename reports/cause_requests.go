package reports

import (
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Causes that lie with how a lock handles single requests: a late reply, a repeated request, a re-entry, a release for
// an owner that holds nothing.

// findLateGrant: an acquire succeeded after the end of the validity that it reported.
func findLateGrant(q *inquiry) *cause {
	if q.p != nil || q.property != checker.Honesty {
		return nil
	}
	x := firstOf(q.r.History.Spans, func(x *history.Span) bool {
		return taking(x) && x.Expired && q.about(x.Key) && q.cites(x.Ended)
	})
	if x == nil {
		return nil
	}
	c := because("%s asked for %s at %s and was granted it by a reply at %s, when its validity had ended",
		q.r.who(x.Process), quote(q.v.Key), callAt(x), replyAt(x)).explain(q.step(int(x.Invoked)))
	client := cluster.ClientName(q.r.clientIn(x.Process))
	return q.alsoDuring(c, x, func(f *injection) bool {
		return (!isClient(f.target) || f.on(client) || strings.HasPrefix(f.target, client+">")) &&
			(f.delaysReplies() || f.cutsOff() || f.class == history.FaultPauses)
	})
}

// alsoDuring names the first fault that was in effect during an operation and that ok accepts, if there is one.
func (q *inquiry) alsoDuring(c *cause, x *history.Span, ok func(*injection) bool) *cause {
	f := firstOf(q.r.faults, func(f *injection) bool { return ok(f) && f.effective(x.Call, x.Return) })
	if f == nil {
		return c
	}
	return c.blame(f, "; %s %s", subject(f.target), f.during())
}

// findOwnKey: an acquire was refused, and a server has the key for the owner that it names.
func findOwnKey(q *inquiry) *cause {
	if q.p != nil || q.property != checker.Leak {
		return nil
	}
	for x := range each(q.r.History.Spans) {
		if !taking(x) || x.Outcome != history.Fail || !q.about(x.Key) || !q.cites(x.Ended) {
			continue
		}
		for _, node := range q.r.witness.nodes {
			kept := firstOf(q.r.witness.during(node, x.Return, max(q.v.End, q.r.History.End)),
				func(y *history.Sample) bool { return has(y, q.v.Key, q.r.ownerName(x.Owner)) })
			if kept != nil {
				return q.ownKey(x, kept)
			}
		}
	}
	return nil
}

func (q *inquiry) ownKey(x *history.Span, kept *history.Sample) *cause {
	c := because("%s asked for %s at %s and was refused it at %s, although a request of the same acquire had set the "+
		"key: %s had it for that owner, %s, at %s", q.r.who(x.Process), quote(q.v.Key), callAt(x), replyAt(x), kept.Node,
		quote(q.r.ownerName(x.Owner)), kept).explain(q.step(int(x.Invoked)),
		seenIn(kept, 9, "%s has the key for the owner that was refused", kept.Node))
	return q.alsoDuring(c, x, func(f *injection) bool {
		return f.losesReply() && (!isClient(f.target) || f.on(cluster.ClientName(q.r.clientIn(x.Process))))
	})
}

// findShortened: a later request of the same owner made the lease end before the end that was promised.
func findShortened(q *inquiry) *cause {
	if q.p != nil || q.property != checker.Honesty {
		return nil
	}
	promised := (*history.Span)(nil)
	for x := range each(q.r.History.Spans) {
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

func (q *inquiry) shortened(promised, later *history.Span) *cause {
	until := point{Event: int(promised.Ended), Until: true, Time: promised.Valid}
	c := because("%s was promised %s until %s at %s; its next %s, at %s, set a lease that ended before that",
		q.r.who(promised.Process), quote(q.v.Key), until, replyAt(promised), later.Op, callAt(later))
	owner := q.r.ownerName(promised.Owner)
	for _, node := range q.r.witness.nodes {
		x := firstOf(q.r.witness.during(node, later.Return, q.v.End), func(x *history.Sample) bool {
			k, ok := x.Keys[q.v.Key]
			return ok && has(x, q.v.Key, owner) && k.TTL >= 0 && x.Time+k.TTL < promised.Valid
		})
		if x == nil {
			continue
		}
		end := point{Event: -1, Node: node, Key: q.v.Key, Until: true, Time: x.Time + x.Keys[q.v.Key].TTL, Sample: x.Time}
		c.add(", at %s on %s", end, node)
		return c.explain(q.step(int(promised.Ended)), q.step(int(later.Ended)),
			seenIn(x, 9, "%s has the key with a lease that ends too early", node))
	}
	return nil
}

// strangersRelease: a release between the two grants succeeded for an owner that did not hold the lock.
func (q *inquiry) strangersRelease() *cause {
	a, b := q.p.a, q.p.b
	for rel, mine := range q.releases() {
		if rel.Call < a.From || mine != nil && (mine.End != checker.Released || mine.to > a.From) {
			continue
		}
		c := because("%s, granted it at %s, ", a, a.granted())
		owner := quote(q.r.ownerName(rel.Owner))
		if client := q.r.clientIn(rel.Process); client == a.Client {
			c.add("released it at %s, without an error, for another owner (%s), which did not hold it", callAt(rel), owner)
		} else {
			c.add("still held it when %s released it at %s, without an error, for an owner that did not hold it (%s)",
				clientName(client), callAt(rel), owner)
		}
		if gone := q.gone(q.p.granterA, a, b.From, rel.Call); gone != nil {
			c.add("; the key was no longer there at %s", gone)
		}
		c.add("; %s was granted it at %s", b, b.granted())
		return c.explain(q.step(int(rel.Ended)))
	}
	return nil
}
