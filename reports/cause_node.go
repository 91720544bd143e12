package reports

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Causes that lie with a node that had granted the lock and granted it again: it
// restarted, its keys were removed, or its clock was set forward.

func restartMechanism() mechanism {
	return mechanism{name: "forgotten-in-restart", find: findRestart, advice: []adviceItem{{
		Text: "A node that forgets its grants breaks the lock: use `appendonly yes` with `appendfsync always`.",
		Cost: "an fsync for each grant, renewal and release",
	}, {
		Text: "Or keep a restarted node away from clients for longer than the longest lease (the delayed restart of " +
			"RedLock).",
		Cost: "the node is missing meanwhile, and a clock has to measure that time",
	}}}
}

func deletedMechanism() mechanism {
	return mechanism{name: "key-removed", find: findDeleted, advice: []adviceItem{{
		Text: "Keep locks on a server of their own, with `maxmemory-policy noeviction` and without FLUSHALL, FLUSHDB and " +
			"DEL for operators (ACL).",
		Cost: "one more server; a full memory then refuses new locks instead of dropping old ones",
	}}}
}

// deletedNodeMechanism is that of ZooKeeper and etcd, which evict nothing and have no FLUSHALL.
func deletedNodeMechanism() mechanism {
	return mechanism{name: "key-removed", find: findDeletedNode, advice: []adviceItem{{
		Text: "Allow only the clients of the lock to delete its nodes: ACLs on the nodes (ZooKeeper), or authentication " +
			"and a role for their range of keys (etcd).",
		Cost: "credentials for each client; a client of the lock can still delete what another one holds",
	}, {
		Text: "Use fencing at the guarded resource as well: a holder that does not watch its own node is not notified " +
			"of the deletion, and one that does may already have decided what to write.",
		Cost: "the resource has to store and compare the token of every write",
	}}}
}

func earlyExpiryMechanism() mechanism {
	return mechanism{name: "expired-early", find: findEarlyExpiry, advice: []adviceItem{{
		Text: "Redis counts leases on the wall clock: slew clocks (`chronyd`, `ntpd -x`) and never step them while locks " +
			"are held.",
		Cost: "a clock that is far off takes a long time to correct",
	}, quorumAdvice()}}
}

func slowGrantMechanism() mechanism {
	return mechanism{name: "granted-too-late", find: findSlowGrant, advice: []adviceItem{{
		Text: "Count the validity from before the first request, and release the lock if no validity is left (RedLock, " +
			"step 3).",
		Cost: "an acquire fails when a majority is slow",
	}}}
}

// node is the node that granted both holds; "" if it is not one.
func (q *inquiry) node() string {
	if p := q.p; p != nil && !q.r.quorum() && p.granterA == p.granterB && !p.outlived() {
		return p.granterA
	}
	return ""
}

// restartFaults are those after which a node starts again.
func restartFaults() []string {
	return []string{"restart-empty", "power-loss", "restart", "kill"}
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
	p, s, w := q.p, q.s, &q.r.witness
	text := fmt.Sprintf("%s granted it to %s at %s", q.granter(), clientName(p.a.Client), s.instant(p.a.granted()))
	c := &cause{}
	f := q.r.effectOn(node, p.a.Asked, p.b.From, restartFaults()...)
	down, wasDown := w.firstDown(node, p.a.From, p.b.From)
	switch {
	case f != nil:
		c.faults = []*injection{f}
		text += ", " + q.restarted(f, 1)
	case wasDown && q.r.effectOn(node, p.a.Asked, p.b.From, removalFaults()...) == nil && q.clockAhead(node) == nil:
		text += fmt.Sprintf(", did not reply at %s", s.instant(sampleAt(down)))
	default:
		return nil
	}
	if q.backWithout(node) {
		text += ", replied without the key"
	}
	c.text = text + fmt.Sprintf(" and granted it to %s at %s%s", clientName(p.b.Client), s.instant(p.b.granted()),
		q.early())
	return c
}

// backWithout reports whether a sample after the last restart of node, or after it
// did not reply, is without the first hold.
func (q *inquiry) backWithout(node string) bool {
	p := q.p
	since := p.a.From
	if f := q.r.effectOn(node, p.a.Asked, p.b.From, restartFaults()...); f != nil {
		since = f.effectTime()
	}
	return slices.ContainsFunc(q.r.witness.during(node, since, p.b.to), func(x history.Sample) bool {
		return x.Up && x.Sent >= since && !has(&x, p.key, q.r.ownerName(p.a.Owner))
	})
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

// effectiveFaults are the faults of these names that were in effect at some time of an interval.
func (r *Run) effectiveFaults(from, until time.Duration, names ...string) (all []*injection) {
	for i := range r.faults {
		if f := &r.faults[i]; f.is(names...) && f.effective(from, until) {
			all = append(all, f)
		}
	}
	return all
}

// effectOn is the last fault of these names that took effect on node, or on any if
// that is empty, in [from, to]; nil if there is none.
func (r *Run) effectOn(node string, from, to time.Duration, names ...string) *injection {
	var last *injection
	for i := range r.faults {
		f := &r.faults[i]
		if f.is(names...) && (node == "" || f.on(node)) && len(f.effects) > 0 && f.effectTime() >= from && f.inject <= to {
			last = f
		}
	}
	return last
}

// nodeDeleted is the fault that removes what a holder has at ZooKeeper or etcd.
const nodeDeleted = "node-deleted"

// removals are the faults that remove keys, and what they did to the key.
func removals() map[string]string {
	return map[string]string{
		"flushall": "deleted by FLUSHALL", "key-deleted": "deleted by DEL", "eviction": "evicted", nodeDeleted: "deleted",
	}
}

// removalFaults are the faults that remove keys.
func removalFaults() []string { return slices.Sorted(maps.Keys(removals())) }

// findDeleted: the key was removed from a Redis server.
func findDeleted(q *inquiry) *cause {
	return q.removed(slices.DeleteFunc(removalFaults(), func(name string) bool { return name == nodeDeleted }))
}

// findDeletedNode: the node (ZooKeeper) or key (etcd) of the holder was deleted.
func findDeletedNode(q *inquiry) *cause {
	if q.p == nil && q.property == checker.Damage {
		return q.wroteAfterLoss()
	}
	return q.removed([]string{nodeDeleted})
}

// writes says when the clients of a lost update wrote.
func (q *inquiry) writes() string {
	var parts []string
	for i := range q.r.History.Touches {
		if t := &q.r.History.Touches[i]; slices.Contains(q.v.Events, int(t.Index)) {
			client := t.Process.Client(q.r.History.Clients)
			parts = append(parts, fmt.Sprintf("%s wrote at %s", clientName(client), q.s.instant(eventAt(t.Index, t.Time))))
		}
	}
	return strings.Join(parts, ", ") + ", over a value that it had not read"
}

// wroteAfterLoss: the node of a holder was deleted, and the holder reported the loss and still wrote.
func (q *inquiry) wroteAfterLoss() *cause {
	for i := range q.r.holds {
		h := &q.r.holds[i]
		reported, _, _ := q.r.describe(int(h.Ended)) // the hold may have ended earlier, with its validity
		if h.End != checker.LossReported || reported > q.v.End || q.r.History.Keys[h.Key] != q.v.Key ||
			!slices.Contains(q.v.Clients, h.Client) {
			continue
		}
		for j := range q.r.faults {
			f := &q.r.faults[j]
			if !f.is(nodeDeleted) || len(f.effects) == 0 || f.inject > h.Until || f.effectTime() < h.Asked {
				continue
			}
			return &cause{faults: []*injection{f}, of: &h.Client, text: fmt.Sprintf(
				"the %s of %s was deleted on %s at %s (%s), and the client reported the loss at %s: %s", q.r.entry(),
				clientName(h.Client), f.target, q.s.instant(f.took()), quote(f.name), q.s.instant(eventAt(h.Ended, reported)),
				q.writes())}
		}
	}
	return nil
}

// removed: one of these faults removed the key from the node.
func (q *inquiry) removed(names []string) *cause {
	if q.p == nil {
		return q.tokenNotNewer(func(q *inquiry) *cause { return q.removed(names) })
	}
	node := q.node()
	if q.p.outlived() || node == "" && !q.r.byMajority() {
		return nil
	}
	on := node
	if q.r.byMajority() { // what one member deletes is gone from all
		on = ""
	}
	f := q.r.effectOn(on, q.p.a.Asked, q.p.b.From, names...)
	if f == nil {
		return nil
	}
	return &cause{faults: []*injection{f}, text: fmt.Sprintf("the %s was %s on %s at %s (%s): %s", q.r.entry(),
		removals()[f.name], f.target, q.s.instant(f.took()), quote(f.name), q.twoGrants(node))}
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
	return &cause{faults: []*injection{f}, text: fmt.Sprintf("the key expired early on %s (%s): %s", q.clockText(f),
		quote(f.name), q.twoGrants(node))}
}

// twoGrants are the two grants by one node; node is empty if no sample shows which.
func (q *inquiry) twoGrants(node string) string {
	p, s, text := q.p, q.s, "%s granted it to %s at %s and to %s at %s%s"
	if node == "" {
		text = "%sit was granted to %s at %s and to %s at %s%s"
	}
	return fmt.Sprintf(text, node, clientName(p.a.Client),
		s.instant(p.a.granted()), clientName(p.b.Client), s.instant(p.b.granted()), q.early())
}

// nodes are the nodes among the targets of a fault.
func (f *injection) nodes(r *Run) []string {
	var all []string
	for _, n := range r.Manifest.Nodes {
		if f.on(n.Name) {
			all = append(all, n.Name)
		}
	}
	return all
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
	s := q.s
	it := "it"
	if q.p == nil {
		it = quote(q.v.Key)
	}
	ends := format.Texts(short, func(end point) string { return fmt.Sprintf("on %s by %s", end.Node, s.instant(end)) })
	c := &cause{text: fmt.Sprintf("%s was granted %s at %s and promised it until %s, but its lease ended %s",
		clientName(a.Client), it, s.instant(a.granted()), s.instant(promise), list(ends))}
	for _, f := range q.r.effectiveFaults(a.Asked, a.From, delayFaults()...) {
		c.faults = append(c.faults, f)
		c.text += fmt.Sprintf("; %s from %s (%s)", hitText(f, q.r), s.instant(f.took()), quote(f.name))
	}
	if other != nil {
		c.text += fmt.Sprintf("; %s was granted it at %s", clientName(other.Client), s.instant(other.granted()))
	}
	return c
}

// delayFaults are those that make servers reply late.
func delayFaults() []string {
	return []string{"slow-node", "latency", "jitter", "bandwidth", "pause-node", "reply-late", "slow-disk"}
}

// holder is the hold that the violation is about; nil: none.
func (q *inquiry) holder() *hold {
	for i := range q.r.holds {
		h := &q.r.holds[i]
		for _, e := range []int32{h.Granted, q.r.History.Spans[h.Span].Invoked} {
			if slices.Contains(q.v.Events, int(e)) && q.r.keyName(h.Key) == q.v.Key {
				return h
			}
		}
	}
	return nil
}

// hitText is the nodes that a fault hit, and what it did to them.
func hitText(f *injection, r *Run) string {
	nodes := f.nodes(r)
	if len(nodes) == 0 {
		return subject(f.target) + " " + faultVerb(f.name)
	}
	return list(nodes) + " " + faultVerbs(f.name, len(nodes))
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
		last := -1
		for i := range samples {
			if has(&samples[i], q.v.Key, owner) {
				last = i
			}
		}
		if last < 0 {
			continue
		}
		x := &samples[last]
		ttl := x.Keys[q.v.Key].TTL
		end, wrong := x.Time+ttl, 5*time.Millisecond+(promise.Time-x.Time)/1000 // as the checker of honesty assumes
		gone := slices.IndexFunc(samples[last+1:], func(x history.Sample) bool { return x.Up })
		ended := gone < 0 && x.Time >= a.From && (q.p == nil || end < until) ||
			gone >= 0 && samples[last+1+gone].Time > x.Sent+ttl-wrong // or it was deleted
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
	return slices.ContainsFunc(q.r.faults, func(f injection) bool {
		return f.is("clock-jump", "clock-drift") && f.on(node) && f.effective(from, to)
	})
}
