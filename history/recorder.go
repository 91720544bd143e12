package history

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Recorder writes events as they happen. Its methods may be called by several
// goroutines.
//
// An event's time and index are taken, and its line is written, in one
// critical section: so the order of the lines is the order of the times, and
// an event that a caller acted upon is on its way to the disk, even if the
// harness is killed in the next instant.
type Recorder struct {
	mu    sync.Mutex
	w     io.Writer
	clock func() time.Duration
	next  int64
	last  time.Duration
	buf   []byte
	err   error

	// OnEvent, if not nil, sees every event in order, also those that could not
	// be written. It is called inside the critical section: it must be quick
	// and must not call the recorder. Set it before the first event.
	OnEvent func(Event)
}

// NewRecorder makes a recorder that writes to w, which it does not close, one
// Write for each event; w must not buffer. clock tells the time since the run
// began; a clock that goes back is held at the last time it told.
func NewRecorder(w io.Writer, clock func() time.Duration) *Recorder {
	return &Recorder{w: w, clock: clock}
}

// Invoke records that an operation is about to be sent. v may be nil and must
// not be changed afterwards.
func (r *Recorder) Invoke(p Process, f, key string, v *Value) Event {
	return r.record(Event{Type: Invoke, Process: p, F: f, Key: key, Value: v})
}

// Complete records how the operation that inv began has ended: OK, Fail or
// Info. v and e may be nil.
func (r *Recorder) Complete(inv Event, t Type, v *Value, e *Error) Event {
	return r.record(Event{Type: t, Process: inv.Process, F: inv.F, Key: inv.Key, Value: v, Error: e})
}

// Note records an event that nobody asked for: a lost hold, a renewal of the
// lock's own accord, a crash, a fault.
func (r *Recorder) Note(p Process, f, key string, v *Value) Event {
	return r.record(Event{Type: Info, Process: p, F: f, Key: key, Value: v})
}

// Touch records an arrival at the guarded resource, and whether it took the
// write. v has Touch set.
func (r *Recorder) Touch(p Process, key string, v *Value, accepted bool) Event {
	t := OK
	if !accepted {
		t = Fail
	}
	return r.record(Event{Type: t, Process: p, F: Touch, Key: key, Value: v})
}

// Err is the first error in writing, for ever: after it nothing is written any
// more, because a line after a torn one would be lost with it.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Len is the number of events so far.
func (r *Recorder) Len() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
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
		r.err = fmt.Errorf("writing event %d to the history (free disk space and run again): %w", e.Index, err)
	}
}
