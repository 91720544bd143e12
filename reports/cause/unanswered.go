package cause

import (
	"cmp"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Keys without an expiry that requests of unknown outcome leave.

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
			kept = q.keptWithin(evidence.Interval{From: last.From, Until: q.v.End - q.r.Witness.Gap})
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
		c.blame(f, " (%s %s at %s, %s)", evidence.Subject(f.Target), f.Predicate(1), f.Took(), f)
	}
	c.Add(", and the key has no expiry: %s still had it at %s%s", kept.Node, kept, q.consequence())
	for _, e := range events {
		c.explain(q.r.StepAt(e))
	}
	return c.explain(seenIn(kept, 8, "%s still has the key, with no expiry", kept.Node))
}
