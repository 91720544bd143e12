package reports

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// Causes that lie with a node that had granted the lock and granted it again: it
// restarted, its keys were removed, or its clock was set forward.

// node is the node that granted both holds; "" if it is not one.
func (q *inquiry) node() string {
	if p := q.p; p != nil && !q.r.quorum() && p.granterA == p.granterB && !p.outlived() {
		return p.granterA
	}
	return ""
}

// findRestart: the node that granted the lock restarted without it. A node that did not reply may have been slow, so
// that it is no restart if a fault explains why the key is gone.
func findRestart(q *inquiry) *cause {
	if q.p == nil {
		return q.tokenNotNewer(findRestart)
	}
	node := q.node()
	if node == "" || q.r.byMajority() {
		return nil
	}
	p := q.p
	c := because("%s granted it to %s at %s", q.granter(), p.a, p.a.granted())
	f := q.r.effectOn(node, p.a.Asked, p.b.From, (*injection).endsProcess)
	down, since := q.r.witness.firstDown(node, p.a.From, p.b.From), p.a.From
	switch {
	case f != nil:
		c.blame(f, ", %s", q.restarted(f, 1))
		since = f.effectTime()
	case down != nil && q.r.effectOn(node, p.a.Asked, p.b.From, (*injection).removesKeys) == nil && q.clockAhead(node) == nil:
		c.add(", did not reply at %s", down)
	default:
		return nil
	}
	backWithout := firstOf(q.r.witness.during(node, since, p.b.to), func(x *history.Sample) bool {
		return x.Up && x.Sent >= since && !has(x, p.key, q.r.ownerName(p.a.Owner))
	})
	if backWithout != nil {
		c.add(", replied without the key")
	}
	c.add(" and granted it to %s at %s%s", p.b, p.b.granted(), q.early())
	return c
}

// persistence is how servers keep their data, where the scenario says so.
func (q *inquiry) persistence() string {
	options := q.r.Manifest.Topology.Options
	switch {
	case options["appendonly"] == "yes" && options["appendfsync"] != "":
		return ", `appendfsync " + options["appendfsync"] + "`"
	case options["forceSync"] == "no":
		return ", `forceSync=no`"
	case options["unsafe-no-fsync"] == "yes":
		return ", `--unsafe-no-fsync`"
	}
	return ""
}

// findDeleted: the key was removed from a Redis server.
func findDeleted(q *inquiry) *cause {
	if q.r.byMajority() {
		return nil
	}
	return q.removed()
}

// findDeletedNode: the node (ZooKeeper) or key (etcd) of the holder was removed.
func findDeletedNode(q *inquiry) *cause {
	switch {
	case !q.r.byMajority():
		return nil
	case q.p == nil && q.property == checker.Damage:
		return q.wroteAfterLoss()
	}
	return q.removed()
}

// writes says when the clients of a lost update wrote.
func (q *inquiry) writes() (s sentence) {
	for t := range each(q.r.History.Touches) {
		if q.cites(t.Index) {
			s.add("%s wrote at %s, ", q.r.who(t.Process), eventAt(t.Index, t.Time))
		}
	}
	s.add("over a value that it had not read")
	return s
}

// wroteAfterLoss: the node of a holder was deleted, and the holder reported the loss and still wrote.
func (q *inquiry) wroteAfterLoss() *cause {
	for h := range each(q.r.holds) {
		reported, _, _ := q.r.describe(int(h.Ended)) // the hold may have ended earlier, with its validity
		if h.End != checker.LossReported || reported > q.v.End || q.r.History.Keys[h.Key] != q.v.Key ||
			!slices.Contains(q.v.Clients, h.Client) {
			continue
		}
		f := firstOf(q.r.faults, func(f *injection) bool {
			return f.removesKeys() && len(f.effects) > 0 && f.inject <= h.Until && f.effectTime() >= h.Asked
		})
		if f == nil {
			continue
		}
		c := blame(f, "the %s of %s was removed from %s at %s (%s), and the client reported the loss at %s: %s",
			q.r.entry(), h, f.target, f.took(), f, eventAt(h.Ended, reported), q.writes())
		c.of = &h.Client
		return c
	}
	return nil
}

// removed: a fault removed the key from the node.
func (q *inquiry) removed() *cause {
	if q.p == nil {
		return q.tokenNotNewer((*inquiry).removed)
	}
	node := q.node()
	if q.p.outlived() || node == "" && !q.r.byMajority() {
		return nil
	}
	on := node
	if q.r.byMajority() { // what one member deletes is gone from all
		on = ""
	}
	f := q.r.effectOn(on, q.p.a.Asked, q.p.b.From, (*injection).removesKeys)
	if f == nil {
		return nil
	}
	return blame(f, "the %s was removed from %s at %s (%s): %s", q.r.entry(), f.target, f.took(), f, q.twoGrants(node))
}

// findEarlyExpiry: the clock of the node was set forward.
func findEarlyExpiry(q *inquiry) *cause {
	node := q.node()
	if node == "" {
		return nil
	}
	f := q.clockAhead(node)
	if f == nil {
		return nil
	}
	return blame(f, "the key expired early on %s (%s): %s", f.clockText(), f, q.twoGrants(node))
}

// twoGrants are the two grants by one node; node is empty if no sample shows which.
func (q *inquiry) twoGrants(node string) sentence {
	a, b, by := q.p.a, q.p.b, "it was granted"
	if node != "" {
		by = node + " granted it"
	}
	return say("%s to %s at %s and to %s at %s%s", by, a, a.granted(), b, b.granted(), q.early())
}

// findSlowGrant: masters of a quorum kept the lock for less time than the client was
// promised it, because the lock counts the lease from the last reply to its requests.
func findSlowGrant(q *inquiry) *cause {
	switch {
	case !q.r.quorum() || q.p != nil && q.p.outlived():
		return nil
	case q.p == nil:
		return q.slowGrant(q.holder(), nil)
	}
	if c := q.slowGrant(q.p.a, q.p.b); c != nil {
		return c
	}
	return q.slowGrant(q.p.b, q.p.a)
}

// slowGrant: a was granted too late, and other, if any, was granted the lock meanwhile.
func (q *inquiry) slowGrant(a, other *hold) *cause {
	if a == nil {
		return nil
	}
	promise := q.r.validity(a)
	short := q.keptShorter(a, promise)
	if int32(promise.Event) != a.Granted || len(short) == 0 {
		return nil
	}
	it := "it"
	if q.p == nil {
		it = quote(q.v.Key)
	}
	ends, texts := sentence{}, []string(nil)
	for _, end := range short {
		on := say("on %s by %s", end.Node, end)
		ends.proofs, texts = append(ends.proofs, on.proofs...), append(texts, on.text)
	}
	ends.text = list(texts)
	c := because("%[2]s was granted %[3]s at %[4]s and promised it until %[5]s, but its lease ended %[1]s", ends, a,
		it, a.granted(), promise)
	for _, f := range q.r.effectiveFaults(a.Asked, a.From, (*injection).delaysReplies) {
		c.blame(f, "; %s from %s (%s)", hitText(f, q.r), f.took(), f)
	}
	if other != nil {
		c.add("; %s was granted it at %s", other, other.granted())
	}
	return c
}

// holder is the hold that the violation is about; nil: none.
func (q *inquiry) holder() *hold {
	return firstOf(q.r.holds, func(h *hold) bool {
		return q.cites(h.Granted, q.r.History.Spans[h.Span].Invoked) && q.about(h.Key)
	})
}

// hitText is the nodes that a fault hit, and what it did to them.
func hitText(f *injection, r *Run) string {
	nodes := f.nodes(r)
	if len(nodes) == 0 {
		return subject(f.target) + " " + f.predicate(1)
	}
	return list(nodes) + " " + f.predicate(len(nodes))
}

// keptShorter are the ends of a hold's lease at the nodes that kept it for less time
// than was promised, and of two holds until before the second grant, as their last
// samples with it say; none if a majority kept it for longer. Nodes whose clock was
// changed do not count.
func (q *inquiry) keptShorter(a *hold, promise point) (short []point) {
	w, owner := &q.r.witness, q.r.ownerName(a.Owner)
	until := min(a.to, q.v.End)
	if q.p != nil {
		until = q.p.b.From
	}
	kept := 0
	for _, node := range w.nodes {
		samples := w.during(node, a.Asked, until)
		x := lastOf(samples, func(x *history.Sample) bool { return has(x, q.v.Key, owner) })
		if x == nil {
			continue
		}
		ttl := x.Keys[q.v.Key].TTL
		end, wrong := x.Time+ttl, 5*time.Millisecond+(promise.Time-x.Time)/1000 // as the checker of honesty assumes
		gone := firstOf(samples, func(y *history.Sample) bool { return y.Up && y.Time > x.Time })
		ended := gone == nil && x.Time >= a.From && (q.p == nil || end < until) ||
			gone != nil && gone.Time > x.Sent+ttl-wrong // or it was deleted
		switch {
		case q.clockChanged(node, a.Asked, until):
		case ttl >= 0 && ended && end+wrong < promise.Time:
			short = append(short, point{Event: -1, Node: node, Key: q.v.Key, Until: true, Time: end, Sample: x.Time})
		default:
			kept++
		}
	}
	if kept > len(w.nodes)/2 {
		return nil
	}
	slices.SortStableFunc(short, func(a, b point) int { return cmp.Compare(a.Time, b.Time) })
	return short
}

// clockChanged reports whether a fault changed the clock of node in [from, to].
func (q *inquiry) clockChanged(node string, from, to time.Duration) bool {
	return firstOf(q.r.faults, func(f *injection) bool {
		return f.skews() && f.on(node) && f.effective(from, to)
	}) != nil
}
