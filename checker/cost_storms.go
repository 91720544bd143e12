package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/promise"
)

// This file is about requests without a pause, of a lock that states [promise.BoundedCost]; see cost_requests.go.

// The bounds of a lock with bounded cost.
const (
	requestsPerSecond = 200             // of one client, in addition to its operations' own
	requestsPerOp     = 20              // for each operation that is in flight
	dialsPerSecond    = 25              // for each operation that is in flight, and each hold
	dialsWindow       = 3 * time.Second // in which delays drawn at random are long enough on average
)

// judgeStorms finds, for each process, the first second in which it sent a server more requests than its operations
// need, or tried to connect as often: a waiter that asks again and again without a pause.
func (v *view) judgeStorms(o Options, found *findings) {
	if !o.states(promise.BoundedCost) {
		return
	}
	for _, of := range v.requestSeries() {
		of.eachWindow(time.Second, func(a, b *requestPoint, during segment) (more bool) {
			count := b.Dials + b.Commands - a.Dials - a.Commands
			allowed := int(float64(of.clients*requestsPerSecond) * (during.until - during.from).Seconds())
			if count <= allowed {
				return true
			}
			if allowed += requestsPerOp * v.opsOf(&of, during); count <= allowed {
				return true
			}
			v.addExcess(found, requestStorm, excess{"a waiter pauses between its requests",
				"%[1]s sent $note %[2]d requests and attempts to connect from $start to $end; its operations need at most %[3]d",
				of, none, v.lastSpan(&of, none, b.time), during, count, allowed})
			return false
		})
	}
}

// judgeDials finds, for each process, the first time in which it tried to connect to a server more often than a client
// with pauses between its attempts: many such clients keep a server from coming back. A quorum is not judged: a master
// that did not reply is asked to release for a while after the operation has returned.
func (v *view) judgeDials(o Options, found *findings) {
	if !o.states(promise.BoundedCost) || v.quorum {
		return
	}
	for _, of := range v.requestSeries() {
		of.eachWindow(dialsWindow, func(a, b *requestPoint, during segment) (more bool) {
			count := b.Dials - a.Dials
			if count <= int(dialsPerSecond*(during.until-during.from).Seconds()) {
				return true
			}
			allowed := int(dialsPerSecond * v.busyTime(&of, during).Seconds())
			if count <= allowed {
				return true
			}
			v.addExcess(found, dialStorm, excess{"a process pauses before it connects again",
				"%[1]s tried %[2]d times to connect to $note from $start to $end; its operations and holds need at most %[3]d",
				of, none, v.lastSpan(&of, none, b.time), during, count, allowed})
			return false
		})
	}
}

// eachWindow calls visit for the windows of at least the given length that contain whole intervals between points, from
// each point back, until it returns false.
func (s *requestSeries) eachWindow(length time.Duration, visit func(a, b *requestPoint, during segment) (more bool)) {
	first := 0
	for i, b := range refs(s.points) {
		for first+1 < int(i) && b.sent-s.points[first+1].time >= length {
			first++
		}
		a := &s.points[first]
		if b.sent-a.time >= length && !visit(a, b, segment{a.sent, b.time}) {
			return
		}
	}
}

// busyTime adds up how much of s the operations of a process were in flight and it may have had holds, at least once
// the length of s.
func (v *view) busyTime(of *requestSeries, s segment) (sum time.Duration) {
	within := func(from, until time.Duration) time.Duration { return max(0, min(until, s.until)-max(from, s.from)) }
	for i, x := range refs(v.h.Spans) {
		if of.has(v.client(i)) {
			sum += within(x.Call, x.Return)
		}
	}
	e := v.freeTimes().extents
	for _, h := range refs(e.holds) {
		if of.has(v.client(h.span)) {
			sum += within(h.from, v.knownUntil(h))
		}
	}
	return max(sum, s.until-s.from)
}

// opsOf is how many operations of a process were in flight during s.
func (v *view) opsOf(of *requestSeries, s segment) (n int) {
	for i, x := range refs(v.h.Spans) {
		if x.Call <= s.until && x.Return >= s.from && of.has(v.client(i)) {
			n++
		}
	}
	return n
}
