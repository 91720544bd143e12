package edn

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// peek returns the next byte without consuming it.
func (r *Reader) peek() (byte, error) {
	if r.i < len(r.buf) {
		return r.buf[r.i], nil
	}
	return r.fill()
}

func (r *Reader) fill() (byte, error) {
	if r.end != nil {
		return 0, r.end
	}
	r.base += int64(len(r.buf))
	r.i = 0
	r.buf = r.buf[:0]
	if r.form >= 0 && r.base-r.form > maxForm {
		return 0, r.errorf("form exceeds %d MiB", maxForm>>20)
	}
	for tries := 0; len(r.buf) == 0 && r.end == nil; tries++ {
		n, err := r.r.Read(r.buf[:cap(r.buf)])
		r.buf, r.end = r.buf[:n], err
		if tries > 100 {
			r.end = io.ErrNoProgress
		}
	}
	if len(r.buf) == 0 {
		return 0, r.end
	}
	return r.buf[0], nil
}

// newline must be called for every line end that is consumed.
func (r *Reader) newline() {
	r.line++
	r.lineStart = r.base + int64(r.i)
}

// skip advances to the next byte that is neither white space nor comment.
func (r *Reader) skip() (byte, error) {
	for {
		c, err := r.peek()
		if err != nil {
			return 0, err
		}
		switch {
		case c == '\n':
			r.i++
			r.newline()
		case c == ' ' || c == '\t' || c == '\r' || !r.json && (c == ',' || c == '\f'):
			r.i++
		case c == ';' && !r.json:
			if err := r.comment(); err != nil {
				return 0, err
			}
		default:
			return c, nil
		}
	}
}

func (r *Reader) comment() error {
	for {
		c, err := r.peek()
		if err != nil || c == '\n' {
			return err
		}
		r.i++
	}
}

// expect consumes c, or returns an error.
func (r *Reader) expect(c byte) error {
	got, err := r.skip()
	if err != nil {
		return r.unexpectedEOF(err)
	}
	if got != c {
		return r.errorf("expected %q, got %q", c, got)
	}
	r.i++
	return nil
}

func (r *Reader) position() position {
	return position{r.line, int(r.base + int64(r.i) - r.lineStart + 1)}
}

func (r *Reader) errorf(format string, args ...any) error {
	at := r.position()
	return &SyntaxError{Line: at.line, Column: at.column, Err: fmt.Errorf(format, args...)}
}

// unexpectedEOF turns io.EOF inside a form into io.ErrUnexpectedEOF.
func (r *Reader) unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return r.errorf("input ends inside a form: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// isDelimiter marks the bytes that end a number, symbol or keyword.
//
//nolint:gochecknoglobals // a table, never changed
var isDelimiter = [256]bool{
	' ': true, '\t': true, '\n': true, '\r': true, '\f': true, ',': true, ';': true, '"': true, '(': true, ')': true,
	'[': true, ']': true, '{': true, '}': true, '\\': true, '@': true, '^': true, '`': true, '~': true,
}

// readToken reads a number, symbol or keyword into token.
func (r *Reader) readToken() error {
	r.token = r.token[:0]
	for {
		if _, err := r.peek(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		n := r.i
		for n < len(r.buf) && !isDelimiter[r.buf[n]] && (!r.json || r.buf[n] != ':') {
			n++
		}
		r.token = append(r.token, r.buf[r.i:n]...)
		r.i = n
		if n < len(r.buf) {
			return nil
		}
	}
}

// readWord is readToken with a string as result.
func (r *Reader) readWord() (string, error) {
	if err := r.readToken(); err != nil {
		return "", err
	}
	return r.word()
}

// plainInt parses a number of digits only, the most frequent kind.
func plainInt(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// word returns the token as a string; short ones are interned.
func (r *Reader) word() (string, error) {
	if s, ok := r.words[string(r.token)]; ok {
		return s, nil
	}
	if !utf8.Valid(r.token) {
		return "", r.errorf("the text before this position is not UTF-8")
	}
	s := string(r.token)
	if len(s) <= 64 && len(r.words) < maxWords {
		r.words[s] = s
	}
	return s, nil
}
