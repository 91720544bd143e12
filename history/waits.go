package history

import (
	"cmp"
	"time"
)

// Mistimed is the completion of an acquire that did not end when its stated wait did: it was refused as if the wait had
// run out (not with [CodeRefused]), by more than [WaitGrain] too early, or it ended by more than that too late.
type Mistimed struct {
	Time    time.Duration // of the completion
	Over    time.Duration // when the wait was over
	Span    int32         // index into History.Spans
	Timeout bool          // the harness stopped waiting for the reply
	Code    string        // of its error; "": none
}

// WaitGrain is how far from the end of its wait an acquire may end without being listed as [Mistimed].
const WaitGrain = 100 * time.Millisecond

// waited notes that e completes acquire i, and returns how long it could wait; 0: without limit, or i is no acquire.
func (b *Builder) waited(i int32, e numbered) (wait time.Duration) {
	s := &b.h.Spans[i]
	wait = b.waits[s.Invoked]
	if wait == 0 {
		return 0
	}
	delete(b.waits, s.Invoked)
	over := s.Call + min(wait, Infinity-s.Call)
	if e.time > over+WaitGrain && !e.ended() || e.timedOut() && !e.hasCode(CodeRefused) && e.time < over-WaitGrain {
		b.h.Mistimed = append(b.h.Mistimed, Mistimed{
			Time: e.time, Over: over, Span: i, Timeout: e.hasCode(CodeTimeout), Code: cmp.Or(e.Error, &Error{}).Code})
	}
	return wait
}

// ended reports whether an operation has no reply because its client or the run has ended.
func (e *Event) ended() bool {
	return e.hasCode(CodeExited) || e.hasCode(CodeKilled) || e.hasCode(CodeProtocol) || e.hasCode(CodeUnasked)
}
