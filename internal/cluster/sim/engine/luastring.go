package engine

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// stringLibrary replaces the functions that format numbers, which the interpreter does
// differently.
func (in *interpreter) stringLibrary(t *lua.LTable) {
	L := in.state
	for name, strs := range map[string][]int{
		"len": {1}, "sub": {1}, "rep": {1}, "reverse": {1}, "byte": {1},
		"find": {1, 2}, "match": {1, 2}, "gsub": {1, 2, 3},
	} {
		f := t.RawGetString(name).(*lua.LFunction).GFunction
		t.RawSetString(name, L.NewFunction(func(L *lua.LState) int {
			for _, i := range strs {
				if n, ok := L.Get(i).(lua.LNumber); ok {
					L.Replace(i, lua.LString(toText(n)))
				}
			}
			return f(L)
		}))
	}
	t.RawSetString("format", L.NewFunction(luaFormat))
	// The interpreter's own treat the bytes as UTF-8.
	for name, f := range map[string]func(byte) byte{"upper": upper, "lower": lower} {
		t.RawSetString(name, L.NewFunction(func(L *lua.LState) int {
			b := []byte(checkText(L, 1))
			for i := range b {
				b[i] = f(b[i])
			}
			L.Push(lua.LString(b))
			return 1
		}))
	}
}

func luaFormat(L *lua.LState) int {
	format := L.CheckString(1)
	var b strings.Builder
	arg := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i++; i < len(format) && format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		from := i
		for i < len(format) && strings.IndexByte("-+ #0123456789.", format[i]) >= 0 {
			i++
		}
		if i == len(format) {
			L.RaiseError("invalid option '%%' to 'format'")
		}
		if i-from > 10 {
			L.RaiseError("invalid format (repeated flags)")
		}
		arg++
		b.WriteString(formatOne(L, format[from:i], format[i], arg))
	}
	L.Push(lua.LString(b.String()))
	return 1
}

// formatOne formats one argument; spec is between % and the verb.
func formatOne(L *lua.LState, spec string, verb byte, arg int) string {
	switch verb {
	case 'c':
		return fmt.Sprintf("%"+spec+"s", string([]byte{byte(L.CheckInt(arg))}))
	case 'd', 'i':
		return fmt.Sprintf("%"+integerSpec(spec)+"d", truncate(float64(checkNumber(L, arg))))
	case 'u':
		return fmt.Sprintf("%"+integerSpec(spec)+"d", uint64(truncate(float64(checkNumber(L, arg)))))
	case 'o', 'x', 'X':
		return fmt.Sprintf("%"+integerSpec(spec)+string(verb), uint64(truncate(float64(checkNumber(L, arg)))))
	case 'e', 'E', 'f', 'g', 'G':
		return formatFloat(spec, verb, float64(checkNumber(L, arg)))
	case 'q':
		return quote(checkText(L, arg))
	case 's':
		return fmt.Sprintf("%"+spec+"s", checkText(L, arg))
	}
	L.RaiseError("invalid option '%%%s' to 'format'", string([]byte{verb}))
	return ""
}

// integerSpec drops the flag 0 if there is a precision, as C does.
func integerSpec(spec string) string {
	if strings.Contains(spec, ".") {
		flags := strings.TrimLeft(spec, "-+ #0")
		return strings.ReplaceAll(spec[:len(spec)-len(flags)], "0", "") + flags
	}
	return spec
}

func checkNumber(L *lua.LState, arg int) lua.LNumber {
	switch v := L.Get(arg).(type) {
	case lua.LNumber:
		return v
	case lua.LString:
		if f, ok := readNumber(string(v), 10); ok {
			return lua.LNumber(f)
		}
	}
	L.ArgError(arg, "number expected, got "+typeName(L, arg))
	return 0
}

func checkText(L *lua.LState, arg int) string {
	v := L.Get(arg)
	if v.Type() != lua.LTString && v.Type() != lua.LTNumber {
		L.ArgError(arg, "string expected, got "+typeName(L, arg))
	}
	return toText(v)
}

func typeName(L *lua.LState, arg int) string {
	if arg > L.GetTop() {
		return "no value"
	}
	return L.Get(arg).Type().String()
}

// formatFloat formats as C does, which differs from Go: %g has six digits by default,
// and infinity is in lower case.
func formatFloat(spec string, verb byte, f float64) string {
	if strings.ContainsAny(formatG(f, 1), "in") {
		width, _, _ := strings.Cut(strings.ReplaceAll(spec, "0", ""), ".")
		return fmt.Sprintf("%"+width+"s", formatG(f, 1))
	}
	if !strings.Contains(spec, ".") {
		spec += ".6"
	}
	if (verb == 'g' || verb == 'G') && !strings.Contains(spec, "#") {
		flags, digits, _ := strings.Cut(spec, ".")
		n, _ := strconv.Atoi(digits)
		text := formatG(f, max(n, 1))
		if verb == 'G' {
			text = strings.ToUpper(text)
		}
		return pad(flags, text)
	}
	return fmt.Sprintf("%"+spec+string(verb), f)
}

// pad applies flags and a width to a formatted number.
func pad(flags, text string) string {
	width := strings.TrimLeft(flags, "-+ 0")
	flags = flags[:len(flags)-len(width)]
	if !strings.HasPrefix(text, "-") {
		if strings.Contains(flags, "+") {
			text = "+" + text
		} else if strings.Contains(flags, " ") {
			text = " " + text
		}
	}
	n, _ := strconv.Atoi(width)
	missing := max(n-len(text), 0)
	switch {
	case strings.Contains(flags, "-"):
		return text + strings.Repeat(" ", missing)
	case strings.Contains(flags, "0"):
		digits := strings.TrimLeft(text, "+- ")
		return text[:len(text)-len(digits)] + strings.Repeat("0", missing) + digits
	}
	return strings.Repeat(" ", missing) + text
}

// quote writes a string as a Lua literal.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"', '\\', '\n':
			b.WriteByte('\\')
			b.WriteByte(s[i])
		case '\r':
			b.WriteString(`\r`)
		case 0:
			b.WriteString(`\000`)
		default:
			b.WriteByte(s[i])
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (in *interpreter) tableLibrary(t *lua.LTable) {
	L := in.state
	t.RawSetString("concat", L.NewFunction(tableConcat))
	each := func(list bool) lua.LGFunction {
		return func(L *lua.LState) int {
			t, f := L.CheckTable(1), L.CheckFunction(2)
			key := lua.LNil
			for i := 1; ; i++ {
				var v lua.LValue
				if list {
					key, v = lua.LNumber(i), t.RawGetInt(i)
				} else {
					key, v = t.Next(key)
				}
				if key == lua.LNil || list && i > t.Len() {
					return 0
				}
				L.Push(f)
				L.Push(key)
				L.Push(v)
				L.Call(2, 1)
				if L.Get(-1) != lua.LNil {
					return 1
				}
				L.Pop(1)
			}
		}
	}
	t.RawSetString("foreach", L.NewFunction(each(false)))
	t.RawSetString("foreachi", L.NewFunction(each(true)))
}

func tableConcat(L *lua.LState) int {
	t, sep := L.CheckTable(1), L.OptString(2, "")
	from, to := L.OptInt(3, 1), L.OptInt(4, t.Len())
	var b strings.Builder
	for i := from; i <= to; i++ {
		v := t.RawGetInt(i)
		if v.Type() != lua.LTString && v.Type() != lua.LTNumber {
			L.RaiseError("invalid value (%s) at index %d in table for 'concat'", v.Type().String(), i)
		}
		b.WriteString(toText(v))
		if i < to {
			b.WriteString(sep)
		}
	}
	L.Push(lua.LString(b.String()))
	return 1
}

// mathLibrary makes random numbers depend on the server's seed.
func (in *interpreter) mathLibrary(t *lua.LTable) {
	L := in.state
	t.RawSetString("randomseed", L.NewFunction(func(*lua.LState) int { return 0 }))
	t.RawSetString("random", L.NewFunction(func(L *lua.LState) int {
		r := in.s.random.Float64()
		lo, hi := 1, 1
		switch L.GetTop() {
		case 0:
			L.Push(lua.LNumber(r))
			return 1
		case 1:
			hi = L.CheckInt(1)
		case 2:
			lo, hi = L.CheckInt(1), L.CheckInt(2)
		default:
			L.RaiseError("wrong number of arguments")
		}
		if lo > hi {
			L.ArgError(L.GetTop(), "interval is empty")
		}
		L.Push(lua.LNumber(int64(r*float64(hi-lo+1)) + int64(lo)))
		return 1
	}))
}
