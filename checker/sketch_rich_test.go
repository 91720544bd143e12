package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
)

// This file makes the sketcher draw facts that only the comparison of single properties needs: promises, counts and
// tokens of every kind of lock, permits that are released in parts or together, and owners that read and write.

// richInside draws the actions of an owner from its grant to its last release, at until. It returns false if it did
// nothing; then the caller draws the common case.
func (d *sketcher) richInside(o sketch, from, until int) bool {
	switch {
	case d.kind == search.Semaphore && o.permits > 1 && d.once(50):
		d.inParts(o, from, until)
	case d.kind == search.Semaphore && d.once(30):
		d.together(o, from, until)
	case d.kind == search.ReadersWriter && !o.read && d.once(50):
		d.downgrade(o, from, until)
	case d.kind == search.ReadersWriter && d.once(8):
		d.upgrade(o, from, until)
	default:
		return false
	}
	return true
}

// act adds an operation that begins at call and ends within long; some are of unknown outcome, or refused.
func (d *sketcher) act(o sketch, op history.Op, call, long int) int {
	o.op, o.outcome, o.call, o.back = op, history.OK, call, call+d.some(max(0, long))
	switch {
	case d.once(4):
		o.outcome = history.Info
	case d.kind == search.Semaphore && op == history.OpRelease && d.once(5):
		o.outcome, o.leftHeld = history.Fail, true
	}
	d.ops = append(d.ops, o)
	return o.back
}

// inParts releases permits one after the other, or two at a time.
func (d *sketcher) inParts(o sketch, from, until int) {
	left, t := o.permits, from
	for left > 0 {
		o.permits = min(left, int32(1+d.some(1)))
		left -= o.permits
		call := t + d.some(max(0, until-t))
		if left == 0 {
			call = max(t, until)
		}
		t = d.act(o, history.OpRelease, call, 2)
	}
}

// together acquires once more, and releases everything at once.
func (d *sketcher) together(o sketch, from, until int) {
	first := o.permits
	call := from + d.some(max(0, until-from))
	o.permits = 1
	t := d.act(o, history.OpAcquire, call, until-call)
	if o.permits += first; d.once(10) {
		o.permits++
	}
	d.act(o, history.OpRelease, max(t, until), 3)
}

// downgrade acquires the lock to read as well, releases the write, and still reads.
func (d *sketcher) downgrade(o sketch, from, until int) {
	reader := o
	reader.read = true
	call := from + d.some(max(0, until-from))
	t := max(until, d.act(reader, history.OpAcquire, call, until-call))
	t = d.act(o, history.OpRelease, t, 2)
	t = max(t, d.freeUntil(t))
	d.act(reader, history.OpRelease, t, 3)
}

// freeUntil is until when a reader can hold the lock from t on without a conflict.
func (d *sketcher) freeUntil(t int) int {
	for n := d.some(6); n > 0 && t < len(d.used) && d.used[t] < d.permits; n-- {
		d.used[t]++
		t++
	}
	return t
}

// upgrade acquires the lock in the other mode as well, and releases both.
func (d *sketcher) upgrade(o sketch, from, until int) {
	other := o
	other.read = !o.read
	call := from + d.some(max(0, until-from))
	t := d.act(other, history.OpAcquire, call, until-call)
	t = d.act(other, history.OpRelease, t+d.some(max(0, until-t)), 1)
	d.act(o, history.OpRelease, max(t, until), 3)
}

// setReply fills in the fields that only some locks reply.
func (d *sketcher) setReply(s *history.Span, token uint64) uint64 {
	if s.Outcome != history.OK {
		return token
	}
	if s.Op != history.OpRelease {
		if d.once(50) {
			s.Valid = s.Return + time.Duration(d.some(14))
		}
		if !d.kind.Fenced() && d.tokens {
			token++
			if s.Token = token; d.once(10) {
				s.Token = max(1, token-uint64(d.some(2)))
			}
		}
	}
	if d.counts && d.once(70) {
		d.count(s)
	}
	return token
}

// count is how often an owner holds the lock, by the history so far.
func (d *sketcher) count(s *history.Span) {
	var has [2]int32 // writing, reading
	for i := range d.h.Spans {
		p := &d.h.Spans[i]
		mode := 0
		if !p.Write {
			mode = 1
		}
		switch {
		case p.Owner != s.Owner || p.Outcome != history.OK || p.Ended < 0 && p != s:
		case p.Op != history.OpRelease:
			has[mode]++
		case has[mode] > 0:
			has[mode]--
		default:
			has[1-mode] = max(0, has[1-mode]-1)
		}
	}
	if s.Count = has[0] + has[1]; d.once(6) {
		s.Count += int32(d.some(2)) - 1
	}
}
