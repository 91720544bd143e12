// Package resp reads replies of a Redis server in RESP2 and writes commands. It is
// for the harness's own connections; clients under test use go-redis.
package resp

import (
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

// Reader is implemented by [bufio.Reader] and [bytes.Buffer].
type Reader interface {
	io.Reader
	ReadBytes(delim byte) ([]byte, error)
}

// Read reads one reply: string, int64, nil, []any or [Error].
func Read(in Reader) (any, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	line = bytes.TrimSuffix(line, []byte("\r\n"))
	if len(line) == 0 {
		return nil, ErrProtocol
	}
	kind, text := line[0], string(line[1:])
	switch kind {
	case '+':
		return text, nil
	case '-':
		return Error(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
	case kind == ':':
		return n, nil
	case n == -1 && (kind == '$' || kind == '*'):
		return nil, nil
	case kind == '$' && n >= 0 && n <= maxBulk:
		data := make([]byte, n+2)
		_, err := io.ReadFull(in, data)
		return string(data[:n]), err
	case kind == '*' && n >= 0 && n <= maxItems:
		return readArray(in, n)
	}
	return nil, fmt.Errorf("%w: %q", ErrProtocol, line)
}

func readArray(in Reader, n int64) (any, error) {
	var items []any
	for range n {
		item, err := Read(in)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// Parse reads the first reply in p and returns what follows it. The error wraps
// [io.EOF] or [io.ErrUnexpectedEOF] if the reply is incomplete.
func Parse(p []byte) (reply any, rest []byte, err error) {
	in := bytes.NewBuffer(p)
	if reply, err = Read(in); err != nil {
		return nil, p, err
	}
	return reply, in.Bytes(), nil
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
