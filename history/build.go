package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history/internal/input"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Build pairs the events of a run, in the order in which they happened, into a [History]. It fails only if there are
// too many events; everything else that is wrong becomes a [Problem].
func Build(events []Event) (*History, error) {
	b := NewBuilder()
	for i := range events {
		if err := b.Add(&events[i], 0); err != nil {
			return nil, err
		}
	}
	return b.History(), nil
}

// Builder pairs events into a [History] one by one, so that a file of any length is read in the
// memory of its result. It must not be used concurrently.
type Builder struct {
	h           *History
	keys        map[string]int32
	owners      map[string]int32
	open        map[Process]*openOps    // operations without a completion
	waits       map[int32]time.Duration // by the index of its invocation: how long an open acquire may wait
	closings    map[int32]time.Duration // the same: when its client closes the lock object
	holder      map[processKey]int32    // who acquired last, for events without an owner
	uncountable map[int32]bool          // keys with more than MaxPermits
	sizes       map[int32]int32         // by key: its limit without resizes that are in flight or failed
	resizing    map[int32]map[int32]int // by key and size: how many resizes are in flight
	injected    map[int]FaultValue      // by id: the injections of faults
	errors      map[string]string       // codes and texts of the failures, each by itself
	last        int64                   // index of the previous event
	clock       clock
	unlisted    int // problems beyond input.MaxProblems
	kinds       input.Kinds
	decreases   int           // of the time
	decreased   time.Duration // by how much at most
	decreaseAt  int           // in History.Problems, if it was not full
}

type processKey struct {
	process Process
	key     int32
}

// Grow makes room for n more operations, so that their list need not grow, which would copy it and keep both for a
// while. It changes nothing else.
func (b *Builder) Grow(n int) { b.h.Spans = slices.Grow(b.h.Spans, max(0, n)) }

// NewBuilder returns an empty builder.
func NewBuilder() *Builder {
	return &Builder{
		h:        &History{},
		keys:     make(map[string]int32),
		sizes:    make(map[int32]int32),
		owners:   make(map[string]int32),
		open:     make(map[Process]*openOps),
		waits:    make(map[int32]time.Duration),
		closings: make(map[int32]time.Duration), uncountable: make(map[int32]bool),
		resizing: make(map[int32]map[int32]int),
		holder:   make(map[processKey]int32),
		injected: make(map[int]FaultValue),
		errors:   make(map[string]string),
		kinds:    make(input.Kinds),
		last:     -1,
	}
}

// Add adds the next event, from the given line of a file (0: unknown). It keeps no reference to e. An index or
// a time that decreases is replaced, so that events stay in the order in which they are added, and reported as a
// problem. The error is about too many events.
func (b *Builder) Add(e *Event, line int) error {
	at := b.clock.relative(e.Time)
	ev := numbered{Event: e, time: max(at, b.h.End), line: line}
	if err := b.number(&ev); err != nil {
		return err
	}
	if at < ev.time {
		b.decrease(ev, ev.time-at)
	}
	b.h.End = ev.time
	b.h.Events++
	switch {
	case e.isFinal():
		b.final(ev)
	case e.Process == Nemesis:
		b.fault(ev)
	case e.Type == Invoke:
		b.invoke(ev)
	default:
		b.complete(ev)
	}
	return nil
}

// History returns the history so far, with the problems that were found in reading its events. The next Add changes it.
// Operations without a completion have an unknown outcome.
func (b *Builder) History(reading ...Problem) *History {
	for _, p := range reading {
		b.list(p)
	}
	if b.unlisted > 0 {
		text := fmt.Sprintf("more problems, not listed: %d", b.unlisted)
		listed := b.h.Problems[:min(len(b.h.Problems), input.MaxProblems)] // without the text of an earlier call
		b.h.Problems = append(listed, Problem{Index: -1, Text: text})
	}
	return b.h
}

// numbered is an event with the index and the time that count.
type numbered struct {
	*Event
	index int32
	time  time.Duration
	line  int
}

func (b *Builder) number(e *numbered) error {
	if b.last >= math.MaxInt32-1 {
		return fmt.Errorf("event %d: a history can have at most %d events", b.last+1, math.MaxInt32)
	}
	index := e.Index
	if index <= b.last || index >= math.MaxInt32 {
		index = b.last + 1
	}
	b.last, e.index = index, int32(index)
	if index != e.Index {
		b.problem(*e, "index %d is not greater than that of the previous event, or too great; replaced by %d", e.Index, index)
	}
	return nil
}

func (b *Builder) problem(e numbered, text string, args ...any) {
	p := Problem{Index: int64(e.index), Line: e.line, Text: fmt.Sprintf(text, args...)}
	if !input.Add(b.kinds, &b.h.Problems, text, p, func(p *Problem) *string { return &p.Text }) {
		b.unlisted++
	}
}

// decrease notes by how much the time of e is less than the previous event's.
func (b *Builder) decrease(e numbered, by time.Duration) {
	b.decreases++
	b.decreased = max(b.decreased, by)
	if b.decreases == 1 {
		b.decreaseAt = len(b.h.Problems)
		b.problem(e, "time decreases by %s; replaced by that of the previous event", format.Duration(by))
		return
	}
	if b.decreaseAt < len(b.h.Problems) {
		b.h.Problems[b.decreaseAt].Text = fmt.Sprintf("time decreases %d times, by up to %s; replaced by that of the "+
			"previous event", b.decreases, format.Duration(b.decreased))
	}
}

func (b *Builder) list(p Problem) {
	if len(b.h.Problems) >= input.MaxProblems {
		b.unlisted++
		return
	}
	b.h.Problems = append(b.h.Problems, p)
}

func (b *Builder) fault(e numbered) {
	f := Fault{Name: e.F, Time: e.time, Index: e.index}
	f.Phase = Noted
	if e.Value != nil && e.Value.Fault != nil {
		f.FaultValue = *e.Value.Fault
	}
	switch f.Phase {
	case Injected, TookEffect, Healed, Missed, Noted:
	default:
		b.problem(e, "fault %s has an unknown phase %q; read as a note", e.F, f.Phase)
		f.Phase = Noted
	}
	if f.Phase == Injected {
		b.injected[f.ID] = f.FaultValue
	} else if in, ok := b.injected[f.ID]; ok && f.ID != 0 {
		f.Class, f.Object, f.Verb, f.Optional = in.Class, in.Object, in.Verb, in.Optional
	}
	b.h.Faults = append(b.h.Faults, f)
}

func (b *Builder) invoke(e numbered) {
	s := Span{
		Call: e.time, Return: Infinity, Invoked: e.index, Ended: -1, Process: e.Process,
		Op: opOf(e.F), Outcome: Info, Permits: 1, Write: true,
	}
	b.noteOther(s.Op, e.F)
	s.Key = intern(&b.h.Keys, b.keys, e.Key)
	s.Owner = b.owner(e, s.Key)
	if v := e.Value; v != nil {
		s.Lease, s.Token, s.Write, s.Moded = v.Lease, v.Token, v.Mode != "read", v.Mode != ""
		s.Permits = int32(max(1, min(v.Permits, MaxPermits)))
		s.Part, s.Asked = v.Part, asked(s.Op, v)
		s.Some = s.Op == OpForceRelease && v.Permits > 0
		b.limit(e, &s)
		if s.Op == OpAcquire && v.Wait > 0 {
			b.waits[s.Invoked] = v.Wait
		}
		b.closes(&s, v.Close)
	}
	open := b.open[e.Process]
	if open == nil {
		open = new(openOps)
		b.open[e.Process] = open
	}
	if first, ok := open.first(b.h.Spans); ok && !s.Part {
		b.problem(e, "process %d invokes %s while its operation of event %d has no completion", e.Process, e.F,
			b.h.Spans[first].Invoked)
	}
	b.resizeInvoked(&s)
	b.h.Spans = append(b.h.Spans, s)
	open.add(int32(len(b.h.Spans)-1), b.h.Spans)
}

// asked is the number that an operation sets or states.
func asked(op Op, v *Value) int32 {
	switch op {
	case OpArm:
		return int32(max(0, min(v.Count, math.MaxInt32)))
	case OpResize, OpAcquire, OpTry:
		return int32(max(0, min(v.Limit, MaxPermits)))
	case OpAddPermits, OpDropPermits:
		return int32(max(1, min(v.Permits, MaxPermits))) // left out: one
	}
	return 0
}

func (b *Builder) complete(e numbered) {
	i, ok := b.match(e)
	switch {
	case ok:
		b.completeSpan(&b.h.Spans[i], e)
		wait := b.waited(i, e)
		if closed := b.closed(i, e); e.failed() && !closed {
			b.h.Failures = append(b.h.Failures, Failure{Time: e.time, Wait: wait, Span: i, Why: b.because(*e.Error)})
		}
		if e.hasCode(CodeContradiction) {
			b.h.Contradicted = append(b.h.Contradicted, Contradiction{Time: e.time, Text: e.Error.Text, Span: i})
		}
		switch e.Type {
		case Info:
			b.h.Unknown = append(b.h.Unknown, Unknown{Time: e.time, Wait: wait, Span: i,
				Timeout: e.hasCode(CodeTimeout), Abandoned: e.hasCode(CodeUnasked)})
		case Fail:
			b.refused(i, e.Event)
		}
	case e.Type == Info && opOf(e.F) == OpOther:
		b.notice(e)
	case e.F == Touch: // may have no invocation
	default:
		b.problem(e, "process %d completes %s without an invocation; ignored", e.Process, e.F)
	}
	if e.F == Touch {
		b.touch(e)
	}
}

// because is the code and the text of an error; equal ones share memory.
func (b *Builder) because(e Error) string {
	why := strings.Trim(e.Code+": "+format.Truncate(e.Text, maxWhy), ": ")
	if known, is := b.errors[why]; is {
		return known
	}
	b.errors[why] = why
	return why
}

// maxWhy is the largest number of runes that are kept of the text of an error.
const maxWhy = 120

// refused notes why operation i, which e completes, was refused.
func (b *Builder) refused(i int32, e *Event) {
	code := cmp.Or(e.Error, &Error{}).Code
	switch {
	case e.timedOut():
		b.h.TimedOut = append(b.h.TimedOut, i)
	case e.F == Acquire && code == CodeNoReply:
		b.h.Unanswered = append(b.h.Unanswered, i)
	case e.F == Acquire && code == CodeOneHeld:
		b.h.OneHeld = append(b.h.OneHeld, i)
	case (e.F == Acquire || e.F == Try) && code == CodeReentered:
		b.h.Reentered = append(b.h.Reentered, i)
	case (e.F == Acquire || e.F == Try) && code == CodeUpgrade:
		b.h.Upgrades = append(b.h.Upgrades, i)
	case (e.F == Acquire || e.F == Try || e.F == Release || e.F == Renew) && code == CodeForeign:
		b.h.Foreign = append(b.h.Foreign, i)
	case (e.F == Acquire || e.F == Try) && code == CodeAbsent && b.h.Spans[i].Asked > 0:
		b.h.NotSetUp = append(b.h.NotSetUp, i)
	case e.F == DropPermits && code == CodeOutOfRange:
		b.h.OutOfRange = append(b.h.OutOfRange, i)
	}
}

// match removes and returns the open operation that e completes: the latest of the same name and key.
func (b *Builder) match(e numbered) (int32, bool) {
	open := b.open[e.Process]
	op := opOf(e.F)
	if open == nil || op == OpOther && (e.F == Lost || e.F == Renewed || e.F == Crash) {
		return 0, false
	}
	key := anyKey
	if e.Key != "" {
		i, known := b.keys[e.Key]
		if !known {
			return 0, false
		}
		key = i
	}
	return open.take(op, key, b.h.Spans)
}

func (b *Builder) completeSpan(s *Span, e numbered) {
	s.Ended, s.Outcome, s.Busy = e.index, e.Type, e.busy()
	s.Behind = e.F == Try && e.Type == Fail && e.Error != nil && e.Error.Code == CodeRefused
	s.Held = e.Held && e.Type == Fail
	s.Denied = e.denied()
	s.Lost = s.Denied && e.Error.Code == "lost"
	s.Armed, s.Absent = e.latchRefused()
	s.Stale = e.F == Guard && e.Type == Fail && e.Error != nil && e.Error.Code == CodeStale
	if e.Type != Info {
		s.Return = e.time
	}
	if s.Op == OpResize {
		b.resized(s)
	}
	v := e.Value
	if v == nil {
		return
	}
	s.Undone = v.Undone && e.Type != Info
	s.Lapsed = v.Lapsed && e.Type == Fail && (s.Op == OpRelease || s.Op == OpRenew)
	if v.Token != 0 || v.Zero {
		s.Token, s.Zero = v.Token, v.Zero
	}
	if v.Owner != "" { // in histories of other suites the completion names the owner
		s.Owner = b.owner(e, s.Key)
	}
	s.Count = int32(max(math.MinInt32, min(v.Count, math.MaxInt32))) // clamped, not wrapped
	if s.Op == OpTry && e.Type == OK && v.Permits > 0 {              // it took the free permits
		s.Permits = int32(min(v.Permits, MaxPermits))
	}
	if s.Op == OpAddPermits && e.Type == OK {
		b.enlarged(s)
	}
	if e.Type == OK {
		s.Valid = validity(e.time, v.Valid)
		s.Expired = expired(s, e)
	}
}

func (b *Builder) notice(e numbered) {
	n := Notice{Time: e.time, Index: e.index, Process: e.Process, F: e.F}
	n.Key = intern(&b.h.Keys, b.keys, e.Key)
	n.Owner = b.owner(e, n.Key)
	if e.Value != nil {
		n.Time = e.time - max(0, min(e.Value.Age, e.time))
		n.Valid = validity(e.time, e.Value.Valid)
		if e.F == Lost {
			n.Left = int32(max(0, min(e.Value.Count, math.MaxInt32)))
			n.Write, n.Moded = e.Value.Mode != "read", e.Value.Mode != ""
		}
	}
	b.h.Notices = append(b.h.Notices, n)
	if e.F == Crash && e.Error != nil {
		b.h.Exits = append(b.h.Exits, Exit{Error: *e.Error, Time: e.time, Index: e.index, Process: e.Process})
	}
}

func (b *Builder) touch(e numbered) {
	if e.Value == nil || e.Value.Touch == nil {
		b.problem(e, "touch of process %d without a value; ignored", e.Process)
		return
	}
	t := Touched{TouchValue: *e.Value.Touch, Time: e.time, Token: e.Value.Token, Index: e.index, Process: e.Process}
	t.Key = intern(&b.h.Keys, b.keys, e.Key)
	t.Owner = b.owner(e, t.Key)
	t.Accepted = e.Type == OK
	if e.Type == Info { // the resource's reply was not recorded; assume that it followed its rule
		t.Accepted = !t.Fenced || t.Token >= t.MaxSeen
	}
	b.h.Touches = append(b.h.Touches, t)
}
