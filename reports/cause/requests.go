package cause

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
)

// Causes that lie with how a lock handles single requests: a late reply, a repeated request, a re-entry, a release for
// an owner that holds nothing, an owner whose name was used before.

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
		c.Add("; %s got %s at %s", b, b.Object("the lock"), b.GrantedAt())
		return c.explain(q.r.StepAt(int(rel.Ended)))
	}
	return nil
}

// findReusedName: a client was killed while it held the lock, and its next process was granted the same hold,
// because it requested the lock for an owner of the same name.
func findReusedName(q *inquiry) *Cause {
	if q.p != nil {
		return nil
	}
	for f := range evidence.Each(q.r.Faults) {
		c, client := cluster.ClientNumber(f.Target)
		if !client || !f.StartsAgain() || len(f.Effects) == 0 {
			continue
		}
		if first, again := q.requestedAgain(c, f); again != nil {
			return q.reusedName(f, first, again)
		}
	}
	return nil
}

// requestedAgain are the acquire that began the hold that a client had when it was killed, and the one by which its
// next process was granted that hold; nil if the violation is not about them.
func (q *inquiry) requestedAgain(client int, killed *evidence.Fault) (first, again *history.Span) {
	for s := range evidence.Each(q.r.History.Spans) {
		if !evidence.Taking(s) || s.Outcome != history.OK || q.r.ClientIn(s.Process) != client || !q.about(s.Key) {
			continue
		}
		if s.Return <= killed.EffectTime() {
			first = s
			continue
		}
		if first == nil || s.Owner != first.Owner || s.Key != first.Key || s.Process == first.Process {
			continue
		}
		about := q.cites(s.Invoked, s.Ended) || q.v.Start >= s.Call && slices.Contains(q.v.Owners, q.r.OwnerName(s.Owner))
		if about && (q.keptUntil(s) != nil || s.Token != 0 && s.Token == first.Token) {
			return first, s
		}
	}
	return nil, nil
}

// keptUntil is the last sample before an acquire in which a master has the key for its owner; nil if there is none.
func (q *inquiry) keptUntil(s *history.Span) (kept *history.Sample) {
	for _, node := range q.r.Witness.Nodes {
		last := q.r.Witness.Latest(node, s.Call)
		if last != nil && evidence.IsMaster(last) && evidence.Has(last, q.v.Key, q.r.OwnerName(s.Owner)) {
			kept = last
		}
	}
	return kept
}

func (q *inquiry) reusedName(f *evidence.Fault, first, again *history.Span) *Cause {
	withToken := func(x *history.Span) evidence.Sentence {
		if x.Token == 0 {
			return evidence.Sentence{}
		}
		return evidence.Say(" with %s", evidence.Token(x.Token, evidence.ReplyAt(x)))
	}
	who := evidence.TargetName(f.Target)
	c := blame(f, "%s, granted %s%s at %s, was killed at %s (%s); its new process requested it at %s for an "+
		"owner of the same name, %s, and was granted that hold again at %s%s", who, evidence.Quote(q.v.Key), withToken(first),
		evidence.ReplyAt(first), f.Took(), f, evidence.CallAt(again), evidence.Quote(q.r.OwnerName(again.Owner)),
		evidence.ReplyAt(again), withToken(again))
	c.explain(q.r.StepAt(int(first.Ended)), q.r.StepAt(int(again.Ended)))
	if kept := q.keptUntil(again); kept != nil {
		c.explain(seenIn(kept, 8, "%s still has the key of the killed process", kept.Node))
	}
	h := q.r.LastHold(again.Owner, again.Key, again.Return)
	if h == nil {
		return c
	}
	if twice := q.countAbove(h); twice != nil {
		count := twice.Keys[q.v.Key].Count
		c.Add("; %s counted %s holds of it at %s", twice.Node, evidence.Proved(evidence.ProofCount, fmt.Sprint(count),
			evidence.SampleAt(twice)), twice)
		c.explain(seenIn(twice, 8, "%s counts %d holds of %s", twice.Node, count, who))
	}
	return c
}

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
