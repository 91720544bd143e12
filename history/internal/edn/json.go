package edn

import "strconv"

// jsonValue reads a JSON value that starts with c.
func (r *Reader) jsonValue(c byte) (v Value, err error) {
	switch c {
	case '{', '[':
		r.i++
		if r.depth++; r.depth > maxDepth {
			return v, r.errorf("collections are nested more than %d deep", maxDepth)
		}
		if c == '{' {
			v, err = r.jsonItems(Map, '}')
		} else {
			v, err = r.jsonItems(Vector, ']')
		}
		r.depth--
		return v, err
	case '"':
		r.i++
		v.Kind = String
		v.Text, err = r.quoted()
		return v, err
	}
	return r.jsonAtom(c)
}

func (r *Reader) jsonItems(kind Kind, end byte) (Value, error) {
	v, base := Value{Kind: kind}, len(r.stack)
	for {
		c, err := r.skip()
		if err != nil {
			return v, r.unexpectedEOF(err)
		}
		if c == end && len(r.stack) == base {
			break
		}
		if kind == Map {
			if c != '"' {
				return v, r.errorf("expected the name of a field in quotation marks, got %q", c)
			}
			r.i++
			name, err := r.quoted()
			if err != nil {
				return v, err
			}
			if err := r.expect(':'); err != nil {
				return v, err
			}
			r.stack = append(r.stack, Value{Kind: String, Text: name})
		}
		item, _, err := r.value()
		if err != nil {
			return v, err
		}
		r.stack = append(r.stack, item)
		if c, err = r.skip(); err != nil {
			return v, r.unexpectedEOF(err)
		}
		if c == end {
			break
		}
		if err := r.expect(','); err != nil {
			return v, err
		}
		if c, err = r.skip(); err == nil && c == end {
			return v, r.errorf("expected a value after the comma, got %q", c)
		}
	}
	v.Items = r.keep(base)
	r.checkDuplicates(v)
	r.i++
	return v, nil
}

func (r *Reader) jsonAtom(c byte) (Value, error) {
	if err := r.readToken(); err != nil {
		return Value{}, err
	}
	switch string(r.token) {
	case "":
		return Value{}, r.errorf("expected a value, got %q", c)
	case "null":
		return Value{}, nil
	case "true":
		return Value{Kind: Bool, Int: 1}, nil
	case "false":
		return Value{Kind: Bool}, nil
	}
	if n, ok := plainInt(r.token); ok {
		return Value{Kind: Int, Int: n}, nil
	}
	if !isJSONNumber(r.token) {
		return Value{}, r.errorf("%.40q is not a JSON value", r.token)
	}
	if outOfRange(string(r.token)) {
		return Value{}, r.errorf("number %.40q is out of range", r.token)
	}
	if n, err := strconv.ParseInt(string(r.token), 10, 64); err == nil {
		return Value{Kind: Int, Int: n}, nil
	}
	return Value{Kind: Number, Text: string(r.token)}, nil
}

// isJSONNumber follows the grammar: -? (0 | [1-9][0-9]*) (.[0-9]+)? ([eE][+-]?[0-9]+)?
func isJSONNumber(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	n := digits(b)
	if n == 0 || n > 1 && b[0] == '0' {
		return false
	}
	if b = b[n:]; len(b) > 0 && b[0] == '.' {
		if n = digits(b[1:]); n == 0 {
			return false
		}
		b = b[1+n:]
	}
	if len(b) > 0 && b[0]|0x20 == 'e' {
		if b = b[1:]; len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		if n = digits(b); n == 0 {
			return false
		}
		b = b[n:]
	}
	return len(b) == 0
}

func digits(b []byte) (n int) {
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return n
}
