// Package cost counts the requests of processes, as the servers saw them.
package cost

import (
	"fmt"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// This file is about the cost of a lock: the requests that servers received from each client process, of a lock that
// states [promise.BoundedCost]. Counts come from samples, and it is not known when a request between two of them
// arrived: so a window contains at least the requests between its samples.

// The bounds of [promise.BoundedCost] are several times the cost of a lock whose waiters are woken by messages. See
// storms.go for the bounds within a second.
const (
	QuietAfter   = 3 * time.Second  // after its last hold or operation at a key, a process sends nothing about it
	LingerAtMost = 10 * time.Second // for which a channel is subscribed that nobody waits at
	FewChannels  = 4                // that a process may always be subscribed to
)

// RequestPoint is the requests of a process in one sample.
type RequestPoint struct {
	Sent, Time time.Duration
	*history.Received
}

// requestSeries are the requests of one process at one node, in the order of time.
type requestSeries struct {
	node            string
	Client, Clients int // clients that share its connections
	Points          []RequestPoint
	latest          *history.Received
}

// has reports whether a client is one of the process.
func (s *requestSeries) has(client int) bool {
	return client >= s.Client && client < s.Client+s.Clients
}

// RequestSeries reads the samples up to the last operation of a client: later the harness probes the lock through one.
// Of a process that a sample with requests leaves out, nothing has changed.
func RequestSeries(v *bounds.View) (all []requestSeries) {
	type source struct {
		node   string
		client int
	}
	index := make(map[source]int)
	byNode, end := make(map[string][]int), v.LastActivity()
	for _, x := range refs.All(v.H.Samples) {
		if x.Time > end {
			continue
		}
		for _, r := range refs.All(x.Received) {
			at, known := index[source{x.Node, r.Client}]
			if !known {
				at = len(all)
				index[source{x.Node, r.Client}] = at
				byNode[x.Node] = append(byNode[x.Node], at)
				all = append(all, requestSeries{node: x.Node, Client: r.Client, Clients: max(1, r.Clients)})
			}
			all[at].latest = r
		}
		for _, at := range byNode[x.Node] {
			if len(x.Received) == 0 {
				break
			}
			all[at].Points = append(all[at].Points, RequestPoint{x.Sent, x.Time, all[at].latest})
		}
	}
	return all
}

// knownUntil is until when the client of a hold may take it for its own, and ask for it: until it released it, or
// reported its loss. That the lock was released by force it finds out when it asks.
func knownUntil(v *bounds.View, h *ledger.Hold) (until time.Duration) {
	if h.Ending == ledger.EndReleased {
		return h.FreeBy
	}
	for _, n := range refs.All(v.H.Notices) {
		if n.F == history.Lost && n.Owner == h.Owner && n.Key == h.Key && n.Time >= h.From {
			until = max(until, n.Time)
		}
	}
	if until == 0 {
		return segment.Never
	}
	return until
}

// UseTimes are the times in which a process used a key: its operations and its holds, longest possible, merged.
func UseTimes(v *bounds.View, of *requestSeries) (byKey [][]segment.Segment) {
	byKey = make([][]segment.Segment, len(v.H.Keys))
	for i, s := range refs.All(v.H.Spans) {
		if of.has(v.Client(i)) {
			byKey[s.Key] = append(byKey[s.Key], segment.Of(s.Call, s.Return))
		}
	}
	e := v.FreeTimes().Extents
	for _, h := range refs.All(e.Holds) {
		if of.has(v.Client(h.Span)) {
			byKey[h.Key] = append(byKey[h.Key], segment.Of(h.From, knownUntil(v, h)))
		}
	}
	for key := range byKey {
		byKey[key] = segment.MergedSegments(byKey[key])
	}
	return byKey
}

// LastSpan is the last operation of a process that was invoked before t, at a key or (none) at any; none: it has none.
func LastSpan(v *bounds.View, of *requestSeries, key int32, t time.Duration) (last int32) {
	last = refs.None
	for i, s := range refs.All(v.H.Spans) {
		if s.Call <= t && (key == refs.None || s.Key == key) && s.Ended >= 0 && of.has(v.Client(i)) &&
			(last == refs.None || s.Call >= v.H.Spans[last].Call) {
			last = i
		}
	}
	return last
}

// Excess is that a process sent more requests, or kept more subscriptions, than a lock with bounded cost does.
type Excess struct {
	Rule, Text string // see [ExcessViolation]
	Of         requestSeries
	Key        int32 // none: it is about no single key
	Span       int32
	During     segment.Segment
	Count      int
	Allowed    int
}

// AddExcess keeps the subject of a finding of rule.
func AddExcess(v *bounds.View, found *finding.Findings, rule int, x Excess) {
	if x.Span == refs.None {
		return
	}
	found.Add(finding.Finding{Rule: rule, X: refs.None, Y: x.Span, Start: x.During.From, End: x.During.Until, Note: x})
}

// askAgain is after how long a waiter may ask again by itself: a second, or less if it polls more often.
func askAgain(o given.Options) time.Duration {
	if o.Options.Poll > 0 {
		return max(min(time.Second, o.Options.Poll), shortestPause)
	}
	return time.Second
}

// shortestPause is the shortest time that is assumed between two requests of a waiter.
const shortestPause = 10 * time.Millisecond

// leaseMayBeOver is after how long a waiter may ask again that knows when the lease ends for which it was refused, and
// that was renewed meanwhile: no later than askAgain.
func leaseMayBeOver(v *bounds.View, key int32, o given.Options) time.Duration {
	shortest := askAgain(o)
	for _, s := range refs.All(v.H.Spans) {
		if s.Key == key && s.Outcome == history.OK && s.Valid > 0 && s.Op != history.OpInspect {
			shortest = min(shortest, (s.Valid-s.Return)*2/3)
		}
	}
	return max(shortest, shortestPause)
}

// RequestsNeeded is how many requests about a key the operations of a process may need.
func RequestsNeeded(v *bounds.View, of *requestSeries, key int32, o given.Options) (n int) {
	ends, waiting, held, first := 0, time.Duration(0), time.Duration(0), segment.Never
	for i, s := range refs.All(v.H.Spans) {
		if s.Key != key {
			continue
		}
		first = min(first, s.Call)
		if s.Op == history.OpRelease || s.Op == history.OpForceRelease || bounds.SetsSize(s) {
			ends += max(1, int(v.H.Limit(key)))
		}
		if !of.has(v.Client(i)) {
			continue
		}
		n += 3
		if excuse.IsAcquire(s.Op) {
			ends++ // its lease may end
		}
		waiting += min(s.Return, v.H.End) - s.Call
	}
	for _, h := range refs.At(v.Holds, v.ByKey[key]) {
		if of.has(v.Client(h.Span)) {
			held += 4 * (min(h.Until, v.H.End) - h.From) // it may be renewed
		}
	}
	n += ends + 10
	over := leaseMayBeOver(v, key, o)
	if o.States(promise.Fair) && v.H.Limit(key) == 0 { // the others learn only that it has ended
		n += int(waiting / askAgain(o))
		waiting = max(0, v.H.End-first) // one waiter at a time is the first
	}
	return n + int((waiting+held)/over)
}

// Within is how many requests about a key certainly arrived in s, and when the last of them had.
func (s *requestSeries) Within(gap segment.Segment, key string) (n int, at time.Duration) {
	first := sort.Search(len(s.Points), func(i int) bool { return s.Points[i].Sent >= gap.From })
	last := sort.Search(len(s.Points), func(i int) bool { return s.Points[i].Time > gap.Until }) - 1
	if first >= last {
		return 0, 0
	}
	return s.Points[last].Keys[key] - s.Points[first].Keys[key], s.Points[last].Time
}

// ExcessViolation describes a finding of this file. In its text %[1]s is the process, %[2]d the count, and %[3]d or, as
// keys, %[4]s the bound.
func ExcessViolation(v *bounds.View, f finding.Finding) property.Violation {
	x := f.Note.(Excess)
	who := fmt.Sprintf("client %d", x.Of.Client)
	if x.Of.Clients > 1 {
		who = fmt.Sprintf("the process of clients %d to %d", x.Of.Client, x.Of.Client+x.Of.Clients-1)
	}
	f.Note = x.Of.node
	text := fmt.Sprintf(x.Text, who, x.Count, x.Allowed, format.Count(x.Allowed, "key"))
	w := finding.Word(v, f, finding.Rule{Sentence: x.Rule, Text: text})
	if x.Key == refs.None {
		w.Key = ""
	}
	return w
}
