package main

import (
	"io"
	"strings"
	"unicode"
)

// harmless is text that a terminal only shows: scenarios, clients and histories
// are written by others, and an escape sequence in a name must not paint over a
// verdict. Line breaks and tabs stay.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', unicode.IsPrint(r):
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// harmlessWriter makes everything harmless that is written through it. What is
// written must be whole runes.
type harmlessWriter struct{ w io.Writer }

// Write writes p, as long as it was before, or fails.
func (h harmlessWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(h.w, harmless(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
