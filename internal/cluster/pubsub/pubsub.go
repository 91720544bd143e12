// Package pubsub finds published messages in what a Redis server sends, so that
// a gate can lose one message and leave the rest of the connection whole. It is
// neither a client nor a whole parser: of everything but messages it learns
// only where it ends.
//
// Read [Filter] first.
package pubsub

import "bytes"

// Filter follows what a server sends on one connection, from its first byte
// on, in RESP2 or RESP3. The zero value is at the beginning. A connection that
// does not speak RESP (replication, a cluster's bus) passes unchanged for ever.
// It is for one goroutine at a time.
//
// In RESP2 a message looks like any other array. It is taken for one only while
// the connection is subscribed, in which state a server sends no other replies
// (redis.io, Pub/Sub).
type Filter struct {
	alien bool    // this is not RESP
	left  []int64 // elements to come of the arrays around, the outermost first
	line  []byte  // the beginning of a header whose end has not come yet
	body  int64   // bytes of a string to come, its line end included

	channels, shards bool // what the connection is subscribed to; in RESP3 it may ask for other things too

	// Of the frame under way.
	kind   byte   // '>' or '*'; else no message
	index  int    // of the outermost array's element under way
	word   []byte // the first element as far as it has come
	name   string // the first element, when it is whole
	number int64  // the third element; -1: it is no number
	fate   fate
	kept   []byte // its bytes, as long as it is open whether they pass
}

// fate is what becomes of a frame.
type fate uint8

const (
	pass fate = iota
	open      // it is not known yet whether it is a message
	lose
)

// longest is how long a header may be; an error's text is one.
const longest = 64 << 10

// Pass is what may go on of data, the next bytes of the connection: with
// muted, all but the messages that begin in it, and how many of them have ended.
// A message that had begun to pass before it was muted passes to its end, and
// one that was being lost is lost to its end. rest may share data's memory.
func (f *Filter) Pass(data []byte, muted bool) (rest []byte, lost int) {
	if f.alien || !muted && f.fate == pass {
		for rest := data; len(rest) > 0 && !f.alien; {
			rest = rest[f.step(rest, false):]
		}
		return data, 0
	}
	for len(data) > 0 {
		n := len(data)
		if !f.alien {
			n = f.step(data, muted)
		}
		if f.alien {
			f.fate = pass
		}
		switch f.fate {
		case pass:
			rest = append(append(rest, f.kept...), data[:n]...)
			f.kept = nil
		case open:
			f.kept = append(f.kept, data[:n]...)
		case lose:
			f.kept = nil
			if f.over() {
				lost++
				f.fate = pass
			}
		}
		data = data[n:]
	}
	return rest, lost
}

// over says whether the next byte begins a frame.
func (f *Filter) over() bool { return len(f.left) == 0 && f.body == 0 && len(f.line) == 0 }

// step takes the next piece of data, a header or a string or a part of one, and
// says how long it is.
func (f *Filter) step(data []byte, muted bool) int {
	if f.over() {
		f.kind, f.index, f.name, f.number, f.fate = data[0], 0, "", -1, pass
		f.word = f.word[:0]
		if muted && (f.kind == '*' || f.kind == '>') {
			f.fate = open
		}
	}
	if f.body > 0 {
		return f.string(data)
	}
	end := bytes.IndexByte(data, '\n')
	if end < 0 {
		f.line = append(f.line, data...)
		f.alien = len(f.line) > longest || !known(f.line[0])
		return len(data)
	}
	header := data[:end+1]
	if len(f.line) > 0 {
		header = append(f.line, header...)
		f.line = f.line[:0]
	}
	f.header(header)
	return end + 1
}

// string takes a part of a string.
func (f *Filter) string(data []byte) int {
	n := int(min(f.body, int64(len(data))))
	if len(f.left) == 1 && f.index == 0 && len(f.word) < longestWord {
		f.word = append(f.word, data[:min(n, longestWord)]...)
	}
	if f.body -= int64(n); f.body == 0 {
		if len(f.left) == 1 && f.index == 0 {
			f.named()
		}
		f.done()
	}
	return n
}

// longestWord is more than the longest word that matters, "punsubscribe" and a line end.
const longestWord = 16

// named decides the fate of a frame by its first element.
func (f *Filter) named() {
	f.name = string(bytes.TrimRight(f.word, "\r\n"))
	if f.fate != open {
		return
	}
	f.fate = pass
	switch f.name {
	case "message", "pmessage", "smessage":
		if f.kind == '>' || f.channels || f.shards {
			f.fate = lose
		}
	}
}

func known(kind byte) bool { return bytes.IndexByte([]byte("+-:_#,($=!*~>%|"), kind) >= 0 }

// header takes a whole header, with its line end.
func (f *Filter) header(h []byte) {
	if len(h) < 3 || h[len(h)-2] != '\r' || !known(h[0]) {
		f.alien = true
		return
	}
	text := h[1 : len(h)-2]
	switch h[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		f.scalar(h[0], text)
		return
	}
	n, ok := number(text)
	if !ok || n > 1<<40 {
		f.alien = true
		return
	}
	switch {
	case n < 0:
		f.element()
	case h[0] == '$' || h[0] == '=' || h[0] == '!':
		f.body = n + 2
	default:
		f.array(h[0], n)
	}
}

// array begins an array of n elements, or of so many pairs.
func (f *Filter) array(kind byte, n int64) {
	switch {
	case kind == '%':
		n *= 2
	case kind == '|' && len(f.left) > 0:
		n = 2*n + 1 // an attribute is no element: what it is about comes behind it
	case kind == '|':
		n *= 2
	}
	if n == 0 {
		f.element()
		return
	}
	if len(f.left) == 1 && f.index == 0 {
		f.fate = pass // what begins with an array is no message
	}
	f.left = append(f.left, n)
}

// scalar takes an element of one line.
func (f *Filter) scalar(kind byte, text []byte) {
	if len(f.left) == 0 && kind == '+' && string(text) == "RESET" {
		f.channels, f.shards = false, false
	}
	if n, ok := number(text); ok && kind == ':' && len(f.left) == 1 && f.index == 2 {
		f.number = n
	}
	f.element()
}

// element ends an element that cannot be the word of a message.
func (f *Filter) element() {
	if f.fate == open && len(f.left) <= 1 && f.index == 0 {
		f.fate = pass
	}
	f.done()
}

// done ends an element, and the arrays whose last one it was.
func (f *Filter) done() {
	for len(f.left) > 0 {
		top := len(f.left) - 1
		if top == 0 {
			f.index++
		}
		if f.left[top]--; f.left[top] > 0 {
			return
		}
		f.left = f.left[:top]
	}
	if f.number < 0 {
		return
	}
	switch f.name {
	case "subscribe", "psubscribe", "unsubscribe", "punsubscribe":
		f.channels = f.number > 0
	case "ssubscribe", "sunsubscribe":
		f.shards = f.number > 0
	}
}

// number reads a decimal number that is not too long.
func number(text []byte) (n int64, ok bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 18 {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}
