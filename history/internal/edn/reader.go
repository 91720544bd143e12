package edn

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of one form. They bound the memory for a hostile file.
const (
	maxForm   = 16 << 20 // bytes
	maxValues = 200_000  // values in it
	maxDepth  = 100      // collections in collections
	maxWords  = 4096     // interned words
)

// SyntaxError is an error at a position of the input.
type SyntaxError struct {
	Line   int // from 1
	Column int // in bytes, from 1
	Err    error
}

// Error returns "line 3:7: error".
func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d:%d: %v", e.Line, e.Column, e.Err) }

// Unwrap returns Err, which wraps [io.ErrUnexpectedEOF] if the input ends inside a form.
func (e *SyntaxError) Unwrap() error { return e.Err }

// Reader reads forms one after the other. It returns the items of a vector or list at top level one by one, so that a
// history in one vector and one of a map per line are the same. A Reader must not be used concurrently.
type Reader struct {
	r    io.Reader
	json bool
	buf  []byte // buf[i:] is not yet consumed
	i    int
	base int64 // offset of buf[0] in the input
	end  error // of r

	line      int   // of the next byte, from 1
	lineStart int64 // offset of its first byte

	form      int64    // offset of the form being read; -1 between forms
	formStart position // of the last form
	values    int      // in this form
	depth     int
	closer    byte // closing bracket of the collection at top level; 0: none is open
	items     int  // in it
	token     []byte
	words     map[string]string // interned
	stack     []Value           // items of open collections
	arena     []Value           // items of closed ones; reused for the next form
	duplicate string            // a key that a map of this form has twice
	failed    error
}

type position struct{ line, column int }

// NewReader returns a reader of EDN from r, which it does not close.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: r, buf: make([]byte, 0, 64<<10), line: 1, form: -1, words: make(map[string]string)}
}

// NewJSON returns a reader of JSON: objects one after the other, or in one array.
func NewJSON(r io.Reader) *Reader {
	reader := NewReader(r)
	reader.json = true
	return reader
}

// CheckJSON rejects a line that encoding/json reads although it is no JSON, as the reader of format json does.
// encoding/json replaces invalid bytes and unpaired surrogates, so that different names become equal. It returns a key
// that an object of the line has twice; empty: none.
func CheckJSON(line []byte) (duplicate string, err error) {
	r := &Reader{json: true, buf: line, end: io.EOF, line: 1, form: -1, words: make(map[string]string)}
	if _, err := r.Next(); err != nil {
		return "", err
	}
	return r.duplicate, nil
}

// Line returns the line on which the last form starts, from 1.
func (r *Reader) Line() int { return r.formStart.line }

// Column returns the byte of that line at which it starts, from 1.
func (r *Reader) Column() int { return r.formStart.column }

// Duplicate returns a key that a map of the last form has twice; empty: none.
func (r *Reader) Duplicate() string { return r.duplicate }

// ErrTorn means that another event starts, at the start of a line, inside a form: its writer was killed, and
// another one continued in the same file. Only that form is lost: the next call of Next reads the event that starts
// there.
var ErrTorn = errors.New("form torn: another event starts inside it")

// Next returns the next form; the following call overwrites its items. The error is [io.EOF] at the end, a
// *[SyntaxError], or the underlying reader's. It is permanent, except for [ErrTorn].
func (r *Reader) Next() (Value, error) {
	if r.failed != nil {
		return Value{}, r.failed
	}
	v, err := r.nextForm()
	if err != nil {
		if !errors.Is(err, ErrTorn) {
			r.failed = err
		}
		return Value{}, err
	}
	return v, nil
}

// nextForm reads the next form at top level, or the next item of a collection there.
func (r *Reader) nextForm() (Value, error) {
	for {
		r.form, r.values, r.depth, r.duplicate = -1, 0, 0, ""
		r.stack, r.arena = r.stack[:0], r.arena[:0]
		c, err := r.skip()
		if errors.Is(err, io.EOF) {
			return Value{}, r.atEnd()
		}
		if err != nil {
			return Value{}, err
		}
		switch {
		case r.closer != 0 && c == r.closer:
			r.i++
			r.closer = 0
			continue
		case r.closer == 0 && (c == '[' || c == '(' && !r.json):
			r.i++
			r.closer, r.items = closing(c), 0
			continue
		case r.json && r.closer != 0 && r.items > 0:
			if err := r.expect(','); err != nil {
				return Value{}, err
			}
			if _, err := r.skip(); err != nil {
				return Value{}, r.unexpectedEOF(err)
			}
		}
		r.items++
		r.formStart, r.form = r.position(), r.base+int64(r.i)
		v, discarded, err := r.value()
		if err == nil && discarded {
			continue
		}
		return v, err
	}
}

func (r *Reader) atEnd() error {
	if r.closer != 0 {
		return r.errorf("input ends before %q: %w", r.closer, io.ErrUnexpectedEOF)
	}
	return io.EOF
}

func closing(c byte) byte {
	if c == '(' {
		return ')'
	}
	return c + 2 // in ASCII: [ and ], { and }
}

// value reads one value. discarded is true for one after #_.
func (r *Reader) value() (v Value, discarded bool, err error) {
	c, err := r.skip()
	if err != nil {
		return v, false, r.unexpectedEOF(err)
	}
	if r.values++; r.values > maxValues {
		return v, false, r.errorf("form has more than %d values", maxValues)
	}
	switch {
	case r.json:
		v, err = r.jsonValue(c)
		return v, false, err
	case c == '#':
		return r.hashForm()
	case c == '[' || c == '(' || c == '{':
		r.i++
		kind := Map
		if c != '{' {
			kind = map[bool]Kind{true: Vector, false: List}[c == '[']
		}
		v, err = r.collection(kind, closing(c))
	case c == '"':
		r.i++
		v.Kind = String
		v.Text, err = r.quoted()
	case c == '\\':
		v, err = r.char()
	case c == ']' || c == ')' || c == '}':
		err = r.errorf("unmatched %q", c)
	default:
		v, err = r.atom()
	}
	return v, false, err
}

// collection reads the items after an opening bracket, up to the closing one.
func (r *Reader) collection(kind Kind, end byte) (Value, error) {
	v, base := Value{Kind: kind}, len(r.stack)
	if r.depth++; r.depth > maxDepth {
		return v, r.errorf("collections are nested more than %d deep", maxDepth)
	}
	for {
		c, err := r.skip()
		if err != nil {
			return v, r.unexpectedEOF(err)
		}
		if c == end {
			break
		}
		if r.startsEvent(c) {
			return v, &SyntaxError{Line: r.formStart.line, Column: r.formStart.column, Err: ErrTorn}
		}
		item, discarded, err := r.value()
		if err != nil {
			return v, err
		}
		if !discarded {
			r.stack = append(r.stack, item)
		}
	}
	if v.Items = r.keep(base); kind == Map && len(v.Items)%2 != 0 {
		return v, r.errorf("map has a key without a value")
	} else if kind == Map {
		r.checkDuplicates(v)
	}
	r.i++
	r.depth--
	return v, nil
}

// keep moves the items above base from the stack to the arena.
func (r *Reader) keep(base int) []Value {
	items := r.stack[base:]
	if len(items) == 0 {
		return nil
	}
	if cap(r.arena)-len(r.arena) < len(items) { // items in the old arena stay valid
		r.arena = make([]Value, 0, max(256, 2*cap(r.arena), len(items)))
	}
	start := len(r.arena)
	r.arena = append(r.arena, items...)
	r.stack = r.stack[:base]
	return r.arena[start:len(r.arena):len(r.arena)]
}

// hashForm reads a form that starts with #.
func (r *Reader) hashForm() (v Value, discarded bool, err error) {
	r.i++
	c, err := r.peek()
	if err != nil {
		return v, false, r.unexpectedEOF(err)
	}
	if r.depth++; r.depth > maxDepth {
		return v, false, r.errorf("tags are nested more than %d deep", maxDepth)
	}
	defer func() { r.depth-- }()
	switch c {
	case '{':
		r.i++
		v, err = r.collection(Set, '}')
		return v, false, err
	case '_':
		r.i++
		_, err = r.keptValue()
		return v, true, err
	case '#':
		r.i++
		text, err := r.readWord()
		if err == nil && text != "Inf" && text != "-Inf" && text != "NaN" {
			err = r.errorf("##%.40s is not a number", text)
		}
		return Value{Kind: Number, Text: text}, false, err
	}
	tag, err := r.readWord()
	if err != nil {
		return v, false, err
	}
	if tag == "" {
		return v, false, r.errorf("expected a tag after #, got %q", c)
	}
	v, err = r.keptValue()
	return Value{Kind: Tagged, Text: tag, Items: []Value{v}}, false, err
}

// keptValue reads the next value that is not discarded.
func (r *Reader) keptValue() (Value, error) {
	for {
		v, discarded, err := r.value()
		if !discarded || err != nil {
			return v, err
		}
	}
}

// Parse parses a text that is one form, of any kind.
func Parse(text string) (Value, error) {
	r := NewReader(strings.NewReader(text))
	r.formStart, r.form = position{1, 1}, 0
	v, err := r.keptValue()
	if err != nil {
		return Value{}, err
	}
	if c, err := r.skip(); err == nil {
		return Value{}, r.errorf("unexpected %q after the form", c)
	}
	return v, nil
}
