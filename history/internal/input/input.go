// Package input is shared by the readers of all formats of a history: lines, limits, and the texts of problems.
package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Limits of a history.
const (
	MaxLine     = 16 << 20  // bytes of one event
	MaxProblems = 100       // that are listed
	FirstNamed  = 1_000_000 // number of the first process that has a name instead
)

// Torn is the text of the problem that the last line, of so many bytes, is not whole.
func Torn(bytes int) string { return fmt.Sprintf("last line torn after %d bytes; ignored", bytes) }

// Duplicate is the text of the problem that an event has a field twice.
func Duplicate(name string) string {
	return fmt.Sprintf("field %q appears twice in one event; the last value was used", name)
}

// ProcessOwner is the owner of the operations of a process that name none.
func ProcessOwner(process int) string { return "process " + strconv.Itoa(process) }

// CheckValue rejects values that no client can have sent. (A wait may be negative: without limit. A lock that miscounts
// may reply with a negative count, which is for the checkers to judge.)
func CheckValue(permits, limit int, lease time.Duration) error {
	for _, v := range []struct {
		name string
		n    int64
	}{{"permits", int64(permits)}, {"limit", int64(limit)}, {"lease", int64(lease)}} {
		if v.n < 0 {
			return fmt.Errorf("%s is %d: expected 0 or more", v.name, v.n)
		}
	}
	return nil
}

// Lines cuts a reader into lines that are not blank. It must not be used concurrently.
type Lines struct {
	N int // lines so far

	r    *bufio.Reader
	long []byte // a line longer than r's buffer
}

// NewLines returns the lines of r.
func NewLines(r *bufio.Reader) *Lines { return &Lines{r: r} }

// Next returns the next line without its line end, and whether it had one. The next call overwrites the bytes.
// The error is io.EOF at the end of the input.
func (l *Lines) Next() (line []byte, whole bool, err error) {
	for {
		line, err := l.read()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, err
		}
		if len(line) == 0 {
			return nil, false, io.EOF
		}
		l.N++
		whole := err == nil
		if line = bytes.TrimRight(line, " \t\r\n"); len(line) > 0 {
			return line, whole, nil
		}
	}
}

func (l *Lines) read() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	l.long = append(l.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(l.long) > MaxLine {
			l.N++
			return nil, fmt.Errorf("line exceeds %d MiB", MaxLine>>20)
		}
		line, err = l.r.ReadSlice('\n')
		l.long = append(l.long, line...)
	}
	return l.long, err
}
