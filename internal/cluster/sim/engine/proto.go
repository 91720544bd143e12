package engine

import (
	"bytes"
	"fmt"
	"strings"
)

// Redis' limits of a client's requests.
const (
	maxInline = 64 << 10
	maxArgs   = 1 << 20
	maxBulk   = 512 << 20
)

// parse parses one command from p into c.argv, and returns its length; 0: incomplete. A
// command without arguments is to be ignored. err is Redis' text of a protocol error.
func (c *Conn) parse(p []byte) (n int, err string) {
	c.argv = c.argv[:0]
	if p[0] != '*' {
		return c.parseInline(p)
	}
	line, n, ok := cutLine(p)
	if !ok {
		if len(p) > maxInline {
			return 0, "too big mbulk count string"
		}
		return 0, ""
	}
	count, ok := parseInt(line[1:])
	if !ok || count > maxArgs {
		return 0, "invalid multibulk length"
	}
	for ; count > 0; count-- {
		line, used, ok := cutLine(p[n:])
		if !ok {
			if len(p)-n > maxInline {
				return 0, "too big bulk count string"
			}
			return 0, ""
		}
		if len(line) == 0 || line[0] != '$' {
			return 0, fmt.Sprintf("expected '$', got '%c'", firstOf(p[n:]))
		}
		size, ok := parseInt(line[1:])
		if !ok || size < 0 || size > maxBulk {
			return 0, "invalid bulk length"
		}
		n += used
		if len(p)-n < int(size)+2 {
			return 0, ""
		}
		c.argv = append(c.argv, p[n:n+int(size):n+int(size)])
		n += int(size) + 2
	}
	return n, ""
}

func firstOf(p []byte) byte {
	if len(p) == 0 {
		return 0
	}
	return p[0]
}

// cutLine returns the first line, and its length with the line end.
func cutLine(p []byte) (line []byte, n int, ok bool) {
	i := bytes.IndexByte(p, '\r')
	if i < 0 || i+1 >= len(p) {
		return nil, 0, false
	}
	return p[:i], i + 2, true
}

func (c *Conn) parseInline(p []byte) (n int, err string) {
	i := bytes.IndexByte(p, '\n')
	if i < 0 {
		if len(p) > maxInline {
			return 0, "too big inline request"
		}
		return 0, ""
	}
	line := bytes.TrimSuffix(p[:i], []byte{'\r'})
	words, ok := splitWords(line)
	if !ok {
		return 0, "unbalanced quotes in request"
	}
	c.argv = append(c.argv, words...)
	return i + 1, ""
}

func isSpace(b byte) bool { return strings.IndexByte(" \t\n\v\f\r", b) >= 0 }

// splitWords splits an inline command into words, which may be quoted.
func splitWords(line []byte) (words [][]byte, ok bool) {
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) || line[i] == 0 {
			return words, true
		}
		word, n := cutWord(line[i:])
		if n < 0 {
			return nil, false
		}
		words = append(words, word)
		i += n
	}
}

// cutWord parses one word, and returns its length; -1: a quote is not closed, or is
// followed by other characters.
func cutWord(p []byte) (word []byte, n int) {
	word = []byte{}
	var quote byte
	for i := 0; i < len(p); i++ {
		b := p[i]
		switch {
		case quote == 0 && (isSpace(b) || b == 0):
			return word, i
		case quote == 0 && (b == '"' || b == '\''):
			quote = b
		case quote == 0:
			word = append(word, b)
		case b == quote:
			if i+1 < len(p) && !isSpace(p[i+1]) {
				return nil, -1
			}
			return word, i + 1
		case b == '\\' && quote == '\'' && i+1 < len(p) && p[i+1] == '\'':
			word = append(word, '\'')
			i++
		case b == '\\' && quote == '"' && i+1 < len(p):
			b, used := unescape(p[i+1:])
			word = append(word, b)
			i += used
		default:
			word = append(word, b)
		}
	}
	if quote != 0 {
		return nil, -1
	}
	return word, len(p)
}

// unescape parses an escape sequence between double quotes.
func unescape(p []byte) (b byte, n int) {
	if p[0] == 'x' && len(p) >= 3 {
		hi, lo := hexDigit(p[1]), hexDigit(p[2])
		if hi >= 0 && lo >= 0 {
			return byte(hi<<4 | lo), 3
		}
	}
	if i := strings.IndexByte("nrtba", p[0]); i >= 0 {
		return "\n\r\t\b\a"[i], 1
	}
	return p[0], 1
}

func hexDigit(b byte) int { return strings.IndexByte("0123456789abcdef", lower(b)) }

func upper(b byte) byte {
	if 'a' <= b && b <= 'z' {
		return b - 'a' + 'A'
	}
	return b
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
