package engine

import (
	"errors"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// open creates the state with Redis' libraries and rules: reading an undefined global is
// an error, and so is writing a global.
func (in *interpreter) open() {
	L := lua.NewState(lua.Options{
		CallStackSize: 8000, MinimizeStackMemory: true,
		RegistrySize: 1024, RegistryGrowStep: 1024, RegistryMaxSize: 1 << 20, SkipOpenLibs: true,
	})
	in.state = L
	for _, lib := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}, {lua.StringLibName, lua.OpenString},
		{lua.MathLibName, lua.OpenMath}, {lua.CoroutineLibName, lua.OpenCoroutine},
	} {
		L.Push(L.NewFunction(lib.open))
		L.Push(lua.LString(lib.name))
		L.Call(1, 0)
	}
	g := L.G.Global
	in.globals = g
	for _, name := range []string{"dofile", "loadfile", "print", "module", "require", "newproxy", "getfenv", "setfenv",
		"_printregs", "_GOPHER_LUA_VERSION"} {
		g.RawSetString(name, lua.LNil)
	}
	in.baseLibrary(g)
	strs := g.RawGetString("string").(*lua.LTable)
	in.stringLibrary(strs)
	in.tableLibrary(g.RawGetString("table").(*lua.LTable))
	in.mathLibrary(g.RawGetString("math").(*lua.LTable))
	g.RawSetString("bit", L.SetFuncs(L.NewTable(), bitLibrary()))
	g.RawSetString("cjson", in.jsonLibrary())
	redis := L.SetFuncs(L.NewTable(), in.redisLibrary())
	for i, level := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		redis.RawSetString(level, lua.LNumber(i))
	}
	for i, to := range []string{"REPL_NONE", "REPL_AOF", "REPL_SLAVE", "REPL_ALL"} {
		redis.RawSetString(to, lua.LNumber(i))
	}
	redis.RawSetString("REPL_REPLICA", lua.LNumber(2))
	redis.RawSetString("REDIS_VERSION", lua.LString(in.s.cfg.Version))
	g.RawSetString("redis", redis)
	in.onError = L.NewFunction(in.handleError)
	in.protect(g)
}

// protect makes the globals and the libraries read-only.
func (in *interpreter) protect(g *lua.LTable) {
	L := in.state
	deny := L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("Attempt to modify a readonly table")
		return 0
	})
	readOnly := func(t *lua.LTable) *lua.LTable {
		mt := L.NewTable()
		mt.RawSetString("__index", t)
		mt.RawSetString("__newindex", deny)
		mt.RawSetString("__metatable", lua.LFalse)
		front := L.NewTable()
		front.Metatable = mt
		return front
	}
	for _, name := range []string{"string", "table", "math", "bit", "cjson", "coroutine", "redis"} {
		g.RawSetString(name, readOnly(g.RawGetString(name).(*lua.LTable)))
	}
	missing := L.NewTable()
	missing.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("Script attempted to access nonexistent global variable '%s'", toText(L.Get(2)))
		return 0
	}))
	g.Metatable = missing
	in.env = readOnly(g)
	g.RawSetString("_G", in.env)
	rawset := g.RawGetString("rawset").(*lua.LFunction)
	g.RawSetString("rawset", L.NewFunction(func(L *lua.LState) int {
		if t, ok := L.Get(1).(*lua.LTable); ok {
			if mt, ok := t.Metatable.(*lua.LTable); ok && mt.RawGetString("__newindex") == deny {
				L.RaiseError("Attempt to modify a readonly table")
			}
		}
		return rawset.GFunction(L)
	}))
}

// toText is tostring of a value without a metatable: numbers with %.14g, as Lua does.
// All addresses, which would differ from run to run, are the same.
func toText(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return formatNumber(float64(v))
	case *lua.LTable, *lua.LFunction, *lua.LUserData, *lua.LState:
		return v.Type().String() + ": 0x0"
	}
	return v.String()
}

func formatNumber(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e14 && (f != 0 || !math.Signbit(f)) {
		return strconv.FormatInt(int64(f), 10)
	}
	return formatG(f, 14)
}

func (in *interpreter) baseLibrary(g *lua.LTable) {
	L := in.state
	set := func(name string, f lua.LGFunction) { g.RawSetString(name, L.NewFunction(f)) }
	set(concatName, luaConcat)
	set(endlessName, in.endless)
	set(modName, luaMod)
	set("tostring", func(L *lua.LState) int {
		v := L.CheckAny(1)
		if f := L.GetMetaField(v, "__tostring"); f != lua.LNil {
			L.Push(f)
			L.Push(v)
			L.Call(1, 1)
			return 1
		}
		L.Push(lua.LString(toText(v)))
		return 1
	})
	set("tonumber", luaToNumber)
	set("pcall", luaPcall)
	set("collectgarbage", func(L *lua.LState) int { L.Push(lua.LNumber(0)); return 1 })
	set("gcinfo", func(L *lua.LState) int { L.Push(lua.LNumber(0)); return 1 })
	set("loadstring", func(L *lua.LState) int { return in.loadString(L, L.CheckString(1)) })
	set("load", func(L *lua.LState) int {
		f := L.CheckFunction(1)
		var text strings.Builder
		for {
			L.Push(f)
			L.Call(0, 1)
			part := L.Get(-1)
			L.Pop(1)
			s, ok := part.(lua.LString)
			if !ok || s == "" {
				return in.loadString(L, text.String())
			}
			text.WriteString(string(s))
		}
	})
	g.RawSetString("_VERSION", lua.LString("Lua 5.1"))
}

func (in *interpreter) loadString(L *lua.LState, text string) int {
	f, err := in.compile(text)
	if err != nil {
		L.Push(lua.LNil)
		L.Push(lua.LString(err.Error()))
		return 2
	}
	L.Push(f)
	return 1
}

// luaPcall is pcall as in Redis: for an error that is a table with a field err, it
// returns that text.
func luaPcall(L *lua.LState) int {
	L.CheckAny(1)
	if err := L.PCall(L.GetTop()-1, lua.MultRet, nil); err != nil {
		var v lua.LValue = lua.LString(err.Error())
		if apiErr, ok := errors.AsType[*lua.ApiError](err); ok && apiErr.Object != nil {
			v = apiErr.Object
		}
		if t, ok := v.(*lua.LTable); ok {
			if s, ok := t.RawGetString("err").(lua.LString); ok {
				v = s
			}
		}
		L.SetTop(0)
		L.Push(lua.LFalse)
		L.Push(v)
		return 2
	}
	L.Insert(lua.LTrue, 1)
	return L.GetTop()
}

// luaToNumber is tonumber; the interpreter's own parses "010" as octal.
func luaToNumber(L *lua.LState) int {
	base := 10
	if L.GetTop() > 1 && L.Get(2) != lua.LNil {
		base = L.CheckInt(2)
		if base < 2 || base > 36 {
			L.ArgError(2, "base out of range")
		}
	}
	v := L.CheckAny(1)
	if n, ok := v.(lua.LNumber); ok && base == 10 {
		L.Push(n)
		return 1
	}
	if s := toText(v); v.Type() == lua.LTString || v.Type() == lua.LTNumber {
		if f, ok := readNumber(s, base); ok {
			L.Push(lua.LNumber(f))
			return 1
		}
	}
	L.Push(lua.LNil)
	return 1
}

// readNumber parses a text as strtod and strtoul do; white space around it is allowed.
func readNumber(s string, base int) (float64, bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	if s == "" || strings.Contains(s, "_") {
		return 0, false
	}
	body := strings.TrimLeft(s, "+-")
	if len(s)-len(body) > 1 {
		return 0, false
	}
	sign := 1.0
	if s[0] == '-' {
		sign = -1
	}
	isHex := len(body) > 2 && (strings.HasPrefix(body, "0x") || strings.HasPrefix(body, "0X"))
	if base != 10 || isHex && !strings.ContainsAny(body, "pP.") {
		if isHex && (base == 16 || base == 10) {
			body, base = body[2:], 16
		}
		n, err := strconv.ParseUint(body, base, 64)
		return sign * float64(n), err == nil
	}
	f, err := strconv.ParseFloat(hexFloat(s), 64)
	return f, err == nil || math.IsInf(f, 0)
}
