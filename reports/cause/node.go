package cause

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Causes that lie with a node that had granted the lock and granted it again: it
// restarted, its keys were removed, its clock was set forward, or it ended the session of the first holder.

// node is the node that granted both holds; "" if it is not one, or not known.
func (q *inquiry) node() string {
	if q.oneNode() && q.p.ByA.Node == q.p.ByB.Node {
		return q.p.ByA.Node
	}
	return ""
}

// oneNode reports whether one node granted both holds, or the run has only one, while the promise to the first was in
// force.
func (q *inquiry) oneNode() bool {
	p := q.p
	return p != nil && !q.r.Quorum() && !p.Outlived() &&
		(p.ByA.Node != "" && p.ByA.Node == p.ByB.Node || len(q.r.Manifest.Nodes) == 1)
}

// findRestart: the node that granted the lock restarted without it. A node that did not reply may have been slow, so
// that it is no restart if a fault, or a timeout of sessions, explains why the key is gone.
func findRestart(q *inquiry) *Cause {
	if q.p == nil {
		return q.tokenNotNewer(findRestart)
	}
	node := q.node()
	if node == "" || q.r.ByMajority() {
		return nil
	}
	p := q.p
	c := because("%s granted it to %s at %s", q.p.Granter(q.p.A), p.A, p.A.GrantedAt())
	f := q.r.EffectOn(node, p.A.Asked, p.B.From, (*evidence.Fault).EndsProcess)
	down, since := q.r.Witness.FirstDown(node, p.A.From, p.B.From), p.A.From
	switch {
	case f != nil:
		c.blame(f, ", %s", q.restarted(f, 1))
		since = f.EffectTime()
	case down != nil && q.r.EffectOn(node, p.A.Asked, p.B.From, (*evidence.Fault).RemovesKeys) == nil &&
		q.clockAhead(node) == nil && findSessionEnded(q) == nil:
		c.Add(", did not reply at %s", down)
	default:
		return nil
	}
	backWithout := evidence.FirstOf(q.r.Witness.During(node, since, p.B.To), func(x *history.Sample) bool {
		return x.Up && x.Sent >= since && !evidence.Has(x, p.Key, q.r.OwnerName(p.A.Owner))
	})
	if backWithout != nil {
		c.Add(", replied without the key")
	}
	if p.ByB.Inferred {
		c.Add("; %s got %s at %s%s%s", p.B, p.B.Object("the lock"), p.B.GrantedAt(), p.KnownBy(p.B), p.Early())
		return c
	}
	c.Add(" and granted it to %s at %s%s", p.B, p.B.GrantedAt(), p.Early())
	return c
}

// findDeleted: the key was removed from a Redis server.
func findDeleted(q *inquiry) *Cause {
	if q.r.ByMajority() {
		return nil
	}
	return q.removed()
}

// findDeletedNode: the node (ZooKeeper) or key (etcd) of the holder was removed.
func findDeletedNode(q *inquiry) *Cause {
	switch {
	case !q.r.ByMajority():
		return nil
	case q.p == nil && q.property == checker.Damage:
		return q.wroteAfterLoss().advised("node-removed")
	}
	return q.removed().advised("node-removed")
}

// writes says when the clients of a lost update wrote.
func (q *inquiry) writes() (s evidence.Sentence) {
	for t := range evidence.Each(q.r.History.Touches) {
		if q.cites(t.Index) {
			s.Add("%s wrote at %s, ", q.r.Who(t.Process), evidence.EventAt(t.Index, t.Time))
		}
	}
	s.Add("over a value that it had not read")
	return s
}

// wroteAfterLoss: the node of a holder was deleted, and the holder reported the loss and still wrote.
func (q *inquiry) wroteAfterLoss() *Cause {
	for h := range evidence.Each(q.r.Holds) {
		reported, _, _ := q.r.Describe(int(h.Ended)) // the hold may have ended earlier, with its validity
		if h.End != checker.LossReported || reported > q.v.End || q.r.History.Keys[h.Key] != q.v.Key ||
			!slices.Contains(q.v.Clients, h.Client) {
			continue
		}
		f := evidence.FirstOf(q.r.Faults, func(f *evidence.Fault) bool {
			return f.RemovesKeys() && len(f.Effects) > 0 && f.Inject <= h.Until && f.EffectTime() >= h.Asked
		})
		if f == nil {
			continue
		}
		c := blame(f, "the %s of %s was removed from %s at %s (%s), and the client reported the loss at %s: %s",
			q.r.Entry(), h, f.Target, f.Took(), f, evidence.EventAt(h.Ended, reported), q.writes())
		c.Of = &h.Client
		return c
	}
	return nil
}

// removed: a fault removed the key from the node.
func (q *inquiry) removed() *Cause {
	if q.p == nil {
		return q.tokenNotNewer((*inquiry).removed)
	}
	node := q.node()
	if q.p.Outlived() || node == "" && !q.r.ByMajority() {
		return nil
	}
	on := node
	if q.r.ByMajority() { // a deletion at one member deletes it at all members
		on = ""
	}
	f := q.r.EffectOn(on, q.p.A.Asked, q.p.B.From, (*evidence.Fault).RemovesKeys)
	if f == nil {
		return nil
	}
	return blame(f, "the %s was removed from %s at %s (%s): %s", q.r.Entry(), f.Target, f.Took(), f, q.twoGrants(node))
}

// findEarlyExpiry: the clock of the node was set forward.
func findEarlyExpiry(q *inquiry) *Cause {
	node := q.node()
	if node == "" {
		return nil
	}
	f := q.clockAhead(node)
	if f == nil {
		return nil
	}
	return blame(f, "the key expired early on %s (%s): %s", f.ClockText(), f, q.twoGrants(node))
}

// twoGrants are the two grants by one node; node is empty if no sample shows which.
func (q *inquiry) twoGrants(node string) evidence.Sentence {
	a, b, by := q.p.A, q.p.B, "it was granted"
	switch p := q.p; {
	case node != "" && p.ByB.Inferred:
		by = p.Granter(b) + " granted it"
	case node != "":
		by = p.Granter(a) + " granted it"
	}
	return evidence.Say("%s to %s at %s and to %s at %s%s", by, a, a.GrantedAt(), b, b.GrantedAt(), q.p.Early())
}

// findSlowGrant: masters of a quorum kept the lock for less time than the client was
// promised it, because the lock counts the lease from the last reply to its requests.
func findSlowGrant(q *inquiry) *Cause {
	switch {
	case !q.r.Quorum() || q.p != nil && q.p.Outlived():
		return nil
	case q.p == nil:
		return q.slowGrant(q.holder(), nil)
	}
	if c := q.slowGrant(q.p.A, q.p.B); c != nil {
		return c
	}
	return q.slowGrant(q.p.B, q.p.A)
}

// slowGrant: a was granted too late, and other, if any, was granted the lock meanwhile.
func (q *inquiry) slowGrant(a, other *evidence.Hold) *Cause {
	if a == nil {
		return nil
	}
	promise := q.r.Validity(a)
	short := q.keptShorter(a, promise)
	if int32(promise.Event) != a.Granted || len(short) == 0 {
		return nil
	}
	it := "it"
	if q.p == nil {
		it = evidence.Quote(q.v.Key)
	}
	ends, texts := evidence.Sentence{}, []string(nil)
	for _, end := range short {
		on := evidence.Say("on %s by %s", end.Node, end)
		ends.Proofs, texts = append(ends.Proofs, on.Proofs...), append(texts, on.Text)
	}
	ends.Text = evidence.List(texts)
	c := because("%[2]s was granted %[3]s at %[4]s and promised it until %[5]s, but its lease ended %[1]s", ends, a,
		it, a.GrantedAt(), promise)
	for _, f := range q.r.EffectiveFaults(a.Asked, a.From, (*evidence.Fault).DelaysReplies) {
		c.blame(f, "; %s from %s (%s)", f.Hit(q.r), f.Took(), f)
	}
	if other != nil {
		c.Add("; %s got %s at %s", other, other.Object("the lock"), other.GrantedAt())
	}
	return c
}

// holder is the hold that the violation is about; nil: none.
func (q *inquiry) holder() *evidence.Hold {
	return evidence.FirstOf(q.r.Holds, func(h *evidence.Hold) bool {
		return q.cites(h.Granted, q.r.History.Spans[h.Span].Invoked) && q.about(h.Key)
	})
}

// keptShorter are the ends of a hold's lease at the nodes that kept it for less time than was promised, and of two
// holds until before the second grant, as their last samples with it say; none if a majority kept it for longer. Nodes
// whose clock was changed or whose process ended do not count: one that lost power may have an older lease again.
func (q *inquiry) keptShorter(a *evidence.Hold, promise evidence.Point) (short []evidence.Point) {
	w, owner := &q.r.Witness, q.r.OwnerName(a.Owner)
	until := min(a.To, q.v.End)
	if q.p != nil {
		until = q.p.B.From
	}
	kept := 0
	for _, node := range w.Nodes {
		samples := w.During(node, a.Asked, until)
		x := evidence.LastOf(samples, func(x *history.Sample) bool { return evidence.Has(x, q.v.Key, owner) })
		if x == nil {
			continue
		}
		ttl := x.Keys[q.v.Key].TTL
		end, wrong := x.Time+ttl, 5*time.Millisecond+(promise.Time-x.Time)/1000 // as the checker of honesty assumes
		gone := evidence.FirstOf(samples, func(y *history.Sample) bool { return y.Up && y.Time > x.Time })
		ended := gone == nil && x.Time >= a.From && (q.p == nil || end < until) ||
			gone != nil && gone.Time > x.Sent+ttl-wrong // or it was deleted
		switch {
		case q.clockChanged(node, a.Asked, until), q.r.EffectOn(node, a.Asked, until, (*evidence.Fault).EndsProcess) != nil:
		case ttl >= 0 && ended && end+wrong < promise.Time:
			short = append(short, evidence.LeaseAt(x, q.v.Key))
		default:
			kept++
		}
	}
	if kept > len(w.Nodes)/2 {
		return nil
	}
	slices.SortStableFunc(short, func(a, b evidence.Point) int { return cmp.Compare(a.Time, b.Time) })
	return short
}

// clockChanged reports whether a fault changed the clock of node in [from, to].
func (q *inquiry) clockChanged(node string, from, to time.Duration) bool {
	return evidence.FirstOf(q.r.Faults, func(f *evidence.Fault) bool {
		return f.Skews() && f.On(node) && f.Effective(from, to)
	}) != nil
}

// findSessionEnded: the hold, which has no lease, ended with the session of its client, whose connection a fault cut,
// or of which the server had heard nothing for longer than its timeout.
func findSessionEnded(q *inquiry) *Cause {
	if !q.oneNode() || q.p.ValidUntil > 0 || !q.r.Manifest.Topology.Database() {
		return nil
	}
	a, b := q.p.A, q.p.B
	c := because("%s, granted it at %s, ", a, a.GrantedAt())
	cut := q.r.EffectOn(cluster.ClientName(a.Client), a.From, b.From, func(f *evidence.Fault) bool {
		return f.Does(history.FaultDrops, history.ObjectConnections)
	})
	switch option := q.idleTimeout(); {
	case option != "" && cut == nil && q.node() != "":
		if f := q.r.FaultIn(a, a.From, b.From); f != nil {
			c.blame(f, "%s and ", f.During())
		}
		c.Add("sent nothing for so long that %s ended its session (%s)", q.node(), evidence.Quote(option))
	case cut != nil:
		c.blame(cut, "%s at %s (%s), which ended its session", cut.Predicate(1), cut.Took(), cut)
	default:
		return nil
	}
	if gone := q.gone(q.node(), a, b.To, a.From); gone != nil {
		c.explain(seenIn(gone, 8, "%s no longer has the lock for %s", gone.Node, a))
	}
	c.Add(", and with it the hold; %s got %s at %s", b, b.Object("the lock"), b.GrantedAt())
	return c
}

// idleTimeout is the option by which the server ends the session of a client that is idle for as long as the first
// holder may have been by the second grant; "": none.
func (q *inquiry) idleTimeout() string {
	unit := map[string]string{cluster.Postgres: "ms", cluster.MySQL: "s"}[q.r.Manifest.Topology.Kind]
	for _, option := range []string{
		"idle_in_transaction_session_timeout", "idle_session_timeout", "wait_timeout", "idle_transaction_timeout",
	} {
		idle := q.r.Manifest.Topology.Options[option]
		if end, err := time.ParseDuration(idle + unit); err == nil && end > 0 && q.p.B.From-q.p.A.Asked >= end {
			return option + ": " + idle
		}
	}
	return ""
}
