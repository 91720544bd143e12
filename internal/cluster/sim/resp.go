package sim

import (
	"errors"
	"strconv"
)

func bulk(b []byte, s string) []byte {
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, "\r\n"...)
	b = append(b, s...)
	return append(b, "\r\n"...)
}

func array(b []byte, n int) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, "\r\n"...)
}

func bulks(b []byte, list ...string) []byte {
	b = array(b, len(list))
	for _, s := range list {
		b = bulk(b, s)
	}
	return b
}

// replyError is an error that a server answered.
type replyError string

func (e replyError) Error() string { return string(e) }

var errShort = errors.New("a reply is not whole")

// parse reads one reply: string, int64, nil, []any or replyError. rest is what follows it.
func parse(p []byte) (reply any, rest []byte, err error) {
	i := 0
	for i < len(p) && p[i] != '\r' {
		i++
	}
	if i == 0 || i+1 >= len(p) {
		return nil, p, errShort
	}
	kind, line := p[0], string(p[1:i])
	rest = p[i+2:]
	switch kind {
	case '+':
		return line, rest, nil
	case '-':
		return replyError(line), rest, nil
	case '_':
		return nil, rest, nil
	}
	n, err := strconv.ParseInt(line, 10, 64)
	switch {
	case err != nil:
		return nil, p, err
	case kind == ':':
		return n, rest, nil
	case n < 0:
		return nil, rest, nil
	case kind == '$':
		if int64(len(rest)) < n+2 {
			return nil, p, errShort
		}
		return string(rest[:n]), rest[n+2:], nil
	}
	items := make([]any, 0, min(n, 1024))
	for range n {
		var item any
		if item, rest, err = parse(rest); err != nil {
			return nil, p, err
		}
		items = append(items, item)
	}
	return items, rest, nil
}
