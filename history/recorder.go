package history

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Recorder writes events as they happen. Its methods may be called concurrently.
//
// It reads the clock, assigns the index and writes the line in one critical section. So lines are in the order of
// their times, and an event is written before its caller acts upon it, even if the harness is killed right after.
type Recorder struct {
	mu    sync.Mutex
	w     io.Writer
	clock func() time.Duration
	next  int64
	last  time.Duration
	buf   []byte
	err   error

	// OnEvent, if not nil, is called with every event in order, also with events that could not be written. It is called
	// in the critical section: it must be quick and must not call the recorder. Set it before the first event.
	OnEvent func(Event)
}

// NewRecorder returns a recorder that writes to w with one Write for each event, and does not close it. w must not
// buffer. clock is the time since the start of the run; if it goes back, the recorder repeats its greatest time.
func NewRecorder(w io.Writer, clock func() time.Duration) *Recorder {
	return &Recorder{w: w, clock: clock}
}

// Invoke records that an operation is about to be sent. v may be nil and must not be changed afterwards.
func (r *Recorder) Invoke(p Process, f, key string, v *Value) Event {
	return r.record(Event{Type: Invoke, Process: p, F: f, Key: key, Value: v})
}

// Complete records the completion of the operation that inv invoked: OK, Fail or Info. v and e may be nil.
func (r *Recorder) Complete(inv Event, t Type, v *Value, e *Error) Event {
	return r.record(Event{Type: t, Process: inv.Process, F: inv.F, Key: inv.Key, Value: v, Error: e})
}

// Note records an event without an invocation: a lost hold, a renewal by the lock's watchdog, a crash, a fault.
func (r *Recorder) Note(p Process, f, key string, v *Value) Event {
	return r.record(Event{Type: Info, Process: p, F: f, Key: key, Value: v})
}

// Touch records a write that arrived at the guarded resource, and whether it was accepted. v.Touch must be set.
func (r *Recorder) Touch(p Process, key string, v *Value, accepted bool) Event {
	t := OK
	if !accepted {
		t = Fail
	}
	return r.record(Event{Type: t, Process: p, F: Touch, Key: key, Value: v})
}

// Err returns the first write error. After it nothing is written: a line that follows
// a torn one would be lost as well.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Recorder) record(e Event) Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last, r.clock())
	e.Time, e.Index = r.last, r.next
	r.next++
	r.write(&e)
	if r.OnEvent != nil {
		r.OnEvent(e)
	}
	return e
}

func (r *Recorder) write(e *Event) {
	if r.err != nil {
		return
	}
	r.buf = append(e.AppendJSON(r.buf[:0]), '\n')
	n, err := r.w.Write(r.buf)
	if err == nil && n < len(r.buf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		r.err = fmt.Errorf("writing event %d to the history (free disk space and rerun): %w", e.Index, err)
	}
}
