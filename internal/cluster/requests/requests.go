// Package requests parses a client's requests to a Redis server, so that a gate can send a request a second time on a
// connection of its own. It interprets only commands that change the state of a connection.
//
// Read [Splitter] first.
package requests

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/lockchaos/lockchaos/internal/cluster/resp"
)

// Splitter parses a client's output on one connection, from the first byte. The zero value is ready to use. On a
// connection that does not use RESP it finds nothing. It is for one goroutine at a time.
type Splitter struct {
	notRESP bool
	rest    []byte   // an incomplete request
	words   [][]byte // of the current request

	login, db     []byte // the requests that authenticated the connection and selected its database
	multi, asking bool   // in a transaction; after ASKING
}

// maxRequest is more than the longest request of a lock, a script with its arguments.
const maxRequest = 1 << 20

// Copy is a request that a connection of the gate's own can send again, preceded by the requests that put that
// connection into the state of the client's: its login, its database, and ASKING.
type Copy struct {
	Data    []byte
	replies int
}

// Take takes the next bytes. It calls writes for each request that they complete and that may write, in order; writes
// may call copied for a copy. Requests of a transaction and blocking ones are no such requests: a copy alone would mean
// something else, or would take the element that the client waits for.
func (s *Splitter) Take(data []byte, writes func(copied func() Copy)) {
	if s.notRESP {
		return
	}
	if len(s.rest) > 0 {
		data = append(s.rest, data...)
		s.rest = nil
	}
	for len(data) > 0 {
		n := s.cut(data)
		if n == 0 {
			break
		}
		request := data[:n]
		data = data[n:]
		if len(s.words) > 0 && s.next(request) && writes != nil {
			writes(func() Copy { return s.copy(request) })
		}
		s.asking = len(s.words) > 0 && is(s.words[0], "asking")
	}
	if s.notRESP = s.notRESP || len(data) > maxRequest; !s.notRESP {
		s.rest = append(s.rest, data...)
	}
}

// next records the changes of a request to the connection, and reports whether it may write.
func (s *Splitter) next(request []byte) bool {
	switch word := s.words[0]; {
	case is(word, "auth"):
		s.login = bytes.Clone(request)
	case is(word, "hello"):
		for i := range s.words {
			if is(s.words[i], "auth") && i+2 < len(s.words) {
				s.login = resp.AppendStrings(nil, "AUTH", string(s.words[i+1]), string(s.words[i+2]))
			}
		}
	case is(word, "select"):
		s.db = bytes.Clone(request)
	case is(word, "reset"):
		s.login, s.db, s.multi = nil, nil, false
	case is(word, "multi"):
		s.multi = true
	case is(word, "exec"), is(word, "discard"):
		s.multi = false
	default:
		return !s.multi && slices.ContainsFunc(writers(), func(name string) bool { return is(word, name) })
	}
	return false
}

// writers are the commands that may write and do not block.
func writers() []string {
	return []string{
		"evalsha", "eval", "fcall", "set", "del", "unlink", "setnx", "setex", "psetex", "getset", "getdel", "getex",
		"expire", "pexpire", "expireat", "pexpireat", "persist", "incr", "incrby", "decr", "decrby",
		"hset", "hsetnx", "hdel", "hincrby", "lpush", "rpush", "lpop", "rpop", "lrem", "sadd", "srem",
		"zadd", "zincrby", "zrem", "zremrangebyscore", "rename", "renamenx",
	}
}

func is(word []byte, name string) bool {
	return len(word) == len(name) && bytes.EqualFold(word, []byte(name))
}

func (s *Splitter) copy(request []byte) Copy {
	c := Copy{replies: 1}
	for _, before := range [][]byte{s.login, s.db} {
		if before != nil {
			c.Data = append(c.Data, before...)
			c.replies++
		}
	}
	if s.asking {
		c.Data = resp.AppendStrings(c.Data, "ASKING")
		c.replies++
	}
	c.Data = append(c.Data, request...)
	return c
}

// Executed reads the replies to the copy so far: whether all have arrived, and whether the server has executed the
// request, which it has not if it replied with an error.
func (c Copy) Executed(replies []byte) (all, executed bool) {
	for range c.replies {
		reply, rest, err := resp.Parse(replies)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, false
		}
		if err != nil {
			return true, false
		}
		_, refused := reply.(resp.Error)
		replies, executed = rest, !refused
	}
	return true, executed
}

// cut finds the first request in p, puts its words into s.words, and returns its length; 0: it is incomplete.
func (s *Splitter) cut(p []byte) int {
	s.words = s.words[:0]
	end := bytes.IndexByte(p, '\n') + 1
	if p[0] != '*' {
		if end > 0 {
			s.words = append(s.words, bytes.Fields(p[:end])...)
		}
		return end
	}
	count, ok := number(p[:end])
	for at := end; end > 0 && ok; {
		if count <= 0 {
			return at
		}
		line := bytes.IndexByte(p[at:], '\n') + 1
		if line == 0 {
			return 0
		}
		var size int
		if size, ok = number(p[at : at+line]); !ok || p[at] != '$' || size < 0 || size > maxRequest {
			ok = false
			break
		}
		at += line
		if len(p) < at+size+2 {
			return 0
		}
		s.words = append(s.words, p[at:at+size])
		at += size + 2
		count--
	}
	s.notRESP = end > 0 && !ok
	return 0
}

// number is the number in a header with its line end, such as *3.
func number(header []byte) (int, bool) {
	if len(header) < 4 || header[len(header)-2] != '\r' {
		return 0, false
	}
	n, err := strconv.Atoi(string(header[1 : len(header)-2]))
	return n, err == nil
}
