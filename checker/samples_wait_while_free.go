package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeWaitsWhileFree finds the acquires that waited for longer than the slack while all samples showed that no server
// had a hold of the key. It judges the times in which, by the operations alone, a client may still have held the key,
// such as the rest of the longest lease of a client that died; [view.unservedWaits] judges the others. A fault that is
// not one of clients may have removed the hold without the waiters' knowledge, so nothing is judged after one. Nor is a
// lock that states multi-key: samples show only one of the locks that it may consist of.
func (v *view) judgeWaitsWhileFree(o Options, found *findings) {
	s := v.samples()
	if s == nil || o.MayBeDown > 0 || v.multiAcquires() != nil || o.states(promise.MultiKey) {
		return
	}
	var q *freeAtServers
	v.longWaits(o.slack(), func(i int32) {
		if x := &v.h.Spans[i]; x.Op != history.OpAcquire || x.Part || v.h.Limit(x.Key) != 0 {
			return
		}
		if q == nil {
			q = v.newFreeAtServers(s, o)
		}
		if p := q.longest(i); p.until-p.from > o.slack() {
			found.add(finding{rule: waitedWhileFree, x: none, y: i, start: p.from, end: p.until})
		}
	})
}

// freeAtServers is the input of judgeWaitsWhileFree.
type freeAtServers struct {
	*nodeSamples
	o        Options
	away     []segment
	until    time.Duration // start of the first fault that is not one of a client
	shared   map[int32]bool
	free     map[int32][]segment // by key, computed when needed: without a hold and without a grant
	hindered map[int32][]segment // the same; see hinderedTimes
}

func (v *view) newFreeAtServers(s *nodeSamples, o Options) *freeAtServers {
	q := &freeAtServers{nodeSamples: s, o: o, until: never,
		shared: make(map[int32]bool), free: make(map[int32][]segment), hindered: make(map[int32][]segment)}
	q.away = o.excusedBy(wakeOutage, v.outages(o).windows)
	for _, f := range v.faultTimes() {
		if f.client() < 0 {
			q.until = min(q.until, f.from)
		}
	}
	for _, k := range v.sharedKeys() {
		q.shared[k.key] = true
	}
	return q
}

// longest is the longest time for which acquire i waited without a reason.
func (q *freeAtServers) longest(i int32) (best segment) {
	s := &q.h.Spans[i]
	if _, known := q.free[s.Key]; !known {
		q.free[s.Key], q.hindered[s.Key] = q.freeInSamples(s.Key), q.hinderedTimes(s.Key)
	}
	hindered := within(q.hindered[s.Key], segment{s.Call, s.Return})
	for _, f := range within(q.free[s.Key], segment{s.Call, s.Return}) {
		wait := segment{max(f.from, s.Call), min(f.until, s.Return, q.until)}
		if wait.until-wait.from <= q.o.slack() {
			continue
		}
		if p := longestOutside(wait, q.away, hindered, q.clientPauses()[q.client(i)]); p.until-p.from > best.until-best.from {
			best = p
		}
	}
	return best
}

// freeInSamples are the times in which all samples of masters show that a key is no longer held. They end at each
// grant, which may have been released between two samples.
func (q *freeAtServers) freeInSamples(key int32) (free []segment) {
	busy, masters, last := make(map[string]bool), len(q.nodes), time.Duration(0)
	from, seen, known := never, make(map[string]bool), false
	grants := q.grantsOf(key)
	end := func(until time.Duration) {
		for len(grants) > 0 && grants[0] < until {
			if from < grants[0] {
				free = append(free, segment{from, grants[0]})
				from = grants[0]
			}
			grants = grants[1:]
		}
		if from < until {
			free = append(free, segment{from, until})
		}
		from = never
	}
	for i, x := range refs(q.h.Samples) {
		master := x.Up && x.Role == "master"
		if !master && !seen[x.Node] {
			continue
		}
		seen[x.Node], last = true, x.Sent
		if _, held := q.valueAt(i, key); held || !master {
			busy[x.Node], known = true, known || held
		} else {
			delete(busy, x.Node)
		}
		switch isFree := known && len(seen) == masters && len(busy) == 0; {
		case isFree && from == never:
			from = x.Time
		case !isFree && from != never:
			end(x.Sent)
		}
	}
	end(last)
	return free
}

// grantsOf is when the grants of a key returned.
func (q *freeAtServers) grantsOf(key int32) (at []time.Duration) {
	for _, s := range refs(q.h.Spans) {
		if s.Key == key && isAcquire(s.Op) && s.Outcome == history.OK {
			at = append(at, s.Return)
		}
	}
	slices.Sort(at)
	return at
}

// hinderedTimes are the times in which an earlier request may have kept a waiter from a free key, in a queue or as a
// writer that waits, and the times in which the operations alone show that the key was free.
func (q *freeAtServers) hinderedTimes(key int32) (all []segment) {
	d := q.freeTimes()
	for _, g := range d.gaps {
		if g.key == key {
			all = append(all, g.segment)
		}
	}
	if !q.o.states(promise.Fair) && !q.shared[key] {
		return mergedSegments(all)
	}
	dis := q.disturbances(q.o)
	for n := range q.h.Spans {
		s, i := &q.h.Spans[n], int32(n)
		if s.Key != key || s.Op != history.OpAcquire || s.Outcome != history.Info && !q.mayLinger(i, dis) {
			continue
		}
		left := d.extents.dequeued(i)
		if x := q.firstNamed(ownerKey{s.Owner, s.Key}, segment{s.Call, left}); x != nil {
			left = x.Time // it was granted the lock, and has left the queue
		}
		all = append(all, segment{s.Call, left})
	}
	for client, pauses := range q.clientPauses() {
		crash, crashed := d.extents.crashed[client]
		for _, p := range pauses {
			if crashed && crash <= later(p.from, q.o.slack()) {
				continue // how long it may stay in the queue depends on its request, see above
			}
			all = append(all, segment{p.from, later(p.until, q.o.slack())})
		}
	}
	return mergedSegments(all)
}
