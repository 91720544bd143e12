package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file makes the sketcher draw what only the comparison of single properties
// needs: promises, counts and tokens of every kind of lock, permits that are given
// back in parts or together, and owners that read and write.

// richInside is what an owner does from its grant to its last release, at until.
// It says false if it did nothing, so that the common way is taken.
func (d *sketcher) richInside(o sketch, from, until int) bool {
	switch {
	case d.kind == semaphore && o.permits > 1 && d.once(50):
		d.inParts(o, from, until)
	case d.kind == semaphore && d.once(30):
		d.together(o, from, until)
	case d.kind == readersWriter && !o.read && d.once(50):
		d.downgrade(o, from, until)
	case d.kind == readersWriter && d.once(8):
		d.upgrade(o, from, until)
	default:
		return false
	}
	return true
}

// act adds an operation that begins at call and ends within long; now and then it
// is of unknown outcome, or is refused.
func (d *sketcher) act(o sketch, op history.Op, call, long int) int {
	o.op, o.outcome, o.call, o.back = op, history.OK, call, call+d.some(max(0, long))
	switch {
	case d.once(4):
		o.outcome = history.Info
	case d.kind == semaphore && op == history.OpRelease && d.once(5):
		o.outcome, o.kept = history.Fail, true
	}
	d.ops = append(d.ops, o)
	return o.back
}

// inParts gives permits back one after the other, or two at a time.
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

// together takes once more, and gives all back in one.
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

// downgrade takes the lock to read as well, gives the writing back, and reads on.
func (d *sketcher) downgrade(o sketch, from, until int) {
	reader := o
	reader.read = true
	call := from + d.some(max(0, until-from))
	t := max(until, d.act(reader, history.OpAcquire, call, until-call))
	t = d.act(o, history.OpRelease, t, 2)
	t = max(t, d.stay(t))
	d.act(reader, history.OpRelease, t, 3)
}

// stay is until when a reader can stay, from t on, if nobody is to be in its way.
func (d *sketcher) stay(t int) int {
	for n := d.some(6); n > 0 && t < len(d.used) && d.used[t] < d.permits; n-- {
		d.used[t]++
		t++
	}
	return t
}

// upgrade takes the lock in the other mode as well, and gives both back.
func (d *sketcher) upgrade(o sketch, from, until int) {
	other := o
	other.read = !o.read
	call := from + d.some(max(0, until-from))
	t := d.act(other, history.OpAcquire, call, until-call)
	t = d.act(other, history.OpRelease, t+d.some(max(0, until-t)), 1)
	d.act(o, history.OpRelease, max(t, until), 3)
}

// tell puts into an answer what only some locks tell.
func (d *sketcher) tell(s *history.Span, token uint64) uint64 {
	if s.Outcome != history.OK {
		return token
	}
	if s.Op != history.OpRelease {
		if d.once(50) {
			s.Valid = s.Return + time.Duration(d.some(14))
		}
		if !d.kind.fenced() && d.tokens {
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

// count tells how often an owner holds the lock, of what is in the history so far.
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
