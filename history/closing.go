package history

import "time"

// Closing is the completion of an acquire during which the client closed the lock object (Value.Close). Its error, if
// any, is no [Failure].
type Closing struct {
	Time   time.Duration // of the completion
	Closed time.Duration // when the lock object was to be closed; a slow client closes it later
	Span   int32         // index into History.Spans
}

// closes records when the client of an acquire closes its lock object; after is 0 if it does not.
func (b *Builder) closes(s *Span, after time.Duration) {
	if s.Op == OpAcquire && after > 0 {
		b.closings[s.Invoked] = s.Call + min(after, Infinity-s.Call)
	}
}

// closed reports whether the lock object was closed before e completed operation i, and records it as a Closing.
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
