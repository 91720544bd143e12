// Package edn reads EDN, Clojure's data format, and JSON, one form at a time and in bounded memory. Tags are kept
// and not interpreted, numbers beyond int64 are kept as text, and sets and maps keep the order of the file.
//
// Read [Reader] first; it returns a [Value]. The format is described at https://github.com/edn-format/edn.
package edn

import (
	"math"
	"strconv"
	"strings"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds. The zero Value is nil.
const (
	Nil     Kind = iota
	Bool         // Int is 1 or 0
	Int          // Int
	Number       // Text: anything that is not an int64, such as 1.5, 2/3, 10000000000000000000N, ##Inf
	String       // Text
	Char         // Text
	Keyword      // Text, without its colon
	Symbol       // Text
	Vector       // Items; a JSON array too
	List         // Items
	Set          // Items
	Map          // Items: key, value, key, value, …; a JSON object too
	Tagged       // Text: the tag without #; Items: the one tagged value
)

// Value is one value. A copy shares its Items.
type Value struct {
	Kind  Kind
	Text  string
	Int   int64
	Items []Value
}

// Untagged returns the value without its tags.
func (v Value) Untagged() Value {
	for v.Kind == Tagged && len(v.Items) == 1 {
		v = v.Items[0]
	}
	return v
}

// Word returns the text of a keyword, symbol, string or character, and whether v is one.
func (v Value) Word() (string, bool) {
	switch v = v.Untagged(); v.Kind {
	case String, Char, Keyword, Symbol:
		return v.Text, true
	}
	return "", false
}

// Get returns the value in a map whose key is a keyword, symbol or string of that name, and whether there is one. Of
// several it is the last.
func (v Value) Get(name string) (Value, bool) {
	v = v.Untagged()
	if v.Kind != Map {
		return Value{}, false
	}
	for i := len(v.Items) - 2; i >= 0; i -= 2 {
		if key := &v.Items[i]; key.Text == name && key.isName() {
			return v.Items[i+1], true
		}
	}
	return Value{}, false
}

// Float returns a number as a float64, and whether v is one.
func (v Value) Float() (float64, bool) {
	switch v = v.Untagged(); v.Kind {
	case Int:
		return float64(v.Int), true
	case Number:
		return parseFloat(v.Text)
	}
	return 0, false
}

func parseFloat(text string) (float64, bool) {
	switch text {
	case "Inf":
		return math.Inf(1), true
	case "-Inf":
		return math.Inf(-1), true
	}
	if up, down, ratio := strings.Cut(text, "/"); ratio {
		a, err1 := strconv.ParseFloat(up, 64)
		b, err2 := strconv.ParseFloat(down, 64)
		return a / b, err1 == nil && err2 == nil && b != 0
	}
	f, err := strconv.ParseFloat(strings.TrimRight(text, "MN"), 64)
	return f, err == nil
}

// Integer returns an integer, also one written as 3.0 or 3N, and whether v is one.
func (v Value) Integer() (int64, bool) {
	v = v.Untagged()
	if v.Kind == Int {
		return v.Int, true
	}
	f, ok := v.Float()
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// Unsigned returns an integer from 0 to 2⁶⁴−1, and whether v is one.
func (v Value) Unsigned() (uint64, bool) {
	if v = v.Untagged(); v.Kind == Number {
		if n, err := strconv.ParseUint(strings.TrimSuffix(v.Text, "N"), 10, 64); err == nil {
			return n, true
		}
	}
	n, ok := v.Integer()
	return uint64(max(n, 0)), ok && n >= 0
}

// Empty reports whether v is nil, false, "", "false" or an empty collection.
func (v Value) Empty() bool {
	switch v = v.Untagged(); v.Kind {
	case Nil:
		return true
	case Bool:
		return v.Int == 0
	case String:
		return v.Text == "" || v.Text == "false"
	case Vector, List, Set, Map:
		return len(v.Items) == 0
	}
	return false
}
