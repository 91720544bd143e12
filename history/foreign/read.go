// Package foreign reads histories that no [history.Recorder] has written, of other test suites (Jepsen's EDN and
// history.txt, JSON) or written by hand, and writes EDN. Its Go API is not a promise.
//
// Read [Read] first. [Detect] finds the [Format] of a text. [Options] resolve the
// ambiguities of a history of another suite: a [Dialect] is the set of options for one suite, and each [Assumption]
// changes the meaning of some events.
package foreign

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/internal/edn"
	"github.com/lockchaos/lockchaos/history/internal/input"
)

// Info describes how a history was read.
type Info struct {
	Format       Format             // never FormatAuto
	Reason       string             // for Format
	Affected     map[Assumption]int // number of events that each assumption changes, or would change
	Foreign      bool               // the format is one of other suites, so that all of Options applied
	Clients      int                // number of clients, if the history contains it, as FormatText may; 0: unknown
	Problems     []history.Problem  // events that were ignored or repaired
	Keys         ValueKeys          // whether values name locks, where nothing else does
	ProcessNames []string           // names of processes without a number, see [history.History.NameProcesses]
}

// visitor is called with every event, which is overwritten afterwards, and its line.
type visitor func(e *history.Event, line int) error

// reading is the state of [ReadEvents].
type reading struct {
	Info
	name   string
	mapper *mapper
}

// ReadEvents reads events in any format and calls visit with each event, which is overwritten afterwards, and its line
// (0: unknown). Memory does not grow with the input, except for FormatText. name is for error messages. The error is a
// [*history.LineError] for input that is not an event, [ErrNotHistory] for a file in no known format, or an error of
// visit or r.
func ReadEvents(r io.Reader, name string, o Options, visit func(e *history.Event, line int) error) (Info, error) {
	in := reading{name: name, mapper: newMapper(o)}
	if o.Progress != nil {
		uncounted := visit
		visit = func(e *history.Event, line int) error {
			o.Progress.Add(1)
			return uncounted(e, line)
		}
	}
	buffered := bufio.NewReaderSize(r, window)
	err := in.chooseFormat(buffered, o)
	if err == nil {
		err = in.read(buffered, visit)
	}
	in.Affected, in.Keys = in.mapper.affected, in.mapper.valued.result()
	in.Problems = append(in.Problems, in.mapper.problems...)
	if n := in.mapper.untimed; n > 0 {
		in.problem(0, "events without a time: %d; they count as 1 ns apart, so durations have no meaning", n)
	}
	if in.Keys.Certain {
		in.problem(0, "the values name several locks, but were read as those of one: use --key %s", in.Keys.Path)
	}
	in.ProcessNames = in.mapper.processNames
	named := history.History{ProcessNames: in.ProcessNames}
	for i := range in.Problems {
		in.Problems[i].Text = named.NameProcesses(in.Problems[i].Text)
	}
	return in.Info, err
}

func (in *reading) chooseFormat(r *bufio.Reader, o Options) (err error) {
	in.Format, in.Reason = o.Format, "as requested"
	if o.Format == "" || o.Format == FormatAuto {
		if in.Format, in.Reason, err = Detect(r); err != nil {
			return in.wrap(err)
		}
		if in.Format == FormatJSONL && o.Foreign() {
			in.Format, in.Reason = FormatJSON, "JSON lines, with options for histories of other suites"
		}
	}
	in.Foreign = in.Format == FormatJSON || in.Format == FormatEDN || in.Format == FormatTSV
	if head, _ := r.Peek(3); string(head) == "\xef\xbb\xbf" { // byte order mark
		_, err = r.Discard(3)
	}
	return err
}

func (in *reading) read(r *bufio.Reader, visit visitor) error {
	switch in.Format {
	case FormatJSONL:
		return in.readLines(r, visit)
	case FormatJSON:
		return in.readForms(edn.NewJSON(r), visit)
	case FormatEDN:
		return in.readForms(edn.NewReader(r), visit)
	case FormatTSV:
		return in.readTSV(r, visit)
	case FormatText:
		return in.readText(r, visit)
	}
	return in.wrap(fmt.Errorf("unknown format %q; there are %v", in.Format, Formats()))
}

func (in *reading) readLines(r io.Reader, visit visitor) error {
	problems, err := history.Scan(r, in.name, visit)
	in.Problems = append(in.Problems, problems...)
	return err
}

func (in *reading) readForms(forms *edn.Reader, visit visitor) error {
	var syntax *edn.SyntaxError
	for {
		form, err := forms.Next()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, edn.ErrTorn):
			in.problem(forms.Line(), "event torn: another event starts inside it; ignored")
			continue
		case errors.Is(err, io.ErrUnexpectedEOF) && errors.As(err, &syntax):
			in.problem(syntax.Line, "last event torn, or closing bracket missing; everything before was read")
			return nil
		case errors.As(err, &syntax):
			return in.lineError(syntax.Line, syntax.Column, syntax.Err)
		default:
			return in.wrap(err)
		}
		e, err := in.mapper.event(form, forms.Line())
		if err != nil {
			return in.lineError(forms.Line(), forms.Column(), err)
		}
		if name := forms.Duplicate(); name != "" {
			in.mapper.problem(forms.Line(), "%s", input.Duplicate(name))
		}
		if err := visit(e, forms.Line()); err != nil {
			return err
		}
	}
}

// readText keeps all events in memory, because the lines of FormatText may be in any order.
func (in *reading) readText(r io.Reader, visit visitor) error {
	limited := &io.LimitedReader{R: r, N: input.MaxLine}
	events, clients, err := ReadTextEvents(limited, in.name)
	if err == nil && limited.N == 0 {
		err = in.wrap(fmt.Errorf("text history exceeds %d MiB; use JSON lines", input.MaxLine>>20))
	}
	if err != nil {
		return err
	}
	in.Clients = clients
	for i := range events {
		if err := visit(&events[i], 0); err != nil {
			return err
		}
	}
	return nil
}

func (in *reading) lineError(line, column int, err error) error {
	return &history.LineError{File: in.name, Line: line, Column: max(0, column), Err: err}
}

func (in *reading) wrap(err error) error {
	return fmt.Errorf("reading %s: %w", cmp.Or(in.name, "a history"), err)
}

// problem records a repair; line is 0 if it is unknown.
func (in *reading) problem(line int, format string, args ...any) {
	in.Problems = append(in.Problems, history.Problem{Index: -1, Line: line, Text: fmt.Sprintf(format, args...)})
}

// Read reads a history in any format; name is for error messages. For errors see [ReadEvents].
func Read(r io.Reader, name string, o Options) (*history.History, Info, error) {
	b := history.NewBuilder()
	add := b.Add
	if o.Size > 0 {
		sized := &sizedBuilder{Builder: b, r: r, size: o.Size}
		r, add = sized, sized.add
	}
	info, err := ReadEvents(r, name, o, add)
	if err != nil {
		return nil, info, err
	}
	h := b.History(info.Problems...)
	h.ProcessNames = info.ProcessNames
	for i := range h.Problems {
		h.Problems[i].Text = h.NameProcesses(h.Problems[i].Text)
	}
	h.Clients = cmp.Or(o.Clients, info.Clients)
	if info.Foreign && o.Owner != "" && o.Owner != "process" {
		inferOwners(h)
	}
	return h, info, nil
}

// inferOwners sets the owner of operations that do not name it (failed ones, and ones of unknown outcome) to the
// only owner that their process, or else their client, ever named. If it named several, the owner stays unknown.
func inferOwners(h *history.History) {
	const several = int32(-1)
	byProcess, byClient := make(map[history.Process]int32), make(map[history.Process]int32)
	add := func(owners map[history.Process]int32, p history.Process, owner int32) {
		if o, ok := owners[p]; ok && o != owner {
			owner = several
		}
		owners[p] = owner
	}
	client := func(p history.Process) history.Process { return history.Process(p.Client(h.Clients)) }
	var unnamed []*history.Span
	for i := range h.Spans {
		s := &h.Spans[i]
		if h.Owners[s.Owner] == input.ProcessOwner(int(s.Process)) {
			unnamed = append(unnamed, s)
			continue
		}
		add(byProcess, s.Process, s.Owner)
		if s.Process < input.FirstNamed { // the number of a named process has no meaning
			add(byClient, client(s.Process), s.Owner)
		}
	}
	for _, s := range unnamed {
		owner, ok := byProcess[s.Process]
		if !ok && h.Clients > 0 && s.Process < input.FirstNamed {
			owner, ok = byClient[client(s.Process)]
		}
		if ok && owner != several {
			s.Owner = owner
		}
	}
}

// ParseUnit parses a unit of time: ns, us, ms or s. An empty one is 0.
func ParseUnit(word string) (time.Duration, error) {
	switch word {
	case "":
		return 0, nil
	case "ns":
		return time.Nanosecond, nil
	case "us", "µs":
		return time.Microsecond, nil
	case "ms":
		return time.Millisecond, nil
	case "s":
		return time.Second, nil
	}
	return 0, fmt.Errorf("unit of time %q: expected ns, us, ms or s", word)
}
