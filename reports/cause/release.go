package cause

import (
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// A release that the node that replaced a master does not have.

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
	failover := &inquiry{r: q.r, v: q.v, p: &evidence.Pair{R: q.r, GranterA: master, GranterB: node,
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
	return c.explain(q.step(int(rel.Invoked)), seenIn(kept, 8, "%s still has the key, with no expiry", node))
}
