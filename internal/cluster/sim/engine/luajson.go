package engine

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// jsonLibrary is lua-cjson 2.1 with its default settings; the functions that change
// them do not exist.
func (in *interpreter) jsonLibrary() *lua.LTable {
	L := in.state
	null := L.NewUserData()
	t := L.SetFuncs(L.NewTable(), map[string]lua.LGFunction{
		"encode": func(L *lua.LState) int {
			e := jsonEncoder{L: L, null: null}
			e.value(L.CheckAny(1), 0)
			L.Push(lua.LString(e.b))
			return 1
		},
		"decode": func(L *lua.LState) int {
			d := jsonDecoder{L: L, null: null, text: checkText(L, 1)}
			if len(d.text) > 1 && (d.text[0] == 0 || d.text[1] == 0) {
				L.RaiseError("JSON parser does not support UTF-16 or UTF-32")
			}
			v := d.value(0)
			if at, what := d.next(); what != "T_END" {
				d.fail("the end", at, what)
			}
			L.Push(v)
			return 1
		},
	})
	t.RawSetString("null", null)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
	return t
}

type jsonEncoder struct {
	L    *lua.LState
	null lua.LValue
	b    []byte
}

func (e *jsonEncoder) value(v lua.LValue, depth int) {
	switch x := v.(type) {
	case lua.LString:
		e.text(string(x))
	case lua.LNumber:
		e.number(float64(x))
	case lua.LBool:
		e.b = strconv.AppendBool(e.b, bool(x))
	case *lua.LNilType:
		e.b = append(e.b, "null"...)
	case *lua.LTable:
		if depth >= maxNesting {
			e.L.RaiseError("Cannot serialise, excessive depth (%d)", depth+1) //nolint:misspell // text of lua-cjson
		}
		e.table(x, depth+1)
	default:
		if v != e.null {
			e.L.RaiseError("Cannot serialise %s: type not supported", v.Type().String()) //nolint:misspell // text of lua-cjson
		}
		e.b = append(e.b, "null"...)
	}
}

func (e *jsonEncoder) number(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.L.RaiseError("Cannot serialise number: must not be NaN or Inf") //nolint:misspell // text of lua-cjson
	}
	e.b = append(e.b, formatNumber(f)...)
}

func (e *jsonEncoder) text(s string) {
	e.b = append(e.b, '"')
	for i := 0; i < len(s); i++ {
		b := s[i]
		if at := strings.IndexByte("\"\\/\b\f\n\r\t", b); at >= 0 {
			e.b = append(e.b, '\\', `"\/bfnrt`[at])
		} else if b < ' ' || b == 127 {
			e.b = fmt.Appendf(e.b, "\\u%04x", b)
		} else {
			e.b = append(e.b, b)
		}
	}
	e.b = append(e.b, '"')
}

// list is the length of a table if all its keys are positive integers; -1: an object,
// or empty.
func (e *jsonEncoder) list(t *lua.LTable) int {
	n, items := 0, 0
	t.ForEach(func(k, _ lua.LValue) {
		f, ok := k.(lua.LNumber)
		if !ok || f < 1 || float64(f) != math.Trunc(float64(f)) || n < 0 {
			n = -1
			return
		}
		n = max(n, int(f))
		items++
	})
	if n > 10 && n > 2*items {
		e.L.RaiseError("Cannot serialise table: excessively sparse array") //nolint:misspell // text of lua-cjson
	}
	if n == 0 {
		return -1
	}
	return n
}

func (e *jsonEncoder) table(t *lua.LTable, depth int) {
	if n := e.list(t); n > 0 {
		e.b = append(e.b, '[')
		for i := 1; i <= n; i++ {
			if i > 1 {
				e.b = append(e.b, ',')
			}
			e.value(t.RawGetInt(i), depth)
		}
		e.b = append(e.b, ']')
		return
	}
	e.b = append(e.b, '{')
	first := true
	t.ForEach(func(k, v lua.LValue) {
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
		switch k := k.(type) {
		case lua.LString:
			e.text(string(k))
		case lua.LNumber:
			e.b = append(e.b, '"')
			e.number(float64(k))
			e.b = append(e.b, '"')
		default:
			e.L.RaiseError("Cannot serialise table: table key must be a number or string") //nolint:misspell // text of lua-cjson
		}
		e.b = append(e.b, ':')
		e.value(v, depth)
	})
	e.b = append(e.b, '}')
}

type jsonDecoder struct {
	L    *lua.LState
	null lua.LValue
	text string
	at   int
}

// next skips white space and returns the position and type of the next token.
func (d *jsonDecoder) next() (at int, token string) {
	for d.at < len(d.text) && strings.IndexByte(" \t\n\r", d.text[d.at]) >= 0 {
		d.at++
	}
	if d.at == len(d.text) {
		return d.at, "T_END"
	}
	rest := d.text[d.at:]
	switch b := rest[0]; {
	case strings.IndexByte("{}[],:", b) >= 0:
		names := [...]string{"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END", "T_COMMA", "T_COLON"}
		return d.at, names[strings.IndexByte("{}[],:", b)]
	case b == '"':
		return d.at, "T_STRING"
	case strings.HasPrefix(rest, "true"), strings.HasPrefix(rest, "false"):
		return d.at, "T_BOOLEAN"
	case strings.HasPrefix(rest, "null"):
		return d.at, "T_NULL"
	case b == '-' || b >= '0' && b <= '9':
		return d.at, "T_NUMBER"
	}
	return d.at, "invalid token"
}

func (d *jsonDecoder) fail(want string, at int, found string) {
	d.L.RaiseError("Expected %s but found %s at character %d", want, found, at+1)
}

func (d *jsonDecoder) value(depth int) lua.LValue {
	at, token := d.next()
	switch token {
	case "T_OBJ_BEGIN", "T_ARR_BEGIN":
		if depth >= maxNesting {
			d.L.RaiseError("Found too many nested data structures (%d) at character %d", depth+1, at+1)
		}
		d.at++
		if token == "T_OBJ_BEGIN" {
			return d.object(depth + 1)
		}
		return d.array(depth + 1)
	case "T_STRING":
		return lua.LString(d.string())
	case "T_BOOLEAN":
		if d.text[at] == 't' {
			d.at += 4
			return lua.LTrue
		}
		d.at += 5
		return lua.LFalse
	case "T_NULL":
		d.at += 4
		return d.null
	case "T_NUMBER":
		return d.number()
	}
	d.fail("value", at, token)
	return nil
}

func (d *jsonDecoder) number() lua.LValue {
	from := d.at
	for d.at < len(d.text) && strings.IndexByte("+-.0123456789eE", d.text[d.at]) >= 0 {
		d.at++
	}
	f, err := strconv.ParseFloat(d.text[from:d.at], 64)
	if err != nil && !math.IsInf(f, 0) {
		d.fail("value", from, "invalid number")
	}
	return lua.LNumber(f)
}

func (d *jsonDecoder) array(depth int) lua.LValue {
	t := d.L.NewTable()
	if _, token := d.next(); token == "T_ARR_END" {
		d.at++
		return t
	}
	for i := 1; ; i++ {
		t.RawSetInt(i, d.value(depth))
		at, token := d.next()
		if token != "T_COMMA" && token != "T_ARR_END" {
			d.fail("comma or array end", at, token)
		}
		d.at++
		if token == "T_ARR_END" {
			return t
		}
	}
}

func (d *jsonDecoder) object(depth int) lua.LValue {
	t := d.L.NewTable()
	if _, token := d.next(); token == "T_OBJ_END" {
		d.at++
		return t
	}
	for {
		at, token := d.next()
		if token != "T_STRING" {
			d.fail("object key string", at, token)
		}
		key := d.string()
		if at, token = d.next(); token != "T_COLON" {
			d.fail("colon", at, token)
		}
		d.at++
		t.RawSetString(key, d.value(depth))
		at, token = d.next()
		if token != "T_COMMA" && token != "T_OBJ_END" {
			d.fail("comma or object end", at, token)
		}
		d.at++
		if token == "T_OBJ_END" {
			return t
		}
	}
}

// string parses a string from its opening quote.
func (d *jsonDecoder) string() string {
	from := d.at
	var b []byte
	for d.at++; d.at < len(d.text); d.at++ {
		c := d.text[d.at]
		switch {
		case c == '"':
			d.at++
			return string(b)
		case c < ' ':
			d.fail("value", from, "invalid token")
		case c == '\\' && d.at+1 < len(d.text):
			d.at++
			b = d.escape(b)
		default:
			b = append(b, c)
		}
	}
	d.fail("value", from, "unexpected end of string")
	return ""
}

// escape appends the character of an escape sequence.
func (d *jsonDecoder) escape(b []byte) []byte {
	c := d.text[d.at]
	if at := strings.IndexByte(`"\/bfnrt`, c); at >= 0 {
		return append(b, "\"\\/\b\f\n\r\t"[at])
	}
	if c != 'u' {
		d.fail("value", d.at-1, "invalid escape code")
	}
	r := d.unit(d.at + 1)
	d.at += 4
	if utf16.IsSurrogate(r) {
		low := rune(0)
		if strings.HasPrefix(d.text[d.at+1:], `\u`) {
			low = d.unit(d.at + 3)
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			d.fail("value", d.at-5, "invalid unicode escape code")
		}
		d.at += 6
	}
	return utf8.AppendRune(b, r)
}

func (d *jsonDecoder) unit(from int) rune {
	if from+4 > len(d.text) {
		d.fail("value", from-2, "invalid unicode escape code")
	}
	n, err := strconv.ParseUint(d.text[from:from+4], 16, 16)
	if err != nil {
		d.fail("value", from-2, "invalid unicode escape code")
	}
	return rune(n)
}
