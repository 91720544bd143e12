package history

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lockchaos/lockchaos/history/internal/edn"
)

// Source tells how a history was read.
type ReadInfo struct {
	Format       Format             // never FormatAuto
	Reason       string             // what the format was told by
	Affected     map[Assumption]int // events that each assumption changes, or would change
	Foreign      bool               // the events went through a [Reading]
	Clients      int                // number of clients, if the history tells it, as the notation can
	Problems     []Problem          // what had to be ignored or made up
	ProcessNames []string           // names of the processes that have no number, see [History.WithNames]
}

// visitor is given every event; e is overwritten afterwards.
type visitor func(e *Event, line int) error

// source is a reading that is going on.
type source struct {
	ReadInfo
	name   string
	mapper *mapper
}

// Each reads events in any format, one after the other, and gives each to
// visit with its line; the event is overwritten afterwards. Memory does not grow with
// the text. An error is a [*LineError] for a text that is not a history at that
// place, [ErrNotHistory] for one that is none at all, what visit said, or the reader's own.
func ReadEvents(r io.Reader, name string, how ReadOptions, visit func(e *Event, line int) error) (ReadInfo, error) {
	s := source{name: name, mapper: newMapper(how)}
	if seen := how.Progress; seen != nil {
		unseen := visit
		visit = func(e *Event, line int) error {
			seen.Add(1)
			return unseen(e, line)
		}
	}
	buffered := bufio.NewReaderSize(r, window)
	err := s.choose(buffered, how)
	if err == nil {
		err = s.read(buffered, visit)
	}
	s.Affected = s.mapper.matter
	s.Problems = append(s.Problems, s.mapper.problems...)
	if n := s.mapper.untimed; n > 0 {
		s.note(fmt.Sprintf("%d events have no time: their order stands in for it, a nanosecond each, so that lengths of "+
			"time mean nothing", n))
	}
	s.ProcessNames = s.mapper.named
	for i := range s.Problems {
		s.Problems[i].Text = withNames(s.Problems[i].Text, s.ProcessNames)
	}
	return s.ReadInfo, err
}

func (s *source) choose(r *bufio.Reader, how ReadOptions) (err error) {
	s.Format, s.Reason = how.Format, "it was asked for"
	if how.Format == "" || how.Format == FormatAuto {
		if s.Format, s.Reason, err = Detect(r); err != nil {
			return s.whole(err)
		}
		if s.Format == FormatJSONL && how.Foreign() {
			s.Format, s.Reason = FormatJSON, "it is JSON lines, and how to read them was asked for"
		}
	}
	s.Foreign = s.Format == FormatJSON || s.Format == FormatEDN || s.Format == FormatTSV
	if head, _ := r.Peek(3); string(head) == "\xef\xbb\xbf" { // byte order mark
		_, err = r.Discard(3)
	}
	return err
}

func (s *source) read(r *bufio.Reader, visit visitor) error {
	switch s.Format {
	case FormatJSONL:
		return s.readLines(r, visit)
	case FormatJSON:
		return s.readForms(edn.NewJSON(r), visit)
	case FormatEDN:
		return s.readForms(edn.NewReader(r), visit)
	case FormatTSV:
		return s.readTSV(r, visit)
	case FormatText:
		return s.readText(r, visit)
	}
	return s.whole(fmt.Errorf("no format is called %q (there are %v)", s.Format, Formats()))
}

func (s *source) readLines(r io.Reader, visit visitor) error {
	scan := NewScanner(r)
	scan.File = s.name
	for scan.Next() {
		if err := visit(scan.Event(), scan.Line()); err != nil {
			return err
		}
	}
	s.Problems = append(s.Problems, scan.Problems()...)
	return scan.Err()
}

func (s *source) readForms(forms *edn.Reader, visit visitor) error {
	var syntax *edn.SyntaxError
	for {
		form, err := forms.Next()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, edn.ErrTorn):
			s.note("the event is torn off, and another begins inside it; it was ignored")
			s.Problems[len(s.Problems)-1].Line = forms.Line()
			continue
		case errors.Is(err, io.ErrUnexpectedEOF) && errors.As(err, &syntax):
			s.note("the last event is torn off, or the bracket after it is missing; what was whole before it was read")
			s.Problems[len(s.Problems)-1].Line = syntax.Line
			return nil
		case errors.As(err, &syntax):
			return s.at(syntax.Line, syntax.Column, syntax.Err)
		default:
			return s.whole(err)
		}
		e, err := s.mapper.see(form, forms.Line())
		if err != nil {
			return s.at(forms.Line(), forms.Column(), err)
		}
		if name := forms.Twice(); name != "" {
			s.mapper.problem(forms.Line(), "%s", twiceText(name))
		}
		if err := visit(e, forms.Line()); err != nil {
			return err
		}
	}
}

// readText reads the notation, whose lines may be in any order: it is kept whole.
func (s *source) readText(r io.Reader, visit visitor) error {
	limited := &io.LimitedReader{R: r, N: maxLine}
	events, clients, err := ReadTextEvents(limited, s.name)
	if err == nil && limited.N == 0 {
		err = s.whole(fmt.Errorf("it is longer than %d MiB: write JSON lines", maxLine>>20))
	}
	if err != nil {
		return err
	}
	s.Clients = clients
	for i := range events {
		if err := visit(&events[i], 0); err != nil {
			return err
		}
	}
	return nil
}

// visit gives a foreign form a meaning and passes it on.
func (s *source) visit(form edn.Value, line int, visit visitor) error {
	e, err := s.mapper.see(form, line)
	if err != nil {
		return s.at(line, 0, err)
	}
	return visit(e, line)
}

func (s *source) at(line, column int, err error) error {
	return &LineError{File: s.name, Line: line, Column: max(0, column), Err: err}
}

func (s *source) whole(err error) error {
	if s.name == "" {
		return fmt.Errorf("reading a history: %w", err)
	}
	return fmt.Errorf("reading %s: %w", s.name, err)
}

func (s *source) note(text string) {
	s.Problems = append(s.Problems, Problem{Index: -1, Text: text})
}

func (s *source) torn(line, bytes int) {
	s.note(fmt.Sprintf("the last line is torn off after %d bytes and was ignored", bytes))
	s.Problems[len(s.Problems)-1].Line = line
}

// ReadAny reads and pairs a history in any format; name is for error messages.
// For errors see [Each].
func ReadAny(r io.Reader, name string, how ReadOptions) (*History, ReadInfo, error) {
	b := NewBuilder()
	s, err := ReadEvents(r, name, how, b.Add)
	if err != nil {
		return nil, s, err
	}
	b.AddProblems(s.Problems)
	h := b.History()
	h.ProcessNames = s.ProcessNames
	for i := range h.Problems {
		h.Problems[i].Text = h.NameProcesses(h.Problems[i].Text)
	}
	h.Clients = cmp.Or(how.Clients, s.Clients)
	if s.Foreign && how.Owner != "" && how.Owner != "process" {
		h.nameOwners()
	}
	return h, s, nil
}

// ReadAnyFile is [ReadAny] of a file.
func ReadAnyFile(path string, how ReadOptions) (*History, ReadInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, ReadInfo{}, fmt.Errorf("reading a history: %w", err)
	}
	defer f.Close()
	return ReadAny(f, path, how)
}

// nameOwners gives the operations that do not name their owner - failed ones,
// and those of unknown outcome - the one owner that their process, or else
// their client, ever named. Where it named several nothing is known.
func (h *History) nameOwners() {
	const several = int32(-1)
	byProcess, byClient := make(map[Process]int32), make(map[int]int32)
	unnamed := func(s *Span) bool { return h.Owners[s.Owner] == processOwner(s.Process) }
	for i := range h.Spans {
		s := &h.Spans[i]
		if unnamed(s) {
			continue
		}
		if o, known := byProcess[s.Process]; known && o != s.Owner {
			byProcess[s.Process] = several
		} else if !known {
			byProcess[s.Process] = s.Owner
		}
		client := s.Process.Client(h.Clients)
		if s.Process >= firstNamed { // its number says nothing
			continue
		}
		if o, known := byClient[client]; known && o != s.Owner {
			byClient[client] = several
		} else if !known {
			byClient[client] = s.Owner
		}
	}
	for i := range h.Spans {
		s := &h.Spans[i]
		if !unnamed(s) {
			continue
		}
		o, known := byProcess[s.Process]
		if !known && h.Clients > 0 && s.Process < firstNamed {
			o, known = byClient[s.Process.Client(h.Clients)]
		}
		if known && o != several {
			s.Owner = o
		}
	}
}

// ParseUnit reads the unit of foreign times: ns, us, ms or s; the empty word is 0.
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
	return 0, fmt.Errorf("%q is no unit of time: want ns, us, ms or s", word)
}
