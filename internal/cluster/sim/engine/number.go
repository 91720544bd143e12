package engine

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// parseInt parses an integer as strictly as Redis does: no plus, no white space, no
// leading zeros, no "-0".
func parseInt(b []byte) (int64, bool) {
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(b) > 1 {
		return 0, false
	}
	var n uint64
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + uint64(d-'0')
	}
	if len(b) > len(digits) {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n <= math.MaxInt64
}

// parseFloat parses all of b as a double, as C's strtod does; no NaN, no overflow, no
// underflow.
func parseFloat(b []byte) (float64, bool) {
	s := string(b)
	if s == "" || isSpace(s[0]) || strings.Contains(s, "_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(hexFloat(s), 64)
	if err != nil || math.IsNaN(f) {
		return 0, false
	}
	if f == 0 { // perhaps an underflow
		x, ok := parseExtended(b)
		return f, ok && x.Sign() == 0
	}
	return f, true
}

// hexFloat adds the exponent that strconv requires of a hexadecimal number.
func hexFloat(s string) string {
	l := strings.ToLower(strings.TrimLeft(s, "+-"))
	if strings.HasPrefix(l, "0x") && !strings.Contains(l, "p") {
		return s + "p0"
	}
	return s
}

// extended is the precision in bits of C's long double on x86, which INCRBYFLOAT uses.
const extended = 64

// parseExtended parses all of b as a long double, as C's strtold does; no NaN.
func parseExtended(b []byte) (*big.Float, bool) {
	s := strings.ToLower(string(b))
	if s == "" || strings.Contains(s, "_") {
		return nil, false
	}
	body := s
	if s[0] == '-' || s[0] == '+' {
		body = s[1:]
	}
	if body == "inf" || body == "infinity" {
		return new(big.Float).SetPrec(extended).SetInf(s[0] == '-'), true
	}
	base := 10
	if strings.HasPrefix(body, "0x") {
		base = 0
	}
	x, _, err := big.ParseFloat(s, base, extended, big.ToNearestEven)
	if err != nil || base == 10 && strings.ContainsAny(s, "pi") || x.MantExp(nil) > 16384 {
		return nil, false
	}
	return x, true
}

// formatExtended formats a long double as Redis does: 17 decimals, without trailing zeros.
func formatExtended(x *big.Float) string {
	s := x.Text('f', 17)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

const (
	errNotInt   = "ERR value is not an integer or out of range"
	errNotFloat = "ERR value is not a valid float"
	errSyntax   = "ERR syntax error"
)

// integer parses an argument.
func (c *Conn) integer(b []byte) int64 { return c.atLeast(math.MinInt64, b, errNotInt) }

// atLeast parses an argument that must be an integer and not below least.
func (c *Conn) atLeast(least int64, b []byte, bad string) int64 {
	n, ok := parseInt(b)
	c.FailIf(!ok || n < least, bad)
	return n
}

// float parses an argument.
func (c *Conn) float(b []byte, bad string) float64 {
	f, ok := parseFloat(b)
	c.FailIf(!ok, bad)
	return f
}

// extended parses an argument as a long double.
func (c *Conn) extended(b []byte, bad string) *big.Float {
	f, ok := parseExtended(b)
	c.FailIf(!ok, bad)
	return f
}

// is compares an argument with a word in lower case, ignoring case.
func is(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, x := range b {
		if lower(x) != word[i] {
			return false
		}
	}
	return true
}

// span turns the ends of a range that may count from the end into ends of a slice; from >= to: empty.
func span(start, end int64, n int) (from, to int) {
	size := int64(n)
	if start < 0 {
		start = max(start+size, 0)
	}
	if end < 0 {
		end += size
	}
	if start > end || start >= size || end < 0 {
		return 0, 0
	}
	return int(start), int(min(end, size-1)) + 1
}

// positive parses a count that must not be negative.
func (c *Conn) positive(b []byte) int64 {
	return c.atLeast(0, b, "ERR value is out of range, must be positive")
}
