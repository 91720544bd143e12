package edn

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of one form. They bound the memory that a hostile file can take.
const (
	maxForm   = 16 << 20 // bytes
	maxValues = 200_000  // values in it
	maxDepth  = 100      // collections in collections
	maxWords  = 4096     // words that are kept once, because they come again
)

// SyntaxError says where a text is not what it should be.
type SyntaxError struct {
	Line   int // from 1
	Column int // in bytes, from 1
	Err    error
}

// Error is "line 3:7: what".
func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d:%d: %v", e.Line, e.Column, e.Err) }

// Unwrap is the cause; [io.ErrUnexpectedEOF] if the text ends inside a form.
func (e *SyntaxError) Unwrap() error { return e.Err }

// Reader reads forms one after the other. A vector or list at top level is not
// a form of its own: it is opened, and its items are read as if they stood
// alone, so that a history in one vector and one of a map per line are the same.
// A Reader belongs to one goroutine.
type Reader struct {
	r    io.Reader
	json bool
	buf  []byte // what was read and not yet consumed is buf[i:]
	i    int
	base int64 // offset of buf[0] in the text
	end  error // of r

	line  int   // of the next byte, from 1
	start int64 // offset of its first byte

	form   int64 // offset of the form being read; -1 between forms
	from   mark  // where the last form began
	values int   // in this form
	depth  int
	close  byte // what ends the collection that was opened at top level; 0: none is open
	items  int  // in it
	token  []byte
	words  map[string]string
	stack  []Value // items of collections that are still open
	arena  []Value // items of those that are not; used again for the next form
	twice  string  // a key that stands twice in a map of this form
	failed error
}

// mark is a place in the text.
type mark struct{ line, column int }

// NewReader reads EDN from r, which it does not close.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: r, buf: make([]byte, 0, 64<<10), line: 1, form: -1, words: make(map[string]string)}
}

// NewJSON reads JSON: objects one after the other, or in one array.
func NewJSON(r io.Reader) *Reader {
	reader := NewReader(r)
	reader.json = true
	return reader
}

// Line is the line on which the last form began, from 1.
func (r *Reader) Line() int { return r.from.line }

// Column is the byte of that line with which it began, from 1.
func (r *Reader) Column() int { return r.from.column }

// Twice is a key that stands twice in one map of the last form; empty if none does.
func (r *Reader) Twice() string { return r.twice }

// ErrTorn is what a form is in which another event begins at the start of a
// line: its writer was killed, and somebody went on in the same file. It is no
// more than that form that is lost: the next call of Next reads the event that begins there.
var ErrTorn = errors.New("the form is torn off: another event begins inside it")

// Next reads a form, whose items the following call overwrites. At the end it is
// [io.EOF]; a *[SyntaxError] otherwise, or the error of the reader beneath. After
// an error other than [ErrTorn] there is nothing more.
func (r *Reader) Next() (Value, error) {
	if r.failed != nil {
		return Value{}, r.failed
	}
	v, err := r.top()
	if err != nil {
		if !errors.Is(err, ErrTorn) {
			r.failed = err
		}
		return Value{}, err
	}
	return v, nil
}

// top finds the next form at top level, opening and closing a collection there.
func (r *Reader) top() (Value, error) {
	for {
		r.form, r.values, r.depth, r.twice = -1, 0, 0, ""
		r.stack, r.arena = r.stack[:0], r.arena[:0]
		c, err := r.skip()
		if errors.Is(err, io.EOF) {
			return Value{}, r.atEnd()
		}
		if err != nil {
			return Value{}, err
		}
		switch {
		case r.close != 0 && c == r.close:
			r.i++
			r.close = 0
			continue
		case r.close == 0 && (c == '[' || c == '(' && !r.json):
			r.i++
			r.close, r.items = closing(c), 0
			continue
		case r.json && r.close != 0 && r.items > 0:
			if err := r.want(','); err != nil {
				return Value{}, err
			}
			if _, err := r.skip(); err != nil {
				return Value{}, r.torn(err)
			}
		}
		r.items++
		r.from, r.form = r.place(), r.base+int64(r.i)
		v, none, err := r.value()
		if err == nil && none { // #_
			continue
		}
		return v, err
	}
}

func (r *Reader) atEnd() error {
	if r.close != 0 {
		return r.errorf("the text ends before %q: %w", r.close, io.ErrUnexpectedEOF)
	}
	return io.EOF
}

func closing(c byte) byte {
	if c == '(' {
		return ')'
	}
	return c + 2 // in ASCII: [ and ], { and }
}

// value reads one value; none is true for a discarded one.
func (r *Reader) value() (v Value, none bool, err error) {
	c, err := r.skip()
	if err != nil {
		return v, false, r.torn(err)
	}
	if r.values++; r.values > maxValues {
		return v, false, r.errorf("a form with more than %d values is not an event", maxValues)
	}
	switch {
	case r.json:
		v, err = r.jsonValue(c)
		return v, false, err
	case c == '#':
		return r.dispatch()
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
		err = r.errorf("%q closes nothing that is open", c)
	default:
		v, err = r.atom()
	}
	return v, false, err
}

// collection reads up to the closing mark; the opening one has been read.
func (r *Reader) collection(kind Kind, end byte) (Value, error) {
	v, base := Value{Kind: kind}, len(r.stack)
	if r.depth++; r.depth > maxDepth {
		return v, r.errorf("collections are nested more than %d deep", maxDepth)
	}
	for {
		c, err := r.skip()
		if err != nil {
			return v, r.torn(err)
		}
		if c == end {
			break
		}
		if r.eventBegins(c) {
			return v, &SyntaxError{Line: r.from.line, Column: r.from.column, Err: ErrTorn}
		}
		item, none, err := r.value()
		if err != nil {
			return v, err
		}
		if !none {
			r.stack = append(r.stack, item)
		}
	}
	if v.Items = r.keep(base); kind == Map && len(v.Items)%2 != 0 {
		return v, r.errorf("a map has a key without a value")
	} else if kind == Map {
		r.unique(v)
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
	if cap(r.arena)-len(r.arena) < len(items) { // what is in the old arena stays where it is
		r.arena = make([]Value, 0, max(256, 2*cap(r.arena), len(items)))
	}
	start := len(r.arena)
	r.arena = append(r.arena, items...)
	r.stack = r.stack[:base]
	return r.arena[start:len(r.arena):len(r.arena)]
}

// dispatch reads what begins with #.
func (r *Reader) dispatch() (v Value, none bool, err error) {
	r.i++
	c, err := r.peek()
	if err != nil {
		return v, false, r.torn(err)
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
		for discarded := false; !discarded; {
			var again bool
			if _, again, err = r.value(); err != nil {
				return v, false, err
			}
			discarded = !again
		}
		return v, true, nil
	case '#':
		r.i++
		text, err := r.bareWord()
		if err == nil && text != "Inf" && text != "-Inf" && text != "NaN" {
			err = r.errorf("##%.40s is no number", text)
		}
		return Value{Kind: Number, Text: text}, false, err
	}
	tag, err := r.bareWord()
	if err != nil {
		return v, false, err
	}
	if tag == "" {
		return v, false, r.errorf("# is followed by %q, which is no tag", c)
	}
	for none = true; none && err == nil; {
		v, none, err = r.value()
	}
	return Value{Kind: Tagged, Text: tag, Items: []Value{v}}, false, err
}

// Parse reads a text that is one form, of any kind.
func Parse(text string) (Value, error) {
	r := NewReader(strings.NewReader(text))
	r.from, r.form = mark{1, 1}, 0
	var v Value
	var err error
	for none := true; none && err == nil; {
		v, none, err = r.value()
	}
	if err != nil {
		return Value{}, err
	}
	if c, err := r.skip(); err == nil {
		return Value{}, r.errorf("%q follows the form", c)
	}
	return v, nil
}
