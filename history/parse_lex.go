package history

// This file is the lexical half of [parser]. Every method skips white space, reads one token and reports whether it was
// there in its simplest form; if not, encoding/json parses the line.

// object reads {"name":value,…} and calls field to read each value. bit is the number of the field, which an object may
// have once.
func (p *parser) object(field func(name []byte) (bit int, ok bool)) bool {
	if !p.byte('{') {
		return false
	}
	if p.byte('}') {
		return true
	}
	for {
		name, ok := p.raw()
		if !ok || !p.byte(':') {
			return false
		}
		bit, ok := field(name)
		if !ok {
			return false
		}
		if p.seen&(1<<bit) != 0 && p.duplicate == "" {
			p.duplicate = string(name)
		}
		p.seen |= 1 << bit
		if p.byte(',') {
			continue
		}
		return p.byte('}')
	}
}

func (p *parser) skip() {
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\t') {
		p.i++
	}
}

func (p *parser) byte(c byte) bool {
	p.skip()
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

// raw reads a string of ASCII characters without escapes other than \" and \\, which a name in quotes has. The bytes
// are part of the line, or valid until the next string.
func (p *parser) raw() ([]byte, bool) {
	if !p.byte('"') {
		return nil, false
	}
	p.unescaped = p.unescaped[:0]
	start := p.i
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == '"':
			b := p.b[start:p.i]
			if p.i++; len(p.unescaped) > 0 {
				p.unescaped = append(p.unescaped, b...)
				b = p.unescaped
			}
			return b, true
		case c == '\\' && p.i+1 < len(p.b) && (p.b[p.i+1] == '"' || p.b[p.i+1] == '\\'):
			p.unescaped = append(p.unescaped, p.b[start:p.i]...)
			p.i++
			start = p.i
		case !plain(c):
			return nil, false
		}
	}
	return nil, false
}

// string reads a string that is rarely repeated.
func (p *parser) string(to *string) bool {
	b, ok := p.raw()
	if ok {
		*to = string(b)
	}
	return ok
}

// word reads and interns a string that is often repeated.
func (p *parser) word(to *string) bool {
	b, ok := p.raw()
	if !ok {
		return false
	}
	s, known := p.words[string(b)]
	if !known {
		s = string(b)
		if len(p.words) < maxWords {
			p.words[s] = s
		}
	}
	*to = s
	return true
}

func (p *parser) uint64(to *uint64) bool {
	p.skip()
	start := p.i
	var n uint64
	for p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9' {
		n = n*10 + uint64(p.b[p.i]-'0')
		p.i++
	}
	digits := p.i - start
	if digits == 0 || digits > 18 || (digits > 1 && p.b[start] == '0') {
		return false
	}
	*to = n
	return true
}

func (p *parser) int64(to *int64) bool {
	negative := p.byte('-')
	if negative && (p.i >= len(p.b) || p.b[p.i] < '0' || p.b[p.i] > '9') {
		return false
	}
	var n uint64
	if !p.uint64(&n) {
		return false
	}
	*to = int64(n)
	if negative {
		*to = -*to
	}
	return true
}

func (p *parser) int(to *int) bool {
	var n int64
	ok := p.int64(&n)
	*to = int(n)
	return ok
}

func (p *parser) bool(to *bool) bool {
	p.skip()
	rest := p.b[p.i:]
	switch {
	case len(rest) >= 4 && string(rest[:4]) == "true":
		*to = true
		p.i += 4
	case len(rest) >= 5 && string(rest[:5]) == "false":
		*to = false
		p.i += 5
	default:
		return false
	}
	return true
}
