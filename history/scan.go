package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lockchaos/lockchaos/history/internal/edn"
	"github.com/lockchaos/lockchaos/history/internal/input"
)

// LineError is an error at a place in a file.
type LineError struct {
	File   string // empty: unknown
	Line   int    // from 1
	Column int    // in bytes, from 1; 0: unknown
	Err    error
}

// Error returns "file:line:column: error".
func (e *LineError) Error() string {
	at := fmt.Sprintf("line %d", e.Line)
	if e.File != "" {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Column > 0 {
		at += fmt.Sprintf(":%d", e.Column)
	}
	return at + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *LineError) Unwrap() error { return e.Err }

// Scan reads events as JSON lines, one by one, in memory that does not grow with the input, and calls visit with each
// event and its line, from 1. The next event overwrites it and all that it points to; see [Event.Clone]. name is for
// error messages. A torn last line, as a kill leaves it, is a [Problem] and not an error; the error is a [*LineError],
// which wraps an error of r as well, or visit's error.
func Scan(r io.Reader, name string, visit func(e *Event, line int) error) ([]Problem, error) {
	s := scanner{
		file: name, lines: input.NewLines(bufio.NewReaderSize(r, 256<<10)),
		parser: parser{words: make(map[string]string)},
	}
	for {
		switch more, err := s.next(); {
		case err != nil:
			return s.problems, err
		case !more:
			return s.problems, nil
		}
		if err := visit(&s.parser.event, s.lines.N); err != nil {
			return s.problems, err
		}
	}
}

// RecordedEvent parses a line. It reports whether the line has only the fields that a [Recorder] writes.
func RecordedEvent(line []byte) (e Event, recorded bool) {
	p := parser{words: make(map[string]string)}
	recorded = p.parseFast(line)
	return p.event, recorded
}

// scanner reads events from JSON lines.
type scanner struct {
	file      string // for error messages; may be empty
	lines     *input.Lines
	parser    parser // has the current event
	following int64  // index of an event that has none
	problems  []Problem
}

// next advances to the next event. It reports whether there is one.
func (s *scanner) next() (bool, error) {
	line, whole, err := s.lines.Next()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, lineError(s.file, s.lines.N, err)
	}
	if err := s.parser.parse(line); err != nil {
		if !whole {
			s.problems = append(s.problems, tornLine(s.lines.N, len(line)))
			return false, nil
		}
		return false, lineError(s.file, s.lines.N, err)
	}
	if !s.parser.index {
		s.parser.event.Index = s.following
	}
	if name := s.parser.duplicate; name != "" && len(s.problems) < input.MaxProblems {
		p := Problem{Index: s.parser.event.Index, Line: s.lines.N, Text: input.Duplicate(name)}
		s.problems = append(s.problems, p)
	}
	s.following = s.parser.event.Index + 1
	return true, nil
}

func tornLine(line, bytes int) Problem {
	return Problem{Index: -1, Line: line, Text: input.Torn(bytes)}
}

// lineError is err at a line of a file, and at a column if a parser of JSON says where it failed.
func lineError(file string, line int, err error) *LineError {
	e := &LineError{File: file, Line: line, Err: err}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var strict *edn.SyntaxError
	switch {
	case errors.As(err, &syntax):
		e.Column = max(1, int(syntax.Offset))
	case errors.As(err, &kind):
		e.Column = max(1, int(kind.Offset))
	case errors.As(err, &strict):
		e.Column, e.Err = strict.Column, strict.Err
	}
	return e
}

// Clone returns a deep copy of e.
func (e *Event) Clone() Event {
	c := *e
	c.Error, c.Value = copied(e.Error), copied(e.Value)
	if v := c.Value; v != nil {
		v.Touch, v.Fault, v.Left = copied(v.Touch), copied(v.Fault), copied(v.Left)
		if v.Left != nil {
			v.Left.Keys = slices.Clone(v.Left.Keys)
		}
	}
	return c
}

// copied is a shallow copy of *p; nil if p is.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
