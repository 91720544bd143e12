package edn

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Append appends v in EDN, on one line.
func (v Value) Append(b []byte) []byte {
	switch v.Kind {
	case Bool:
		return strconv.AppendBool(b, v.Int != 0)
	case Int:
		return strconv.AppendInt(b, v.Int, 10)
	case Number:
		return appendNumber(b, v.Text)
	case String:
		return AppendString(b, v.Text)
	case Char:
		return append(append(b, '\\'), charName(v.Text)...)
	case Keyword:
		return append(append(b, ':'), v.Text...)
	case Symbol:
		return append(b, v.Text...)
	case Vector:
		return appendItems(append(b, '['), v.Items, ']')
	case List:
		return appendItems(append(b, '('), v.Items, ')')
	case Set:
		return appendItems(append(b, '#', '{'), v.Items, '}')
	case Map:
		return appendItems(append(b, '{'), v.Items, '}')
	case Tagged:
		b = append(append(append(b, '#'), v.Text...), ' ')
		return v.Items[0].Append(b)
	}
	return append(b, "nil"...)
}

// String returns v in EDN.
func (v Value) String() string { return string(v.Append(nil)) }

func appendItems(b []byte, items []Value, end byte) []byte {
	for i, item := range items {
		if i > 0 {
			b = append(b, ' ')
		}
		b = item.Append(b)
	}
	return append(b, end)
}

func appendNumber(b []byte, text string) []byte {
	switch text {
	case "Inf", "-Inf", "NaN":
		b = append(b, "##"...)
	}
	return append(b, text...)
}

// AppendString appends s as an EDN string.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r < 0x20 || r == 0x7f:
			b = append(b, `\u00`...)
			b = append(b, hexDigits[r>>4], hexDigits[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

const hexDigits = "0123456789abcdef"

// AppendKeyword appends a keyword if word can be one, else a string.
func AppendKeyword(b []byte, word string) []byte {
	if !isKeyword(word) {
		return AppendString(b, word)
	}
	return append(append(b, ':'), word...)
}

// isKeyword is stricter than EDN, so that every tool can read the result.
func isKeyword(word string) bool {
	if word == "" || word[0] >= '0' && word[0] <= '9' {
		return false
	}
	for i := range len(word) {
		c := word[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("-_.*+!?", c) >= 0:
		default:
			return false
		}
	}
	return true
}
