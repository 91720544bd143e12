package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxLine bounds one event, in bytes.
const maxLine = 16 << 20

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

// Scanner reads events from JSON lines one by one, in memory that does not grow with the file. It must not be
// used concurrently.
type Scanner struct {
	File string // for error messages; may be empty

	lines    lines
	parser   parser
	next     int64 // index of an event that has none
	problems []Problem
	err      error
}

// NewScanner returns a scanner of r, which it does not close.
func NewScanner(r io.Reader) *Scanner {
	return &Scanner{
		lines:  lines{r: bufio.NewReaderSize(r, 256<<10)},
		parser: parser{words: make(map[string]string)},
	}
}

// Next advances to the next event. It returns false at the end or at an error, see Err. A torn last
// line, as a kill leaves it, is a problem and not an error.
func (s *Scanner) Next() bool {
	if s.err != nil {
		return false
	}
	line, whole, err := s.lines.next()
	if err != nil {
		s.fail(err, 0)
		return false
	}
	if err := s.parser.parse(line); err != nil {
		if !whole {
			s.problems = append(s.problems, tornLine(s.lines.n, len(line)))
			s.err = io.EOF
			return false
		}
		s.fail(err, column(err))
		return false
	}
	if !s.parser.index {
		s.parser.event.Index = s.next
	}
	if name := s.parser.duplicate; name != "" && len(s.problems) < maxProblems {
		p := Problem{Index: s.parser.event.Index, Line: s.lines.n, Text: duplicateText(name)}
		s.problems = append(s.problems, p)
	}
	s.next = s.parser.event.Index + 1
	return true
}

func tornLine(line, bytes int) Problem {
	return Problem{Index: -1, Line: line, Text: fmt.Sprintf("last line torn after %d bytes; ignored", bytes)}
}

// Event returns the current event. The next call of Next overwrites it and all that it points to;
// see [Event.Clone].
func (s *Scanner) Event() *Event { return &s.parser.event }

// Line returns the line of the current event, from 1.
func (s *Scanner) Line() int { return s.lines.n }

// Problems returns what was ignored so far.
func (s *Scanner) Problems() []Problem { return s.problems }

// Err returns why Next returned false: nil at the end, else a [*LineError], which wraps an error of the
// reader as well.
func (s *Scanner) Err() error {
	if errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}

func (s *Scanner) fail(err error, column int) {
	if errors.Is(err, io.EOF) && column == 0 {
		s.err = io.EOF
		return
	}
	s.err = &LineError{File: s.File, Line: s.lines.n, Column: column, Err: err}
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

// column returns where encoding/json failed, from 1; 0: unknown.
func column(err error) int {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return max(1, int(syntax.Offset))
	case errors.As(err, &kind):
		return max(1, int(kind.Offset))
	}
	return 0
}

// lines cuts a reader into lines that are not blank.
type lines struct {
	r    *bufio.Reader
	long []byte // a line longer than r's buffer
	n    int    // lines so far
}

// next returns the next line without its line end, and whether it had one. The next call overwrites the bytes.
// The error is io.EOF at the end of the input.
func (l *lines) next() (line []byte, whole bool, err error) {
	for {
		line, err := l.read()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, err
		}
		if len(line) == 0 {
			return nil, false, io.EOF
		}
		l.n++
		whole := err == nil
		if line = bytes.TrimRight(line, " \t\r\n"); len(line) > 0 {
			return line, whole, nil
		}
	}
}

func (l *lines) read() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	l.long = append(l.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(l.long) > maxLine {
			l.n++
			return nil, fmt.Errorf("line exceeds %d MiB", maxLine>>20)
		}
		line, err = l.r.ReadSlice('\n')
		l.long = append(l.long, line...)
	}
	return l.long, err
}
