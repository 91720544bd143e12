package edn

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// atom reads a number, symbol or keyword, or one of the words nil, true, false.
func (r *Reader) atom() (Value, error) {
	if err := r.readToken(); err != nil {
		return Value{}, err
	}
	if n, ok := plainInt(r.token); ok {
		return Value{Kind: Int, Int: n}, nil
	}
	text, err := r.word()
	if err != nil {
		return Value{}, err
	}
	switch text {
	case "":
		c, _ := r.peek()
		return Value{}, r.errorf("expected a value, got %q", c)
	case "nil":
		return Value{}, nil
	case "true":
		return Value{Kind: Bool, Int: 1}, nil
	case "false":
		return Value{Kind: Bool}, nil
	}
	if text[0] == ':' {
		if len(text) == 1 {
			return Value{}, r.errorf("keyword without a name")
		}
		return Value{Kind: Keyword, Text: text[1:]}, nil
	}
	if !numeric(text) {
		return Value{Kind: Symbol, Text: text}, nil
	}
	if n, err := strconv.ParseInt(strings.TrimSuffix(text, "N"), 0, 64); err == nil && !strings.Contains(text, "_") {
		return Value{Kind: Int, Int: n}, nil
	}
	if outOfRange(text) {
		return Value{}, r.errorf("number %.40q is out of range", text)
	}
	if _, ok := parseFloat(text); !ok || strings.ContainsAny(text, "_xXpP") {
		return Value{}, r.errorf("%.40q is not a number", text)
	}
	return Value{Kind: Number, Text: text}, nil
}

// outOfRange reports whether text is a number beyond the range of float64.
func outOfRange(text string) bool {
	_, err := strconv.ParseFloat(strings.TrimRight(text, "MN"), 64)
	return errors.Is(err, strconv.ErrRange)
}

// numeric reports whether text starts like a number.
func numeric(text string) bool {
	if text[0] == '-' || text[0] == '+' {
		text = text[1:]
	}
	return text != "" && text[0] >= '0' && text[0] <= '9'
}

// quoted reads a string after its opening quotation mark.
func (r *Reader) quoted() (string, error) {
	r.token = r.token[:0]
	for {
		c, err := r.peek()
		if err != nil {
			return "", r.unexpectedEOF(err)
		}
		r.i++
		switch c {
		case '"':
			return r.word()
		case '\\':
			if err := r.escape(); err != nil {
				return "", err
			}
			continue
		case '\n':
			r.newline()
		}
		if c < 0x20 && r.json {
			return "", r.errorf("control character in a string")
		}
		r.token = append(r.token, c)
		n := r.i
		for n < len(r.buf) && r.buf[n] >= 0x20 && r.buf[n] != '"' && r.buf[n] != '\\' {
			n++
		}
		r.token = append(r.token, r.buf[r.i:n]...)
		r.i = n
	}
}

func (r *Reader) escape() error {
	c, err := r.peek()
	if err != nil {
		return r.unexpectedEOF(err)
	}
	r.i++
	switch c {
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case '"', '\\':
	case 'u':
		return r.unicode()
	default:
		if c != '/' || !r.json {
			return r.errorf("unknown escape \\%c in a string", c)
		}
	}
	r.token = append(r.token, c)
	return nil
}

// unicode reads the four digits after \u, and the second half of a surrogate pair.
func (r *Reader) unicode() error {
	n, err := r.hex4()
	if err != nil {
		return err
	}
	if n>>10 == 0x36 { // the first half of a surrogate pair
		if r.next2('\\', 'u') {
			low, err := r.hex4()
			if err != nil {
				return err
			}
			if low>>10 == 0x37 {
				r.token = utf8.AppendRune(r.token, 0x10000+(n&0x3ff)<<10+low&0x3ff)
				return nil
			}
		}
		return r.errorf("\\u%04x is an unpaired surrogate", n)
	}
	if n>>10 == 0x37 {
		return r.errorf("\\u%04x is an unpaired surrogate", n)
	}
	r.token = utf8.AppendRune(r.token, n)
	return nil
}

func (r *Reader) next2(a, b byte) bool {
	for _, want := range []byte{a, b} {
		if c, err := r.peek(); err != nil || c != want {
			return false
		}
		r.i++
	}
	return true
}

func (r *Reader) hex4() (rune, error) {
	var n rune
	for range 4 {
		c, err := r.peek()
		if err != nil {
			return 0, r.unexpectedEOF(err)
		}
		digit := strings.IndexByte(hexDigits, c|0x20)
		if c < '0' || digit < 0 {
			return 0, r.errorf("expected four hexadecimal digits after \\u")
		}
		n = n<<4 | rune(digit)
		r.i++
	}
	return n, nil
}

// char reads a character such as \a, \newline, \u0041.
func (r *Reader) char() (Value, error) {
	r.i++
	first, err := r.peek()
	if err != nil {
		return Value{}, r.unexpectedEOF(err)
	}
	r.token = r.token[:0]
	if isDelimiter[first] { // such as \(
		r.i++
		if first == '\n' {
			r.newline()
		}
		return Value{Kind: Char, Text: string(rune(first))}, nil
	}
	name, err := r.readWord()
	if err != nil {
		return Value{}, err
	}
	if utf8.RuneCountInString(name) == 1 {
		return Value{Kind: Char, Text: name}, nil
	}
	for _, row := range charNames() {
		if row.name == name {
			return Value{Kind: Char, Text: row.text}, nil
		}
	}
	if n, err := strconv.ParseUint(strings.TrimPrefix(name, "u"), 16, 16); err == nil && len(name) == 5 && name[0] == 'u' {
		return Value{Kind: Char, Text: string(rune(n))}, nil
	}
	return Value{}, r.errorf("unknown character \\%.40s", name)
}

type charRow struct{ name, text string }

func charNames() []charRow {
	return []charRow{
		{"newline", "\n"}, {"return", "\r"}, {"space", " "}, {"tab", "\t"}, {"backspace", "\b"}, {"formfeed", "\f"},
	}
}

// charName returns the name of a character after its backslash.
func charName(text string) string {
	for _, row := range charNames() {
		if row.text == text {
			return row.name
		}
	}
	return text
}
