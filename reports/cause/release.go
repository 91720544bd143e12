package cause

import (
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
)

// A release that the node that replaced a master does not have, and one of a lock that another client holds.

// findReleaseLost: a master confirmed a release, and the node that replaced it had the key, which has no expiry, before
// the release, and still has it.
func findReleaseLost(q *inquiry) *Cause {
	if q.p != nil || q.property != checker.Recovery || q.r.Quorum() || q.r.ByMajority() {
		return nil
	}
	for _, node := range q.r.Witness.Nodes {
		promoted := q.r.Witness.Promotion(node, 0, q.v.End)
		if promoted == nil {
			continue
		}
		rel := q.lastRelease(promoted)
		if rel == nil {
			continue
		}
		master := q.r.Witness.SoleMaster(rel.Call)
		kept := q.keptThroughout(node, evidence.Interval{From: rel.Call, Until: q.v.End})
		if kept == nil || kept.Time < promoted.Time || master == "" || master == node {
			continue
		}
		return q.releaseLost(rel, master, promoted, kept)
	}
	return nil
}

// lastRelease is the last release of the key that had been confirmed when a node was promoted; nil if there is none.
func (q *inquiry) lastRelease(promoted *history.Sample) *history.Span {
	return evidence.LastOf(q.r.History.Spans, func(s *history.Span) bool {
		return s.Op == history.OpRelease && s.Outcome == history.OK && s.Return <= promoted.Sent && q.about(s.Key)
	})
}

// keptThroughout is the last sample of an interval in which node replied, if it has the key, without an expiry and with
// all its permits taken, in every one of them; nil if it has not.
func (q *inquiry) keptThroughout(node string, w evidence.Interval) *history.Sample {
	var last *history.Sample
	for _, x := range q.r.Witness.During(node, w.From, w.Until) {
		if !x.Up {
			continue
		}
		if k, held := x.Keys[q.v.Key]; !held || k.TTL >= 0 || k.Permits < k.Limit {
			return nil
		}
		last = &x
	}
	return last
}

func (q *inquiry) releaseLost(rel *history.Span, master string, promoted, kept *history.Sample) *Cause {
	node := promoted.Node
	failover := &inquiry{r: q.r, v: q.v, p: &overlap.Pair{R: q.r,
		ByA: overlap.Grant{Node: master}, ByB: overlap.Grant{Node: node},
		A: &evidence.Hold{Hold: checker.Hold{Asked: rel.Call, From: rel.Call}},
		B: &evidence.Hold{Hold: checker.Hold{From: promoted.Time}}}}
	c := because("%s released %s at %s, when %s was the only master seen", q.r.Who(rel.Process), evidence.Quote(q.v.Key),
		evidence.CallAt(rel), master)
	if f := failover.p.FaultOn(master, rel.Call, (*evidence.Fault).KeepsFromReplicas); f != nil {
		c.blame(f, "; %s %s %s (%s)", master, f.Predicate(1), f.When(), f)
	}
	if f := failover.replicationFault(); f != nil {
		c.blame(f, ", while its writes were kept from %s (%s since %s)", node, f, f.Took())
	}
	c.Add("; %s, seen as master from %s, lacked that release: it still had the key at %s, with no expiry%s", node,
		promoted, kept, q.consequence())
	return c.explain(q.r.StepAt(int(rel.Invoked)), seenIn(kept, 8, "%s still has the key, with no expiry", node))
}

// wrongReleaseCause: a release that succeeded although another client had been granted the lock, and whose key no node
// is known to have kept.
func (q *inquiry) wrongReleaseCause() *Cause {
	rel, mine, other := q.wrongRelease()
	if rel == nil || q.stillKept(other, rel) != nil {
		return nil
	}
	c := q.releasedPast(rel, mine, other)
	for _, node := range q.r.Witness.Nodes {
		if gone := q.gone(node, other, q.r.History.End, rel.Call); gone != nil && gone.Time <= rel.Return+q.r.Witness.Gap {
			c.Add("; the key of %s was no longer there at %s", other, gone)
			return c.explain(seenIn(gone, 8, "%s no longer has the key of %s", node, other))
		}
	}
	return c
}

// wrongRelease is the release that a violation of honesty is about, if another client held the lock throughout, the
// last hold of its owner, and the other client's hold; nil if it is about something else.
func (q *inquiry) wrongRelease() (rel *history.Span, mine, other *evidence.Hold) {
	if q.property != checker.Honesty {
		return nil, nil, nil
	}
	rel = evidence.FirstOf(q.r.History.Spans, func(s *history.Span) bool {
		return s.Op == history.OpRelease && s.Outcome == history.OK && q.about(s.Key) && q.cites(s.Ended)
	})
	if rel == nil {
		return nil, nil, nil
	}
	mine = q.r.LastHold(rel.Owner, rel.Key, rel.Call)
	other = evidence.FirstOf(q.r.Holds, func(h *evidence.Hold) bool {
		return h.Owner != rel.Owner && q.cites(h.Granted) && h.From <= rel.Call && rel.Return <= h.To
	})
	if mine == nil || other == nil {
		return nil, nil, nil
	}
	return rel, mine, other
}

// releasedPast says that a client released the lock although another one had it, and why it no longer had it.
func (q *inquiry) releasedPast(rel *history.Span, mine, other *evidence.Hold) *Cause {
	c := because("%s, granted %s at %s, ", mine, evidence.Quote(q.v.Key), mine.GrantedAt())
	var past evidence.Sentence
	if until := mine.ValidUntil(); until != 0 && until <= rel.Call {
		past = evidence.Say(", past the end of %s at %s,", q.r.ValidityName(mine), q.r.Validity(mine))
	}
	if f := q.r.FaultIn(mine, mine.From, rel.Call); past.Text != "" && f != nil {
		c.blame(f, "%s%s and ", f.During(), past)
		past = evidence.Sentence{}
	}
	c.Add("released it at %s%s without an error, although %s had been granted it at %s", evidence.CallAt(rel), past, other,
		other.GrantedAt())
	return c
}

// stillKept is the first sample after a release in which a node has the key for the owner of a hold, while that owner
// relies on it; nil: there is none.
func (q *inquiry) stillKept(h *evidence.Hold, rel *history.Span) *history.Sample {
	for _, x := range q.r.Witness.InOrder(rel.Return, h.To) {
		if x.Sent >= rel.Return && x.Time <= h.To && evidence.IsMaster(x) {
			if evidence.Has(x, q.v.Key, q.r.OwnerName(h.Owner)) {
				return x
			}
			return nil
		}
	}
	return nil
}
