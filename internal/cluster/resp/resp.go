// Package resp reads replies of a Redis server in RESP2 and writes commands. It is
// for the harness's own connections; clients under test use go-redis.
package resp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	maxBulk  = 64 << 20 // bytes of a string
	maxItems = 1 << 20  // of an array
)

// ErrProtocol is the error of a reply that is not RESP2.
var ErrProtocol = errors.New("unexpected reply")

// Error is an error reply.
type Error string

func (e Error) Error() string { return string(e) }

// Read reads one reply: string, int64, nil, []any or [Error].
func Read(in *bufio.Reader) (any, error) { return read(stream{in}) }

func read(in source) (any, error) {
	line, err := in.line()
	if err != nil {
		return nil, err
	}
	line = bytes.TrimSuffix(line, []byte("\r\n"))
	if len(line) == 0 {
		return nil, ErrProtocol
	}
	kind := line[0]
	switch kind {
	case '+':
		return string(line[1:]), nil
	case '-':
		return Error(line[1:]), nil
	}
	n, err := strconv.ParseInt(string(line[1:]), 10, 64)
	switch {
	case err != nil:
	case kind == ':':
		return n, nil
	case n == -1 && (kind == '$' || kind == '*'):
		return nil, nil
	case kind == '$' && n >= 0 && n <= maxBulk:
		data, err := in.next(int(n) + 2)
		if err != nil {
			return nil, err
		}
		return string(data[:n]), nil
	case kind == '*' && n >= 0 && n <= maxItems:
		return readArray(in, n)
	}
	return nil, fmt.Errorf("%w: %q", ErrProtocol, line)
}

func readArray(in source, n int64) (any, error) {
	var items []any
	for range n {
		item, err := read(in)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// Parse reads the first reply in p and returns the rest. The error wraps [io.EOF] or [io.ErrUnexpectedEOF] if the reply
// is incomplete.
func Parse(p []byte) (reply any, rest []byte, err error) {
	in := &view{p}
	if reply, err = read(in); err != nil {
		return nil, p, err
	}
	return reply, in.rest, nil
}

// ParseAll reads the complete replies in p, and returns the rest.
func ParseAll(p []byte) (replies []any, rest []byte) {
	for len(p) > 0 {
		reply, after, err := Parse(p)
		if err != nil {
			break
		}
		replies, p = append(replies, reply), after
	}
	return replies, p
}

// source is the input of a reply. The results of its methods are valid until the next call.
type source interface {
	line() ([]byte, error) // with the newline
	next(bytes int) ([]byte, error)
}

type stream struct{ in *bufio.Reader }

func (s stream) line() ([]byte, error) { return s.in.ReadBytes('\n') }

func (s stream) next(n int) ([]byte, error) {
	p := make([]byte, n)
	_, err := io.ReadFull(s.in, p)
	return p, err
}

// view reads from memory without copying.
type view struct{ rest []byte }

func (v *view) line() ([]byte, error) {
	i := bytes.IndexByte(v.rest, '\n')
	if i < 0 {
		return nil, io.EOF
	}
	return v.next(i + 1)
}

func (v *view) next(n int) ([]byte, error) {
	if len(v.rest) < n {
		return nil, io.ErrUnexpectedEOF
	}
	p := v.rest[:n]
	v.rest = v.rest[n:]
	return p, nil
}

// appendArray appends the header of an array of n elements.
func appendArray(b []byte, n int) []byte { return appendHeader(b, '*', n) }

// appendBulk appends a string.
func appendBulk(b []byte, s string) []byte {
	b = appendHeader(b, '$', len(s))
	b = append(b, s...)
	return append(b, "\r\n"...)
}

// AppendStrings appends an array of strings, such as a command.
func AppendStrings(b []byte, words ...string) []byte {
	b = appendArray(b, len(words))
	for _, w := range words {
		b = appendBulk(b, w)
	}
	return b
}

func appendHeader(b []byte, kind byte, n int) []byte {
	b = append(b, kind)
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, "\r\n"...)
}
