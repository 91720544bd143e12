package edn

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// peek is the next byte, which it does not consume.
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
		return 0, r.errorf("a form of more than %d MiB is not an event", maxForm>>20)
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

// newline is told of every line end that is consumed.
func (r *Reader) newline() {
	r.line++
	r.start = r.base + int64(r.i)
}

// skip goes to the next byte that is neither space nor comment.
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

// want consumes c.
func (r *Reader) want(c byte) error {
	got, err := r.skip()
	if err != nil {
		return r.torn(err)
	}
	if got != c {
		return r.errorf("%q stands where %q is wanted", got, c)
	}
	r.i++
	return nil
}

func (r *Reader) place() mark {
	return mark{r.line, int(r.base + int64(r.i) - r.start + 1)}
}

func (r *Reader) errorf(format string, args ...any) error {
	at := r.place()
	return &SyntaxError{Line: at.line, Column: at.column, Err: fmt.Errorf(format, args...)}
}

// torn makes an end of the text inside a form an error of its own.
func (r *Reader) torn(err error) error {
	if errors.Is(err, io.EOF) {
		return r.errorf("the text ends inside a form: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// isEnd is the bytes that cannot be inside a number, symbol or keyword.
var isEnd = [256]bool{
	' ': true, '\t': true, '\n': true, '\r': true, '\f': true, ',': true, ';': true, '"': true, '(': true, ')': true,
	'[': true, ']': true, '{': true, '}': true, '\\': true, '@': true, '^': true, '`': true, '~': true,
}

// bare reads up to the end of a number, symbol or keyword into token.
func (r *Reader) bare() error {
	r.token = r.token[:0]
	for {
		if _, err := r.peek(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		n := r.i
		for n < len(r.buf) && !isEnd[r.buf[n]] && (!r.json || r.buf[n] != ':') {
			n++
		}
		r.token = append(r.token, r.buf[r.i:n]...)
		r.i = n
		if n < len(r.buf) {
			return nil
		}
	}
}

// bareWord is what bare reads, as a string.
func (r *Reader) bareWord() (string, error) {
	if err := r.bare(); err != nil {
		return "", err
	}
	return r.word()
}

// plainInt reads a number of digits only, as most are.
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

// word is the token as a string; short ones are kept only once.
func (r *Reader) word() (string, error) {
	if s, known := r.words[string(r.token)]; known {
		return s, nil
	}
	if !utf8.Valid(r.token) {
		return "", r.errorf("the text before this place is not UTF-8")
	}
	s := string(r.token)
	if len(s) <= 64 && len(r.words) < maxWords {
		r.words[s] = s
	}
	return s, nil
}
