package history

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// maxProblems is how many problems a history remembers one by one.
const maxProblems = 100

// Build pairs the events of a run into a [History]. It fails only if there are
// too many events to be numbered; everything else that is wrong becomes a
// [Problem]. The events must be in the order in which they happened.
func Build(events []Event) (*History, error) {
	b := NewBuilder()
	for i := range events {
		if err := b.Add(&events[i], 0); err != nil {
			return nil, err
		}
	}
	return b.History(), nil
}

// Builder pairs events into a [History] as they come, so that a file of any
// length is read in the memory of its result. It belongs to one goroutine.
type Builder struct {
	h      *History
	keys   map[string]int32
	owners map[string]int32
	open   map[Process]*opened // operations without completion
	holder map[place]int32     // who acquired last, for events that do not name the owner
	beyond map[int32]bool      // keys with more permits than can be counted
	last   int64               // index of the event before
	more   int                 // problems that were not kept
}

// place is a process at a key.
type place struct {
	process Process
	key     int32
}

// NewBuilder makes a builder.
func NewBuilder() *Builder {
	return &Builder{
		h:      &History{},
		keys:   make(map[string]int32),
		owners: make(map[string]int32),
		open:   make(map[Process]*opened),
		holder: make(map[place]int32),
		last:   -1,
	}
}

// Add takes the next event, from the given line of a file (0: from no file).
// It keeps nothing of what e points to. An index or a time that goes back is
// set right, by the order of the events, and reported as a problem.
func (b *Builder) Add(e *Event, line int) error {
	at, err := b.number(e, line)
	if err != nil {
		return err
	}
	time := e.Time
	if time < b.h.End {
		b.problem(at, line, "the time goes back by %v; it was set to the time of the event before", b.h.End-time)
		time = b.h.End
	}
	b.h.End = time
	b.h.Events++
	ev := numbered{Event: e, at: at, time: time, line: line}
	switch {
	case e.atRest():
		b.rest(ev)
	case e.Process == Nemesis:
		b.fault(ev)
	case e.Type == Invoke:
		b.invoke(ev)
	default:
		b.complete(ev)
	}
	return nil
}

// Problems adds what was found wrong before an event came about.
func (b *Builder) AddProblems(ps []Problem) {
	for _, p := range ps {
		b.keep(p)
	}
}

// History is the result. Operations that are still open have no completion and
// are of unknown outcome. The builder must not be used any more.
func (b *Builder) History() *History {
	if b.more > 0 {
		text := fmt.Sprintf("%d more problems", b.more)
		b.h.Problems = append(b.h.Problems, Problem{Index: -1, Text: text})
	}
	return b.h
}

// numbered is an event with the index and the time that it is judged by.
type numbered struct {
	*Event
	at   int32
	time time.Duration
	line int
}

func (b *Builder) number(e *Event, line int) (int32, error) {
	if b.last >= math.MaxInt32-1 {
		return 0, fmt.Errorf("reading event %d: a history can have %d events at most", b.last+1, math.MaxInt32)
	}
	index := e.Index
	if index <= b.last || index >= math.MaxInt32 {
		index = b.last + 1
		b.problem(int32(index), line, "the index %d is not greater than that of the event before, or is too great; "+
			"it was read as %d", e.Index, index)
	}
	b.last = index
	return int32(index), nil
}

func (b *Builder) problem(at int32, line int, format string, args ...any) {
	if len(b.h.Problems) >= maxProblems {
		b.more++
		return
	}
	b.keep(Problem{Index: int64(at), Line: line, Text: fmt.Sprintf(format, args...)})
}

func (b *Builder) keep(p Problem) {
	if len(b.h.Problems) >= maxProblems {
		b.more++
		return
	}
	b.h.Problems = append(b.h.Problems, p)
}

func (b *Builder) fault(e numbered) {
	f := Fault{Name: e.F, Time: e.time, Index: e.at}
	f.Phase = Noted
	if e.Value != nil && e.Value.Fault != nil {
		f.FaultValue = *e.Value.Fault
	}
	b.h.Faults = append(b.h.Faults, f)
}

func (b *Builder) invoke(e numbered) {
	s := Span{
		Call: e.time, Return: Infinity, Invoked: e.at, Ended: -1, Process: e.Process,
		Op: opOf(e.F), Outcome: Info, Permits: 1, Write: true,
	}
	s.Key = intern(&b.h.Keys, b.keys, e.Key)
	s.Owner = b.owner(e, s.Key)
	if v := e.Value; v != nil {
		s.Lease, s.Token, s.Write = v.Lease, v.Token, v.Mode != "read"
		s.Permits = int32(max(1, min(v.Permits, MaxPermits)))
		b.limit(e, s.Key)
	}
	open := b.open[e.Process]
	if open == nil {
		open = new(opened)
		b.open[e.Process] = open
	}
	if first, any := open.first(b.h.Spans); any {
		b.problem(e.at, e.line, "process %d invokes %s while its operation of event %d is open", e.Process, e.F,
			b.h.Spans[first].Invoked)
	}
	b.h.Spans = append(b.h.Spans, s)
	open.add(int32(len(b.h.Spans)-1), b.h.Spans)
}

func (b *Builder) complete(e numbered) {
	i, found := b.match(e)
	switch {
	case found:
		b.end(&b.h.Spans[i], e)
		b.sortOut(i, e)
	case e.Type == Info && opOf(e.F) == OpOther:
		b.notice(e)
	case e.F == Touch: // the guarded resource may be heard of by its answer alone
	default:
		b.problem(e.at, e.line, "process %d completes %s without having invoked it; it was ignored", e.Process, e.F)
	}
	if e.F == Touch {
		b.touch(e)
	}
}

// match finds the open operation that e completes: the latest of the same name
// and key, and takes it out of the open ones.
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

func (b *Builder) end(s *Span, e numbered) {
	s.Ended, s.Outcome, s.Busy = e.at, e.Type, e.Busy()
	s.Held = e.Held && e.Type == Fail
	if e.Type != Info {
		s.Return = e.time
	}
	v := e.Value
	if v == nil {
		return
	}
	if v.Token != 0 || v.Zero {
		s.Token, s.Zero = v.Token, v.Zero
	}
	if v.Owner != "" { // histories of other suites name the owner in the answer
		s.Owner = b.owner(e, s.Key)
	}
	s.Count = int32(max(math.MinInt32, min(v.Count, math.MaxInt32))) // too great to be right stays so
	if e.Type == OK {
		s.Valid = validity(e.time, v.Valid)
	}
}

// validity is the end of a promise made at t; 0 stays "nothing was promised",
// and a promise that had run out when it was made ends at least after 0.
func validity(t, valid time.Duration) time.Duration {
	if valid == 0 {
		return 0
	}
	if valid > 0 && t > Infinity-valid {
		return Infinity
	}
	return max(1, t+valid)
}

func (b *Builder) notice(e numbered) {
	n := Notice{Time: e.time, Index: e.at, Process: e.Process, F: e.F}
	n.Key = intern(&b.h.Keys, b.keys, e.Key)
	n.Owner = b.owner(e, n.Key)
	if e.Value != nil {
		n.Valid = validity(e.time, e.Value.Valid)
	}
	b.h.Notices = append(b.h.Notices, n)
}

func (b *Builder) touch(e numbered) {
	if e.Value == nil || e.Value.Touch == nil {
		b.problem(e.at, e.line, "the touch of process %d does not say what the resource saw; it was ignored", e.Process)
		return
	}
	t := Touched{TouchValue: *e.Value.Touch, Time: e.time, Token: e.Value.Token, Index: e.at, Process: e.Process}
	t.Key = intern(&b.h.Keys, b.keys, e.Key)
	t.Owner = b.owner(e, t.Key)
	t.Accepted = e.Type == OK
	if e.Type == Info { // the resource's answer was not recorded: it kept its rule
		t.Accepted = !t.Fenced || t.Token >= t.MaxSeen
	}
	b.h.Touches = append(b.h.Touches, t)
}

// owner is who e acts for: the owner it names, else the one that its process
// last acquired the key for, else the process itself.
func (b *Builder) owner(e numbered, key int32) int32 {
	at := place{e.Process, key}
	if e.Value != nil && e.Value.Owner != "" {
		o := intern(&b.h.Owners, b.owners, e.Value.Owner)
		if e.F == Acquire || e.F == Try {
			b.holder[at] = o
		}
		return o
	}
	if o, ok := b.holder[at]; ok && e.F != Acquire && e.F != Try {
		return o
	}
	return intern(&b.h.Owners, b.owners, processOwner(e.Process))
}

// processOwner is the owner that is meant where none is named.
func processOwner(p Process) string { return "process " + strconv.Itoa(int(p)) }

func intern(names *[]string, index map[string]int32, name string) int32 {
	if i, ok := index[name]; ok {
		return i
	}
	i := int32(len(*names))
	*names = append(*names, name)
	index[name] = i
	return i
}

func opOf(f string) Op {
	switch f {
	case Acquire:
		return OpAcquire
	case Try:
		return OpTry
	case Release:
		return OpRelease
	case Renew:
		return OpRenew
	case Work:
		return OpWork
	case Touch:
		return OpTouch
	}
	return OpOther
}
