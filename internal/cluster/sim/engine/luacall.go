package engine

import (
	"crypto/sha1"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// bytesOf is s without a copy, for reading only.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// errorTable is an error as seen by scripts; text is as in a reply, with or without its
// dash; without a code it gets ERR.
func errorTable(L *lua.LState, text string) *lua.LTable {
	text = strings.Trim(cString([]byte(text)), "\r\n")
	if rest, dashed := strings.CutPrefix(text, "-"); dashed {
		if strings.Contains(rest, " ") {
			text = rest
		} else {
			text = "ERR " + rest
		}
	} else {
		text = "ERR " + text
	}
	t := L.CreateTable(0, 3)
	t.RawSetString("err", lua.LString(text))
	return t
}

// call is redis.call, or redis.pcall if it does not raise errors.
func (in *interpreter) call(raise bool) lua.LGFunction {
	return func(L *lua.LState) int {
		v, bad := in.command(L)
		if bad != "" {
			v = errorTable(L, bad)
			if !raise { // else it is counted as the script's
				in.s.countError(lua.LVAsString(v.(*lua.LTable).RawGetString("err")))
			}
		}
		if raise && in.conn.failed {
			L.Error(v, 1)
		}
		L.Push(v)
		return 1
	}
}

// command executes a command of a script; bad: it is not allowed.
func (in *interpreter) command(L *lua.LState) (v lua.LValue, bad string) {
	c := in.conn
	c.failed = true
	n := L.GetTop()
	if n == 0 {
		return nil, "Please specify at least one argument for this redis lib call"
	}
	// The memory of the arguments is reused; a command keeps no reference to it.
	args, numbers := in.args[:0], in.numbers[:0]
	for i := 1; i <= n; i++ {
		switch a := L.Get(i).(type) {
		case lua.LString:
			args = append(args, bytesOf(string(a)))
		case lua.LNumber:
			from := len(numbers)
			numbers = appendNumber(numbers, float64(a))
			args = append(args, numbers[from:len(numbers):len(numbers)])
		default:
			return nil, "Lua redis lib command arguments must be strings or integers"
		}
	}
	in.args, in.numbers = args, numbers
	spec, why := c.s.lookup(args)
	if why != "" {
		if strings.HasPrefix(why, "ERR wrong number") {
			return nil, "Wrong number of args calling Redis command from script"
		}
		return nil, "Unknown Redis command called from script"
	}
	if spec.has(NoScript) {
		return nil, "This Redis command is not allowed from script"
	}
	if why := c.s.unpermittedInScript(spec, args); why != "" {
		return nil, why
	}
	if in.readOnly && spec.has(Write|mayReplicate) {
		return nil, "Write commands are not allowed from read-only scripts."
	}
	if guard := c.s.cfg.Guard; guard != nil {
		if why := guard(c, spec, args); why != "" {
			return nil, "-" + why
		}
	}
	if c.s.memoryFull && spec.has(DenyOOM) && !in.wrote && !in.allowOOM {
		return nil, "-" + errOOM
	}
	if c.s.refusesWrites() && spec.has(Write) && !in.wrote {
		return nil, "-" + errDisk
	}
	in.wrote = in.wrote || spec.has(Write)
	c.failed = false
	c.out = c.out[:0]
	c.s.call(c, spec, args)
	v, _ = toLua(L, c.out)
	return v, ""
}

// appendNumber formats a number as Redis does for an argument, with %.17g.
func appendNumber(b []byte, f float64) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1e17 && (f != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(b, int64(f), 10)
	}
	return append(b, formatG(f, 17)...)
}

// toLua converts the first reply in b to a Lua value, and returns its length.
func toLua(L *lua.LState, b []byte) (lua.LValue, int) {
	end := 1
	for b[end] != '\r' {
		end++
	}
	line, n := b[1:end], end+2
	switch b[0] {
	case '+':
		return field(L, "ok", lua.LString(line)), n
	case '-':
		return errorTable(L, string(b[:end])), n
	case ':':
		i, _ := parseInt(line)
		return lua.LNumber(i), n
	case '_':
		return lua.LNil, n
	case '#':
		return lua.LBool(line[0] == 't'), n
	case ',':
		f, _ := strconv.ParseFloat(string(line), 64)
		return field(L, "double", lua.LNumber(f)), n
	case '$', '=':
		size, _ := parseInt(line)
		if size < 0 {
			return lua.LFalse, n
		}
		return text(L, b[0], string(b[n:n+int(size)])), n + int(size) + 2
	}
	return collection(L, b, line, n)
}

func text(L *lua.LState, kind byte, s string) lua.LValue {
	if kind == '$' {
		return lua.LString(s)
	}
	t := L.NewTable()
	t.RawSetString("format", lua.LString(s[:3]))
	t.RawSetString("string", lua.LString(s[4:]))
	return field(L, "verbatim_string", t)
}

func field(L *lua.LState, name string, v lua.LValue) *lua.LTable {
	t := L.CreateTable(0, 1)
	t.RawSetString(name, v)
	return t
}

// collection is toLua for an array, a map or a set.
func collection(L *lua.LState, b, line []byte, n int) (lua.LValue, int) {
	count, _ := parseInt(line)
	if count < 0 {
		return lua.LFalse, n
	}
	t := L.CreateTable(int(count), 0)
	for range count {
		v, used := toLua(L, b[n:])
		n += used
		switch b[0] {
		case '%':
			value, used := toLua(L, b[n:])
			n += used
			t.RawSet(v, value)
		case '~':
			t.RawSet(v, lua.LTrue)
		default:
			t.Append(v)
		}
	}
	switch b[0] {
	case '%':
		return field(L, "map", t), n
	case '~':
		return field(L, "set", t), n
	}
	return t, n
}

// truncate converts a double to a long long as C does on x86.
func truncate(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

const maxNesting = 1000

// reply writes the result of a script.
func (in *interpreter) reply(c *Conn, v lua.LValue, depth int) {
	if depth > maxNesting {
		c.WriteError("ERR reached lua stack limit")
		return
	}
	switch v := v.(type) {
	case lua.LString:
		c.WriteBulkString(string(v))
	case lua.LNumber:
		c.WriteInt(truncate(float64(v)))
	case lua.LBool:
		in.replyBool(c, bool(v))
	case *lua.LTable:
		in.replyTable(c, v, depth)
	default:
		c.WriteNull()
	}
}

// replyBool writes a boolean, whose reply depends on redis.setresp.
func (in *interpreter) replyBool(c *Conn, b bool) {
	switch {
	case in.conn.resp < 3 && b:
		c.WriteInt(1)
	case in.conn.resp < 3:
		c.WriteNull()
	case c.resp == 3 && b:
		c.line('#', "t")
	case c.resp == 3:
		c.line('#', "f")
	default:
		c.writeBool(b)
	}
}

func (in *interpreter) replyTable(c *Conn, t *lua.LTable, depth int) {
	if s, ok := t.RawGetString("err").(lua.LString); ok {
		c.WriteError(strings.TrimPrefix(cString([]byte(s)), "-"))
		return
	}
	if s, ok := t.RawGetString("ok").(lua.LString); ok {
		c.WriteStatus(strings.NewReplacer("\r", " ", "\n", " ").Replace(cString([]byte(s))))
		return
	}
	if f, ok := t.RawGetString("double").(lua.LNumber); ok {
		c.WriteDouble(float64(f))
		return
	}
	if m, ok := t.RawGetString("map").(*lua.LTable); ok {
		in.replyPairs(c, m, true, depth)
		return
	}
	if m, ok := t.RawGetString("set").(*lua.LTable); ok {
		in.replyPairs(c, m, false, depth)
		return
	}
	n := 0
	for t.RawGetInt(n+1) != lua.LNil {
		n++
	}
	c.WriteArray(n)
	for i := 1; i <= n; i++ {
		in.reply(c, t.RawGetInt(i), depth+1)
	}
}

func (in *interpreter) replyPairs(c *Conn, t *lua.LTable, isMap bool, depth int) {
	n := 0
	t.ForEach(func(lua.LValue, lua.LValue) { n++ })
	if isMap {
		c.WriteMap(n)
	} else {
		c.WriteSet(n)
	}
	t.ForEach(func(k, v lua.LValue) {
		in.reply(c, k, depth+1)
		if isMap {
			in.reply(c, v, depth+1)
		}
	})
}

// redisLibrary are the functions of the table redis.
func (in *interpreter) redisLibrary() map[string]lua.LGFunction {
	plain := func(bad string) lua.LGFunction {
		return func(L *lua.LState) int {
			L.Error(errorTable(L, bad), 1)
			return 0
		}
	}
	return map[string]lua.LGFunction{
		"call":  in.call(true),
		"pcall": in.call(false),
		"error_reply": replyOf(func(L *lua.LState, s lua.LString) *lua.LTable {
			return errorTable(L, "-"+strings.TrimPrefix(string(s), "-"))
		}),
		"status_reply": replyOf(func(L *lua.LState, s lua.LString) *lua.LTable { return field(L, "ok", s) }),
		"sha1hex": func(L *lua.LState) int {
			if L.GetTop() != 1 {
				return plain("wrong number of arguments")(L)
			}
			sum := sha1.Sum([]byte(lua.LVAsString(L.Get(1))))
			if n, ok := L.Get(1).(lua.LNumber); ok {
				sum = sha1.Sum([]byte(toText(n)))
			}
			L.Push(lua.LString(hex.EncodeToString(sum[:])))
			return 1
		},
		"log": func(L *lua.LState) int {
			if L.GetTop() < 2 {
				return plain("redis.log() requires two arguments or more.")(L)
			}
			if _, ok := L.Get(1).(lua.LNumber); !ok {
				return plain("First argument must be a number (log level).")(L)
			}
			return 0
		},
		"setresp":            in.setResp(plain),
		"replicate_commands": func(L *lua.LState) int { L.Push(lua.LTrue); return 1 },
		"set_repl":           func(*lua.LState) int { return 0 },
		"breakpoint":         func(L *lua.LState) int { L.Push(lua.LFalse); return 1 },
		"debug":              func(*lua.LState) int { return 0 },
		"acl_check_cmd":      func(L *lua.LState) int { L.Push(lua.LTrue); return 1 },
	}
}

// replyOf makes a reply of one string.
func replyOf(table func(L *lua.LState, s lua.LString) *lua.LTable) lua.LGFunction {
	return func(L *lua.LState) int {
		if s, ok := L.Get(1).(lua.LString); ok && L.GetTop() == 1 {
			L.Push(table(L, s))
		} else {
			L.Push(errorTable(L, "wrong number or type of arguments"))
		}
		return 1
	}
}

func (in *interpreter) setResp(plain func(string) lua.LGFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		if L.GetTop() != 1 {
			return plain("redis.setresp() requires one argument.")(L)
		}
		n, ok := L.Get(1).(lua.LNumber)
		if !ok || n != 2 && n != 3 {
			return plain("RESP version must be 2 or 3.")(L)
		}
		in.conn.resp = int(n)
		return 0
	}
}
