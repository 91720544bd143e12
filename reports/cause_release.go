package reports

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// A release that the node that replaced a master does not have.

func releaseLostMechanism() mechanism {
	return mechanism{name: "release-lost-in-failover", find: findReleaseLost, advice: []adviceItem{{
		Text: "Give each hold a lease, also each permit of a semaphore: a hold whose release is lost in a failover then " +
			"ends with its lease.",
		Cost: "work that takes longer than the lease has to renew it",
	}}}
}

// findReleaseLost: a master confirmed a release, and the node that replaced it had the key, which has no expiry, before
// the release, and still has it.
func findReleaseLost(q *inquiry) *cause {
	if q.p != nil || q.property != checker.Recovery || q.r.quorum() || q.r.byMajority() {
		return nil
	}
	for _, node := range q.r.witness.nodes {
		promoted := q.r.witness.promotion(node, 0, q.v.End)
		if promoted == nil {
			continue
		}
		rel := q.lastRelease(promoted)
		if rel == nil {
			continue
		}
		master := q.r.witness.soleMaster(rel.Call)
		kept := q.keptThroughout(node, interval{rel.Call, q.v.End})
		if kept == nil || kept.Time < promoted.Time || master == "" || master == node {
			continue
		}
		return q.releaseLost(rel, master, promoted, kept)
	}
	return nil
}

// lastRelease is the last release of the key that had been confirmed when a node was promoted; nil if there is none.
func (q *inquiry) lastRelease(promoted *history.Sample) (last *history.Span) {
	for i := range q.r.History.Spans {
		s := &q.r.History.Spans[i]
		released := s.Op == history.OpRelease && s.Outcome == history.OK && s.Return <= promoted.Sent
		if released && q.r.keyName(s.Key) == q.v.Key {
			last = s
		}
	}
	return last
}

// keptThroughout is the last sample of an interval in which node replied, if it has the key, without an expiry and with
// all its permits taken, in every one of them; nil if it has not.
func (q *inquiry) keptThroughout(node string, w interval) *history.Sample {
	var last *history.Sample
	for _, x := range q.r.witness.during(node, w.from, w.until) {
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

func (q *inquiry) releaseLost(rel *history.Span, master string, promoted, kept *history.Sample) *cause {
	s, node, c := q.s, promoted.Node, &cause{}
	failover := &inquiry{r: q.r, v: q.v, s: s, p: &pair{r: q.r, granterA: master, granterB: node,
		a: &hold{Hold: checker.Hold{Asked: rel.Call, From: rel.Call}}, b: &hold{Hold: checker.Hold{From: promoted.Time}}}}
	c.text = fmt.Sprintf("%s released %s at %s, when %s was the only master seen", clientName(rel.Process.Client(
		q.r.History.Clients)), quote(q.v.Key), s.instant(eventAt(rel.Invoked, rel.Call)), master)
	if f := failover.p.faultOn(master, rel.Call, replicationFaults()...); f != nil {
		c.faults = append(c.faults, f)
		c.text += fmt.Sprintf("; %s %s %s (%s)", master, faultVerb(f.name), f.when(s), quote(f.name))
	}
	if f := failover.replicationFault(); f != nil {
		c.faults = append(c.faults, f)
		c.text += fmt.Sprintf(", while its writes were kept from %s (%s since %s)", node, quote(f.name), s.instant(f.took()))
	}
	c.text += fmt.Sprintf("; %s, seen as master from %s, lacked that release: it still had the key at %s, with no "+
		"expiry", node, s.instant(sampleAt(promoted)), s.instant(sampleAt(kept))) + q.consequence()
	c.steps = []storyStep{q.step(int(rel.Invoked)), {Time: kept.Time, Event: -1, weight: 8,
		Text: fmt.Sprintf("%s still has the key, with no expiry", node)}}
	return c
}
