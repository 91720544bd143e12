package reports

import (
	"cmp"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Keys without an expiry that requests of unknown outcome leave.

// unansweredNoLease: an acquire, or the release of the last hold, had an unknown outcome, and the key stays without an
// expiry.
func (q *inquiry) unansweredNoLease() *cause {
	h := q.r.History
	if q.property != checker.Leak && q.property != checker.Recovery {
		return nil
	}
	if last := q.unreleased(); last != nil && last.End == checker.ReleaseUnknown {
		kept := q.keptWithoutExpiry(last.From)
		if kept == nil { // the release took effect late, or the lock was granted again meanwhile
			kept = q.keptWithin(interval{last.From, q.v.End - q.r.witness.gap})
		}
		if kept != nil && kept.Time >= q.v.Start {
			return q.unansweredRelease(last, kept)
		}
	}
	for _, u := range h.Unknown {
		asked := &h.Spans[u.Span]
		if !taking(asked) || !q.about(asked.Key) || !q.cites(asked.Invoked) {
			continue
		}
		kept := q.keptWithoutExpiry(min(u.Time, q.v.End))
		if kept == nil { // samples may have ended before, or the request came late
			kept = q.keptWithoutExpiry(q.v.Start - q.r.witness.gap)
		}
		if kept == nil {
			continue
		}
		if last, of := q.r.holdNamed(q.v.Key, kept.Keys[q.v.Key].Owner); of && last.Owner != asked.Owner {
			return q.unansweredRelease(last, kept) // the key is of another owner
		}
		return q.stays(q.r.clientIn(asked.Process), say("%s asked for %s at %s, with an unknown outcome",
			q.r.who(asked.Process), quote(q.v.Key), callAt(asked)), interval{asked.Call, u.Time}, kept, int(asked.Invoked))
	}
	return nil
}

// unreleased is the hold that the violation begins with, else the last one of its key; nil if there is none.
func (q *inquiry) unreleased() *hold {
	begins := func(x *hold) bool { return q.about(x.Key) && len(q.v.Events) > 0 && q.v.Events[0] == int(x.Granted) }
	return cmp.Or(firstOf(q.r.holds, begins), lastOf(q.r.holds, func(x *hold) bool { return q.about(x.Key) }))
}

// unansweredRelease: the outcome of the release of a hold is unknown, and the key of that hold stays.
func (q *inquiry) unansweredRelease(last *hold, kept *history.Sample) *cause {
	h := q.r.History
	for _, u := range h.Unknown {
		rel := &h.Spans[u.Span]
		if rel.Op != history.OpRelease || rel.Owner != last.Owner || rel.Key != last.Key || rel.Call < last.From {
			continue
		}
		return q.stays(last.Client, say("%s, granted %s at %s, asked to release it at %s, with an unknown outcome", last,
			quote(q.v.Key), last.granted(), callAt(rel)), interval{rel.Call, u.Time}, kept, int(last.Granted),
			int(rel.Invoked))
	}
	return nil
}

// stays is the cause of a key that stays without an expiry after a request of unknown outcome, which was in flight
// during when.
func (q *inquiry) stays(client int, asked sentence, when interval, kept *history.Sample, events ...int) *cause {
	c, name := &cause{sentence: asked}, cluster.ClientName(client)
	f := firstOf(q.r.faults, func(f *injection) bool {
		hit := f.on(name) || f.on(kept.Node) || strings.HasPrefix(f.target, name+">")
		return hit && !f.skews() && f.effective(when.from, when.until)
	})
	if f != nil {
		c.blame(f, " (%s %s at %s, %s)", subject(f.target), f.predicate(1), f.took(), f)
	}
	c.add(", and the key has no expiry: %s still had it at %s%s", kept.Node, kept, q.consequence())
	for _, e := range events {
		c.explain(q.step(e))
	}
	return c.explain(seenIn(kept, 8, "%s still has the key, with no expiry", kept.Node))
}
