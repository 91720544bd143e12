package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxLine is the longest line that is still believed to be an event, in bytes.
const maxLine = 16 << 20

// LineError says where a file is not what it should be.
type LineError struct {
	File   string // empty if the reader was not told
	Line   int    // from 1
	Column int    // in bytes, from 1; 0 if unknown
	Err    error
}

// Error is "file:line:column: what".
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

// Unwrap is the cause.
func (e *LineError) Unwrap() error { return e.Err }

// Scanner reads events from JSON lines, one at a time, in memory that does not
// grow with the file. It belongs to one goroutine.
type Scanner struct {
	File string // for error messages; may be left empty

	lines    lines
	parser   parser
	next     int64 // index for an event that brings none
	problems []Problem
	err      error
}

// Read makes a scanner of r, which it does not close.
func NewScanner(r io.Reader) *Scanner {
	return &Scanner{
		lines:  lines{r: bufio.NewReaderSize(r, 256<<10)},
		parser: parser{words: make(map[string]string)},
	}
}

// Next goes to the next event; false at the end, or at an error (see Err).
// A last line that was torn off, as a kill leaves it, is a problem and no error.
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
			text := fmt.Sprintf("the last line is torn off after %d bytes and was ignored", len(line))
			s.problems = append(s.problems, Problem{Index: -1, Line: s.lines.n, Text: text})
			s.err = io.EOF
			return false
		}
		s.fail(err, column(err))
		return false
	}
	if s.parser.twice != "" {
		at := s.parser.event.Index
		if !s.parser.index {
			at = s.next
		}
		s.note(Problem{Index: at, Line: s.lines.n, Text: twiceText(s.parser.twice)})
	}
	if !s.parser.index {
		s.parser.event.Index = s.next
	}
	s.next = s.parser.event.Index + 1
	return true
}

// note keeps a problem, if there are not too many already.
func (s *Scanner) note(p Problem) {
	if len(s.problems) < maxProblems {
		s.problems = append(s.problems, p)
	}
}

// Event is the event that Next went to. It, and all that it points to, is
// overwritten by the next call of Next; see [Event.Clone].
func (s *Scanner) Event() *Event { return &s.parser.event }

// Line is the line that Event was on, from 1.
func (s *Scanner) Line() int { return s.lines.n }

// Problems is what had to be ignored so far.
func (s *Scanner) Problems() []Problem { return s.problems }

// Err is why Next said false: nil at the end, a [*LineError] for a line that is
// not an event, or the reader's own error.
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

// Clone is a copy of e that shares nothing with it.
func (e *Event) Clone() Event {
	c := *e
	if e.Error != nil {
		cause := *e.Error
		c.Error = &cause
	}
	if e.Value == nil {
		return c
	}
	v := *e.Value
	c.Value = &v
	if v.Touch != nil {
		touch := *v.Touch
		v.Touch = &touch
	}
	if v.Fault != nil {
		fault := *v.Fault
		v.Fault = &fault
	}
	if v.Left != nil {
		left := *v.Left
		left.Keys = slices.Clone(left.Keys)
		v.Left = &left
	}
	return c
}

// column is where encoding/json stumbled, from 1; 0 if it does not say.
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

// lines cuts a reader into lines that have something on them.
type lines struct {
	r    *bufio.Reader
	long []byte // a line that did not fit into r's buffer
	n    int    // lines so far
}

// next is the next line without its end, and whether it had one. The bytes are
// overwritten by the following call. At the end of the input it is io.EOF.
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
		if line = trim(line); len(line) > 0 {
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
			return nil, fmt.Errorf("a line of more than %d MiB is not an event", maxLine>>20)
		}
		line, err = l.r.ReadSlice('\n')
		l.long = append(l.long, line...)
	}
	return l.long, err
}

// trim takes white space, line ends included, off the end of a line.
func trim(line []byte) []byte {
	for n := len(line); n > 0; n-- {
		if c := line[n-1]; c != '\n' && c != '\r' && c != ' ' && c != '\t' {
			return line[:n]
		}
	}
	return nil
}
