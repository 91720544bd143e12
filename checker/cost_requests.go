package checker

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// This file is about the cost of a lock: the requests that servers received from each client process, of a lock that
// states [promise.BoundedCost]. Counts come from samples, and it is not known when a request between two of them
// arrived: so a window contains at least the requests between its samples.

// The bounds of [promise.BoundedCost] are several times the cost of a lock whose waiters are woken by messages. See
// cost_storms.go for the bounds within a second.
const (
	quietAfter   = 3 * time.Second  // after its last hold or operation at a key, a process sends nothing about it
	lingerAtMost = 10 * time.Second // for which a channel is subscribed that nobody waits at
	fewChannels  = 4                // that a process may always be subscribed to
)

// requestPoint is the requests of a process in one sample.
type requestPoint struct {
	sent, time time.Duration
	*history.Received
}

// requestSeries are the requests of one process at one node, in the order of time.
type requestSeries struct {
	node            string
	client, clients int // clients that share its connections
	points          []requestPoint
	latest          *history.Received
}

// has reports whether a client is one of the process.
func (s *requestSeries) has(client int) bool {
	return client >= s.client && client < s.client+s.clients
}

// requestSeries reads the samples up to the last operation of a client: later the harness probes the lock through one.
// Of a process that a sample with requests leaves out, nothing has changed.
func (v *view) requestSeries() (all []requestSeries) {
	type source struct {
		node   string
		client int
	}
	index := make(map[source]int)
	byNode, end := make(map[string][]int), v.lastActivity()
	for _, x := range refs(v.h.Samples) {
		if x.Time > end {
			continue
		}
		for _, r := range refs(x.Received) {
			at, known := index[source{x.Node, r.Client}]
			if !known {
				at = len(all)
				index[source{x.Node, r.Client}] = at
				byNode[x.Node] = append(byNode[x.Node], at)
				all = append(all, requestSeries{node: x.Node, client: r.Client, clients: max(1, r.Clients)})
			}
			all[at].latest = r
		}
		for _, at := range byNode[x.Node] {
			if len(x.Received) == 0 {
				break
			}
			all[at].points = append(all[at].points, requestPoint{x.Sent, x.Time, all[at].latest})
		}
	}
	return all
}

// knownUntil is until when the client of a hold may take it for its own, and ask for it: until it released it, or
// reported its loss. That the lock was released by force it finds out when it asks.
func (v *view) knownUntil(h *hold) (until time.Duration) {
	if h.ending == endReleased {
		return h.freeBy
	}
	for _, n := range refs(v.h.Notices) {
		if n.F == history.Lost && n.Owner == h.owner && n.Key == h.key && n.Time >= h.from {
			until = max(until, n.Time)
		}
	}
	if until == 0 {
		return never
	}
	return until
}

// useTimes are the times in which a process used a key: its operations and its holds, longest possible, merged.
func (v *view) useTimes(of *requestSeries) (byKey [][]segment) {
	byKey = make([][]segment, len(v.h.Keys))
	for i, s := range refs(v.h.Spans) {
		if of.has(v.client(i)) {
			byKey[s.Key] = append(byKey[s.Key], segment{s.Call, s.Return})
		}
	}
	e := v.freeTimes().extents
	for _, h := range refs(e.holds) {
		if of.has(v.client(h.span)) {
			byKey[h.key] = append(byKey[h.key], segment{h.from, v.knownUntil(h)})
		}
	}
	for key := range byKey {
		byKey[key] = mergedSegments(byKey[key])
	}
	return byKey
}

// mergedSegments sorts all and joins overlapping ones.
func mergedSegments(all []segment) (out []segment) {
	slices.SortFunc(all, func(a, b segment) int { return cmp.Compare(a.from, b.from) })
	for _, s := range all {
		if n := len(out) - 1; n >= 0 && s.from <= out[n].until {
			out[n].until = max(out[n].until, s.until)
			continue
		}
		out = append(out, s)
	}
	return out
}

// lastSpan is the last operation of a process that was invoked before t, at a key or (none) at any; none: it has none.
func (v *view) lastSpan(of *requestSeries, key int32, t time.Duration) (last int32) {
	last = none
	for i, s := range refs(v.h.Spans) {
		if s.Call <= t && (key == none || s.Key == key) && s.Ended >= 0 && of.has(v.client(i)) &&
			(last == none || s.Call >= v.h.Spans[last].Call) {
			last = i
		}
	}
	return last
}

// excess is that a process sent more requests, or kept more subscriptions, than a lock with bounded cost does.
type excess struct {
	rule, text string // see [view.excessViolation]
	of         requestSeries
	key        int32 // none: it is about no single key
	span       int32
	during     segment
	count      int
	allowed    int
}

// addExcess keeps the subject of a finding of rule.
func (v *view) addExcess(found *findings, rule int, x excess) {
	if x.span == none {
		return
	}
	found.add(finding{rule: rule, x: none, y: x.span, start: x.during.from, end: x.during.until, note: x})
}

// judgeHerds finds processes with several waiting clients that sent more requests about a key than their operations
// need plus one for each time that the lock became free: such a process woke waiters that could not be granted the
// lock. A history with faults is not judged, because requests without a reply are resent. Nor is a key about which
// several servers were asked: masters that have no common queue are polled.
func (v *view) judgeHerds(o Options, found *findings) {
	if !o.states(promise.BoundedCost) || o.kind() == ReadersWriterLock || len(v.faultTimes()) > 0 {
		return
	}
	sums := make(map[[2]int32]*excess) // by process and key
	var order []*excess
	for _, of := range v.requestSeries() {
		if of.clients < 2 {
			continue
		}
		for key, name := range v.h.Keys {
			count := of.points[len(of.points)-1].Keys[name]
			at := [2]int32{int32(of.client), int32(key)}
			switch {
			case count == 0:
			case sums[at] != nil:
				sums[at].span = none // it asks several masters: see addExcess
			default:
				sums[at] = &excess{rule: "a release wakes no more waiters of a process than can be granted the lock",
					text: "%[1]s sent $note %[2]d requests about $lock by $end, where its operations and the releases need at " +
						"most %[3]d", of: of, key: int32(key), span: v.lastSpan(&of, int32(key), v.h.End),
					during: segment{0, of.points[len(of.points)-1].time}, count: count}
				order = append(order, sums[at])
			}
		}
	}
	for _, x := range order {
		if x.allowed = v.requestsNeeded(&x.of, x.key, o); x.count > x.allowed {
			v.addExcess(found, wokenTooMany, *x)
		}
	}
}

// askAgain is after how long a waiter may ask again by itself: a second, or less if it polls more often.
func askAgain(o Options) time.Duration {
	if o.Poll > 0 {
		return max(min(time.Second, o.Poll), shortestPause)
	}
	return time.Second
}

// shortestPause is the shortest time that is assumed between two requests of a waiter.
const shortestPause = 10 * time.Millisecond

// leaseMayBeOver is after how long a waiter may ask again that knows when the lease ends for which it was refused, and
// that was renewed meanwhile: no later than askAgain.
func (v *view) leaseMayBeOver(key int32, o Options) time.Duration {
	shortest := askAgain(o)
	for _, s := range refs(v.h.Spans) {
		if s.Key == key && s.Outcome == history.OK && s.Valid > 0 && s.Op != history.OpInspect {
			shortest = min(shortest, (s.Valid-s.Return)*2/3)
		}
	}
	return max(shortest, shortestPause)
}

// requestsNeeded is how many requests about a key the operations of a process may need.
func (v *view) requestsNeeded(of *requestSeries, key int32, o Options) (n int) {
	ends, waiting, held, first := 0, time.Duration(0), time.Duration(0), never
	for i, s := range refs(v.h.Spans) {
		if s.Key != key {
			continue
		}
		first = min(first, s.Call)
		if s.Op == history.OpRelease || s.Op == history.OpForceRelease || setsSize(s) {
			ends += max(1, int(v.h.Limit(key)))
		}
		if !of.has(v.client(i)) {
			continue
		}
		n += 3
		if isAcquire(s.Op) {
			ends++ // its lease may end
		}
		waiting += min(s.Return, v.h.End) - s.Call
	}
	for _, h := range refsAt(v.holds, v.byKey[key]) {
		if of.has(v.client(h.span)) {
			held += 4 * (min(h.until, v.h.End) - h.from) // it may be renewed
		}
	}
	n += ends + 10
	over := v.leaseMayBeOver(key, o)
	if o.states(promise.Fair) && v.h.Limit(key) == 0 { // the others learn only that it has ended
		n += int(waiting / askAgain(o))
		waiting = max(0, v.h.End-first) // one waiter at a time is the first
	}
	return n + int((waiting+held)/over)
}

// judgeQuiet finds requests about a key by a process none of whose clients has held or requested the key for
// quietAfter, such as renewals of a hold that was released.
func (v *view) judgeQuiet(o Options, found *findings) {
	if !o.states(promise.BoundedCost) {
		return
	}
	dis := v.allDisturbances(o)
	for _, of := range v.requestSeries() {
		usage := v.useTimes(&of)
		for key, name := range v.h.Keys {
			for n, u := range usage[key] {
				gap := segment{later(u.until, quietAfter), v.h.End}
				if n+1 < len(usage[key]) {
					gap.until = usage[key][n+1].from
				}
				count, at := of.within(gap, name)
				if count < 2 || dis.mayAffect(segment{u.until, at}, anyClient, history.AffectsTraffic, history.AffectsClients) {
					continue
				}
				v.addExcess(found, requestsLeft, excess{
					"a process that neither holds nor requests a lock sends no requests about it",
					"%[1]s had $lock until $start and did not request it again, but until $end it sent $note %[2]d more requests",
					of, int32(key), v.lastSpan(&of, int32(key), u.until),
					segment{u.until, at}, count, 0})
				break
			}
		}
	}
}

// within is how many requests about a key certainly arrived in s, and when the last of them had.
func (s *requestSeries) within(gap segment, key string) (n int, at time.Duration) {
	first := sort.Search(len(s.points), func(i int) bool { return s.points[i].sent >= gap.from })
	last := sort.Search(len(s.points), func(i int) bool { return s.points[i].time > gap.until }) - 1
	if first >= last {
		return 0, 0
	}
	return s.points[last].Keys[key] - s.points[first].Keys[key], s.points[last].time
}

// judgeChannels finds processes that are subscribed to more channels than keys that they used in the last lingerAtMost
// explain: a program that takes many locks would stay subscribed to all of them.
func (v *view) judgeChannels(o Options, found *findings) {
	if !o.states(promise.BoundedCost) {
		return
	}
	dis := v.allDisturbances(o)
	for _, of := range v.requestSeries() {
		usage := [][]segment(nil)
		for _, p := range of.points {
			if p.Channels <= fewChannels {
				continue
			}
			if usage == nil {
				usage = v.useTimes(&of)
			}
			during, recent := segment{p.sent - lingerAtMost, p.time}, 0
			for _, times := range usage {
				if slices.ContainsFunc(times, func(u segment) bool { return u.until >= during.from && u.from <= during.until }) {
					recent++
				}
			}
			if p.Channels <= fewChannels+2*recent ||
				dis.mayAffect(during, anyClient, history.AffectsTraffic, history.AffectsClients) {
				continue
			}
			v.addExcess(found, channelsLeft, excess{"a process is not subscribed for long to what it does not wait for",
				"%[1]s was subscribed to %[2]d channels at $note at $end, although it had used only %[4]s in the " +
					format.Duration(lingerAtMost) + " before",
				of, none, v.lastSpan(&of, none, p.time), during, p.Channels, recent})
			break
		}
	}
}

// excessViolation describes a finding of this file. In its text %[1]s is the process, %[2]d the count, and %[3]d or, as
// keys, %[4]s the bound.
func (v *view) excessViolation(f finding) Violation {
	x := f.note.(excess)
	who := fmt.Sprintf("client %d", x.of.client)
	if x.of.clients > 1 {
		who = fmt.Sprintf("the process of clients %d to %d", x.of.client, x.of.client+x.of.clients-1)
	}
	f.note = x.of.node
	text := fmt.Sprintf(x.text, who, x.count, x.allowed, format.Count(x.allowed, "key"))
	w := v.word(f, wording{"", nothing, x.rule, text})
	if x.key == none {
		w.Key = ""
	}
	return w
}
