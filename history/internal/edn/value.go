// Package edn reads Clojure's data notation, and JSON as a stricter notation of
// the same values, one form at a time and in bounded memory. It is not an
// implementation of Clojure: tags are kept and not carried out, numbers that do
// not fit are kept as text, and sets and maps keep the order of the file.
//
// Read [Reader] first; a [Value] is what it yields. Nothing here knows of
// histories. The notation is described at https://github.com/edn-format/edn.
package edn

import (
	"math"
	"strconv"
	"strings"
)

// Kind is the sort of a value.
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
	Tagged       // Text: the tag without #; Items: the one value that is tagged
)

// Value is one value. It may be copied; it shares its Items with the copy.
type Value struct {
	Kind  Kind
	Text  string
	Int   int64
	Items []Value
}

// Bare is the value without its tags.
func (v Value) Bare() Value {
	for v.Kind == Tagged && len(v.Items) == 1 {
		v = v.Items[0]
	}
	return v
}

// Word is the text of a keyword, symbol, string or character, and whether v is one.
func (v Value) Word() (string, bool) {
	switch v = v.Bare(); v.Kind {
	case String, Char, Keyword, Symbol:
		return v.Text, true
	}
	return "", false
}

// Get is the value in a map under a key of that name, be it a keyword, a symbol
// or a string, and whether there is one. Of several it is the last.
func (v Value) Get(name string) (Value, bool) {
	v = v.Bare()
	if v.Kind != Map {
		return Value{}, false
	}
	for i := len(v.Items) - 2; i >= 0; i -= 2 {
		if key := &v.Items[i]; key.Text == name && (key.Kind == Keyword || key.Kind == String || key.Kind == Symbol) {
			return v.Items[i+1], true
		}
	}
	return Value{}, false
}

// Float is a number as a float64, and whether v is one.
func (v Value) Float() (float64, bool) {
	switch v = v.Bare(); v.Kind {
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

// Integer is a whole number, also one that is written 3.0 or 3N, and whether v is one.
func (v Value) Integer() (int64, bool) {
	v = v.Bare()
	if v.Kind == Int {
		return v.Int, true
	}
	f, ok := v.Float()
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// Unsigned is a whole number from 0 on, up to 2⁶⁴−1, and whether v is one.
func (v Value) Unsigned() (uint64, bool) {
	if v = v.Bare(); v.Kind == Number {
		if n, err := strconv.ParseUint(strings.TrimSuffix(v.Text, "N"), 10, 64); err == nil {
			return n, true
		}
	}
	n, ok := v.Integer()
	return uint64(max(n, 0)), ok && n >= 0
}

// Empty says that v says nothing: nil, false, "", "false", or a collection of nothing.
func (v Value) Empty() bool {
	switch v = v.Bare(); v.Kind {
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
