package wakeup

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/servers"
	"github.com/lockchaos/lockchaos/checker/internal/waiting"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeWaitsWhileFree finds the acquires that waited for longer than the slack while all samples showed that no server
// had a hold of the key. It judges the times in which, by the operations alone, a client may still have held the key,
// such as the rest of the longest lease of a client that died; [waiting.UnservedWaits] judges the others. A fault that
// is not one of clients may have removed the hold without the waiters' knowledge, so nothing is judged after one. Nor
// is a lock that states multi-key: samples show only one of the locks that it may consist of.
func judgeWaitsWhileFree(v *bounds.View, o given.Options, found *finding.Findings) {
	s := v.Samples()
	if s == nil || o.MayBeDown > 0 || v.MultiAcquires() != nil || o.States(promise.MultiKey) {
		return
	}
	var q *freeAtServers
	v.LongWaits(o.Slack(), func(i int32) {
		if x := &v.H.Spans[i]; x.Op != history.OpAcquire || x.Part || v.H.Limit(x.Key) != 0 {
			return
		}
		if q == nil {
			q = newFreeAtServers(v, s, o)
		}
		if p := q.longest(i); p.Until-p.From > o.Slack() {
			found.Add(finding.Finding{Rule: waitedWhileFree, X: refs.None, Y: i, Start: p.From, End: p.Until})
		}
	})
}

// freeAtServers is the input of judgeWaitsWhileFree.
type freeAtServers struct {
	*bounds.View
	servers  *servers.NodeSamples
	o        given.Options
	away     []segment.Segment
	until    time.Duration // start of the first fault that is not one of a client
	shared   map[int32]bool
	free     map[int32][]segment.Segment // by key, computed when needed: without a hold and without a grant
	hindered map[int32][]segment.Segment // the same; see hinderedTimes
}

func newFreeAtServers(v *bounds.View, s *servers.NodeSamples, o given.Options) *freeAtServers {
	q := &freeAtServers{View: v, servers: s, o: o, until: segment.Never,
		shared: make(map[int32]bool), free: make(map[int32][]segment.Segment), hindered: make(map[int32][]segment.Segment)}
	q.away = o.ExcusedBy(wakeOutage, v.Outages(o).Windows)
	for _, f := range v.FaultTimes() {
		if f.Client() < 0 {
			q.until = min(q.until, f.From)
		}
	}
	for _, k := range waiting.SharedKeys(v) {
		q.shared[k.Key] = true
	}
	return q
}

// longest is the longest time for which acquire i waited without a reason.
func (q *freeAtServers) longest(i int32) (best segment.Segment) {
	s := &q.H.Spans[i]
	if _, known := q.free[s.Key]; !known {
		q.free[s.Key], q.hindered[s.Key] = q.freeInSamples(s.Key), q.hinderedTimes(s.Key)
	}
	hindered := segment.Within(q.hindered[s.Key], segment.Of(s.Call, s.Return))
	for _, f := range segment.Within(q.free[s.Key], segment.Of(s.Call, s.Return)) {
		wait := segment.Of(max(f.From, s.Call), min(f.Until, s.Return, q.until))
		if wait.Until-wait.From <= q.o.Slack() {
			continue
		}
		if p := segment.LongestOutside(wait, q.away, hindered,
			q.ClientPauses()[q.Client(i)]); p.Until-p.From > best.Until-best.From {
			best = p
		}
	}
	return best
}

// freeInSamples are the times in which all samples of masters show that a key is no longer held. They end at each
// grant, which may have been released between two samples.
func (q *freeAtServers) freeInSamples(key int32) (free []segment.Segment) {
	busy, masters, last := make(map[string]bool), len(q.servers.Nodes), time.Duration(0)
	from, seen, known := segment.Never, make(map[string]bool), false
	grants := q.grantsOf(key)
	end := func(until time.Duration) {
		for len(grants) > 0 && grants[0] < until {
			if from < grants[0] {
				free = append(free, segment.Of(from, grants[0]))
				from = grants[0]
			}
			grants = grants[1:]
		}
		if from < until {
			free = append(free, segment.Of(from, until))
		}
		from = segment.Never
	}
	for i, x := range refs.All(q.H.Samples) {
		master := x.Up && x.Role == "master"
		if !master && !seen[x.Node] {
			continue
		}
		seen[x.Node], last = true, x.Sent
		if _, held := q.servers.ValueAt(i, key); held || !master {
			busy[x.Node], known = true, known || held
		} else {
			delete(busy, x.Node)
		}
		switch isFree := known && len(seen) == masters && len(busy) == 0; {
		case isFree && from == segment.Never:
			from = x.Time
		case !isFree && from != segment.Never:
			end(x.Sent)
		}
	}
	end(last)
	return free
}

// grantsOf is when the grants of a key returned.
func (q *freeAtServers) grantsOf(key int32) (at []time.Duration) {
	for _, s := range refs.All(q.H.Spans) {
		if s.Key == key && excuse.IsAcquire(s.Op) && s.Outcome == history.OK {
			at = append(at, s.Return)
		}
	}
	slices.Sort(at)
	return at
}

// hinderedTimes are the times in which an earlier request may have kept a waiter from a free key, in a queue or as a
// writer that waits, and the times in which the operations alone show that the key was free.
func (q *freeAtServers) hinderedTimes(key int32) (all []segment.Segment) {
	d := q.FreeTimes()
	for _, g := range d.Gaps {
		if g.Key == key {
			all = append(all, g.Segment)
		}
	}
	if !q.o.States(promise.Fair) && !q.shared[key] {
		return segment.MergedSegments(all)
	}
	dis := q.Disturbances(q.o)
	for n := range q.H.Spans {
		s, i := &q.H.Spans[n], int32(n)
		if s.Key != key || s.Op != history.OpAcquire || s.Outcome != history.Info && !q.MayLinger(i, dis) {
			continue
		}
		left := d.Extents.Dequeued(i)
		if x := q.servers.FirstNamed(ledger.Of(s), segment.Of(s.Call, left)); x != nil {
			left = x.Time // it was granted the lock, and has left the queue
		}
		all = append(all, segment.Of(s.Call, left))
	}
	for client, pauses := range q.ClientPauses() {
		crash, crashed := d.Extents.Crashed[client]
		for _, p := range pauses {
			if crashed && crash <= segment.Later(p.From, q.o.Slack()) {
				continue // how long it may stay in the queue depends on its request, see above
			}
			all = append(all, segment.Of(p.From, segment.Later(p.Until, q.o.Slack())))
		}
	}
	return segment.MergedSegments(all)
}
