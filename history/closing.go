package history

import "time"

// Closing is the completion of an acquire whose client had closed the lock object meanwhile (Value.Close). Whatever its
// error, it is no [Failure].
type Closing struct {
	Time   time.Duration // of the completion
	Closed time.Duration // when the lock object was to be closed; a slow client closes it later
	Span   int32         // index into History.Spans
}

// closes notes that the client of an acquire closes its lock object after that time; 0: it does not.
func (b *Builder) closes(s *Span, after time.Duration) {
	if s.Op == OpAcquire && after > 0 {
		if b.closings == nil {
			b.closings = make(map[int32]time.Duration)
		}
		b.closings[s.Invoked] = s.Call + min(after, Infinity-s.Call)
	}
}

// waited is how long acquire i, which has ended, could wait; 0: without limit, or it is no acquire.
func (b *Builder) waited(i int32) time.Duration {
	invoked := b.h.Spans[i].Invoked
	defer delete(b.waits, invoked)
	return b.waits[invoked]
}

// closed notes and reports whether operation i, which e completes, had not ended when its lock object was closed.
func (b *Builder) closed(i int32, e numbered) bool {
	invoked := b.h.Spans[i].Invoked
	closed, closes := b.closings[invoked]
	delete(b.closings, invoked)
	if !closes || e.time < closed {
		return false
	}
	b.h.Closings = append(b.h.Closings, Closing{Time: e.time, Closed: closed, Span: i})
	return true
}
