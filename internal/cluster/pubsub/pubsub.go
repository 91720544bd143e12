// Package pubsub finds published messages in the output of a Redis server, so that a
// gate can drop a message without disturbing the rest of the connection. It is not a
// complete parser: of everything but messages it finds only the end.
//
// Read [Filter] first.
package pubsub

import "bytes"

// Filter parses a server's output on one connection, from the first byte, in RESP2 or RESP3. The zero value is ready to
// use. A connection that does not use RESP (replication, cluster bus) passes unchanged. It is for one goroutine at a
// time.
//
// In RESP2 a message is an array like any other. It counts as one only while the
// connection is subscribed, when a server sends no other replies (redis.io, Pub/Sub).
type Filter struct {
	notRESP    bool
	elements   []int64 // that the enclosing arrays still lack, the outermost first
	header     []byte  // an incomplete header
	stringLeft int64   // bytes that the current string still lacks, with its line end

	channels, shards bool // subscriptions of the connection

	// Of the current frame.
	kind     byte   // '>' or '*'; any other: no message
	index    int    // of the current element in the outermost array
	word     []byte // the first element, perhaps incomplete
	counted  *bool  // channels or shards, if the third element is their number; nil: it is not
	number   int64  // the third element; -1: not a number
	decision decision
	pending  []byte // its bytes while undecided
}

// decision is the treatment of a frame.
type decision uint8

const (
	pass      decision = iota
	undecided          // it may be a message
	drop
)

// maxHeader is the longest header; the text of an error is one.
const maxHeader = 64 << 10

// Pass takes the next bytes of the connection and returns the passing ones: if muted, all but the messages that begin
// in data; lost counts the messages that were dropped completely. A message that began while not muted passes to its
// end, and a message that began while muted is dropped to its end. rest may share data's memory.
func (f *Filter) Pass(data []byte, muted bool) (rest []byte, lost int) {
	if f.notRESP || !muted && f.decision == pass {
		for rest := data; len(rest) > 0 && !f.notRESP; {
			rest = rest[f.step(rest, false):]
		}
		return data, 0
	}
	for len(data) > 0 {
		n := len(data)
		if !f.notRESP {
			n = f.step(data, muted)
		}
		if f.notRESP {
			f.decision = pass
		}
		switch f.decision {
		case pass:
			rest = append(append(rest, f.pending...), data[:n]...)
			f.pending = nil
		case undecided:
			f.pending = append(f.pending, data[:n]...)
		case drop:
			f.pending = nil
			if f.atStart() {
				lost++
				f.decision = pass
			}
		}
		data = data[n:]
	}
	return rest, lost
}

// atStart reports whether the next byte begins a frame.
func (f *Filter) atStart() bool {
	return len(f.elements) == 0 && f.stringLeft == 0 && len(f.header) == 0
}

// step consumes the next piece of data, a header or a string or a part of one, and
// returns its length.
func (f *Filter) step(data []byte, muted bool) int {
	if f.atStart() {
		f.kind, f.index, f.counted, f.number, f.decision = data[0], 0, nil, -1, pass
		f.word = f.word[:0]
		if muted && (f.kind == '*' || f.kind == '>') {
			f.decision = undecided
		}
	}
	if f.stringLeft > 0 {
		return f.takeString(data)
	}
	end := bytes.IndexByte(data, '\n')
	if end < 0 {
		f.header = append(f.header, data...)
		f.notRESP = len(f.header) > maxHeader || !isType(f.header[0])
		return len(data)
	}
	header := data[:end+1]
	if len(f.header) > 0 {
		header = append(f.header, header...)
		f.header = f.header[:0]
	}
	f.takeHeader(header)
	return end + 1
}

// takeString consumes a part of a string.
func (f *Filter) takeString(data []byte) int {
	n := int(min(f.stringLeft, int64(len(data))))
	if len(f.elements) == 1 && f.index == 0 && len(f.word) < maxWord {
		f.word = append(f.word, data[:min(n, maxWord)]...)
	}
	if f.stringLeft -= int64(n); f.stringLeft == 0 {
		if len(f.elements) == 1 && f.index == 0 {
			f.decide()
		}
		f.finishElement()
	}
	return n
}

// maxWord is more than the longest word of interest, "punsubscribe" and a line end.
const maxWord = 16

// decide decides on a frame by its first element.
func (f *Filter) decide() {
	muted := f.decision == undecided
	f.decision = pass
	switch string(bytes.TrimRight(f.word, "\r\n")) {
	case "message", "pmessage", "smessage":
		if muted && (f.kind == '>' || f.channels || f.shards) {
			f.decision = drop
		}
	case "subscribe", "psubscribe", "unsubscribe", "punsubscribe":
		f.counted = &f.channels
	case "ssubscribe", "sunsubscribe":
		f.counted = &f.shards
	}
}

func isType(kind byte) bool { return bytes.IndexByte([]byte("+-:_#,($=!*~>%|"), kind) >= 0 }

// takeHeader consumes a complete header, with its line end.
func (f *Filter) takeHeader(h []byte) {
	if len(h) < 3 || h[len(h)-2] != '\r' || !isType(h[0]) {
		f.notRESP = true
		return
	}
	text := h[1 : len(h)-2]
	switch h[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		f.takeScalar(h[0], text)
		return
	}
	n, ok := parseNumber(text)
	if !ok || n > 1<<40 {
		f.notRESP = true
		return
	}
	switch {
	case n < 0:
		f.endElement()
	case h[0] == '$' || h[0] == '=' || h[0] == '!':
		f.stringLeft = n + 2
	default:
		f.takeArray(h[0], n)
	}
}

// takeArray begins an array of n elements, or a map of n pairs.
func (f *Filter) takeArray(kind byte, n int64) {
	switch {
	case kind == '%':
		n *= 2
	case kind == '|' && len(f.elements) > 0:
		n = 2*n + 1 // an attribute is not an element: the element it describes follows
	case kind == '|':
		n *= 2
	}
	if n == 0 {
		f.endElement()
		return
	}
	if len(f.elements) == 1 && f.index == 0 {
		f.decision = pass // a message does not begin with an array
	}
	f.elements = append(f.elements, n)
}

// takeScalar consumes an element of one line.
func (f *Filter) takeScalar(kind byte, text []byte) {
	if len(f.elements) == 0 && kind == '+' && string(text) == "RESET" {
		f.channels, f.shards = false, false
	}
	if n, ok := parseNumber(text); ok && kind == ':' && len(f.elements) == 1 && f.index == 2 {
		f.number = n
	}
	f.endElement()
}

// endElement ends an element that cannot be the first word of a message.
func (f *Filter) endElement() {
	if f.decision == undecided && len(f.elements) <= 1 && f.index == 0 {
		f.decision = pass
	}
	f.finishElement()
}

// finishElement ends an element, and the arrays of which it was the last.
func (f *Filter) finishElement() {
	for len(f.elements) > 0 {
		top := len(f.elements) - 1
		if top == 0 {
			f.index++
		}
		if f.elements[top]--; f.elements[top] > 0 {
			return
		}
		f.elements = f.elements[:top]
	}
	if f.number >= 0 && f.counted != nil {
		*f.counted = f.number > 0
	}
}

// parseNumber parses a decimal number of at most 18 digits.
func parseNumber(text []byte) (n int64, ok bool) {
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
