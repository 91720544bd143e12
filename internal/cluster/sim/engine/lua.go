package engine

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// interpreter runs scripts. They share one Lua state: creating one takes longer than
// most scripts run, and scripts cannot leave anything in it, because globals and
// libraries are read-only.
type interpreter struct {
	s       *Server
	state   *lua.LState
	env     *lua.LTable // the globals as seen by scripts
	globals *lua.LTable
	onError *lua.LFunction
	scripts dict[*script]
	conn    *Conn // through which scripts call commands
	args    [][]byte
	numbers []byte // memory for numbers among args

	readOnly bool
	allowOOM bool // flag allow-oom, or no-writes, which implies it
	wrote    bool // the script has called a writing command: from then on it is not refused for lack of memory

	endlessly bool // the script has come to a loop that does not end
}

// script is compiled once, under the digest of its text.
type script struct {
	run      *lua.LFunction
	readOnly bool // by its first line, as the fields below
	flags    bool // it has a first line with flags
	allowOOM bool
}

// scripts is the interpreter, which is created for the first script.
func (s *Server) scripts() *interpreter {
	if s.lua == nil {
		s.lua = &interpreter{s: s, conn: &Conn{s: s, resp: 2, script: true}}
		s.lua.open()
	}
	return s.lua
}

const chunk = "user_script"

// compile compiles a text to a function.
func (in *interpreter) compile(text string) (*lua.LFunction, error) {
	proto, err := compiled().get(text)
	if err != nil {
		return nil, err
	}
	f := in.state.NewFunctionFromProto(proto)
	f.Env = in.env
	return f, nil
}

// compiledScripts are the scripts that were compiled last, by their texts: the servers of all runs of a process get the
// same ones again and again. Compiled code is not changed when it runs.
type compiledScripts struct {
	mu   sync.Mutex
	code map[string]*lua.FunctionProto
}

// mostCompiled bounds how many scripts are kept.
const mostCompiled = 1024

// compiled is the cache of this process.
//
//nolint:gochecknoglobals // an entry follows from its key alone
var compiled = sync.OnceValue(func() *compiledScripts {
	return &compiledScripts{code: map[string]*lua.FunctionProto{}}
})

// get compiles a text, unless it was compiled before.
func (s *compiledScripts) get(text string) (*lua.FunctionProto, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if code := s.code[text]; code != nil {
		return code, nil
	}
	code, err := compile(text)
	if err != nil {
		return nil, err
	}
	if len(s.code) >= mostCompiled {
		clear(s.code)
	}
	s.code[text] = code
	return code, nil
}

// compile compiles a text.
func compile(text string) (*lua.FunctionProto, error) {
	stmts, err := parse.Parse(strings.NewReader(text), chunk)
	if err != nil {
		return nil, fmt.Errorf("%s", syntaxError(err))
	}
	rewriteBlock(stmts)
	proto, err := lua.Compile(stmts, chunk)
	if err != nil {
		return nil, fmt.Errorf("%s", syntaxError(err))
	}
	// Without the table arg of Lua 5.0, which would be created at each call, and which a main chunk cannot name.
	proto.IsVarArg &^= lua.VarArgNeedsArg
	return proto, nil
}

// syntaxError formats an error of the parser similar to Lua's.
func syntaxError(err error) string {
	if e, ok := errors.AsType[*parse.Error](err); ok {
		near := "'" + e.Token + "'"
		line := e.Pos.Line
		if e.Token == "" || line < 0 {
			near, line = "'<eof>'", max(line, 1)
		}
		return fmt.Sprintf("%s:%d: syntax error near %s", chunk, line, near)
	}
	return strings.TrimSpace(strings.SplitN(err.Error(), "\n", 2)[0])
}

// load compiles and caches a script.
func (in *interpreter) load(text string) (digest string, sc *script, bad string) {
	sum := sha1.Sum([]byte(text))
	digest = hex.EncodeToString(sum[:])
	if sc, ok := in.scripts.get(digest); ok {
		return digest, sc, ""
	}
	sc = &script{}
	code, bad := shebang(text, sc)
	if bad != "" {
		return "", nil, bad
	}
	f, err := in.compile(code)
	if err != nil {
		return "", nil, "ERR Error compiling script (new function): " + err.Error()
	}
	sc.run = f
	in.scripts.set(digest, sc)
	return digest, sc, ""
}

// shebang parses the first line of a script if it begins with "#!", and removes it from
// the code.
func shebang(text string, sc *script) (code, bad string) {
	if !strings.HasPrefix(text, "#!") {
		return text, ""
	}
	sc.flags = true
	line, rest, found := strings.Cut(text, "\n")
	if !found {
		return "", "ERR Invalid script shebang"
	}
	words := strings.Fields(line[2:])
	if len(words) == 0 || words[0] != "lua" {
		engine := ""
		if len(words) > 0 {
			engine = words[0]
		}
		return "", "ERR Unexpected engine in script shebang: #!" + engine
	}
	for _, w := range words[1:] {
		flags, is := strings.CutPrefix(w, "flags=")
		if !is {
			return "", "ERR Unknown lua shebang option: " + w
		}
		for _, f := range strings.Split(flags, ",") {
			switch f {
			case "no-writes":
				sc.readOnly = true
			case "allow-oom":
				sc.allowOOM = true
			case "", "allow-stale", "no-cluster", "allow-cross-slot-keys":
			default:
				return "", "ERR Unexpected flag in script shebang: " + f
			}
		}
	}
	return "\n" + rest, ""
}

func cmdEval(c *Conn, args [][]byte)           { c.eval(args, false, false) }
func cmdEvalRo(c *Conn, args [][]byte)         { c.eval(args, false, true) }
func cmdEvalsha(c *Conn, args [][]byte)        { c.eval(args, true, false) }
func cmdEvalshaRo(c *Conn, args [][]byte)      { c.eval(args, true, true) }
func (in *interpreter) digest(b []byte) string { return strings.ToLower(string(b)) }

const errTooManyKeys = "ERR Number of keys can't be greater than number of args"

func (c *Conn) eval(args [][]byte, bySHA, readOnly bool) {
	n := c.integer(args[2])
	c.FailIf(n > int64(len(args)-3), errTooManyKeys)
	c.FailIf(n < 0, "ERR Number of keys can't be negative")
	in := c.s.scripts()
	var sc *script
	digest := view(args[1])
	if bySHA {
		if sc, _ = in.scripts.get(digest); sc == nil {
			digest = in.digest(args[1])
			sc, _ = in.scripts.get(digest)
		}
		c.FailIf(sc == nil, "NOSCRIPT No matching script. Please use EVAL.")
	} else {
		var bad string
		digest, sc, bad = in.load(string(args[1]))
		c.FailIf(bad != "", bad)
	}
	withFlags := sc.flags && !sc.readOnly
	c.FailIf(withFlags && readOnly, "ERR Can not execute a script with write flag using *_ro command.")
	c.FailIf(withFlags && !sc.allowOOM && c.s.memoryFull, errOOM)
	in.readOnly = readOnly || sc.readOnly
	in.allowOOM, in.wrote = sc.allowOOM || sc.readOnly, false
	in.run(c, sc, digest, args[3:3+n], args[3+n:])
}

func (in *interpreter) list(items [][]byte) *lua.LTable {
	t := in.state.CreateTable(len(items), 0)
	for _, b := range items {
		t.Append(lua.LString(b))
	}
	return t
}

// run executes a script and writes its reply.
func (in *interpreter) run(c *Conn, sc *script, digest string, keys, argv [][]byte) {
	L := in.state
	in.conn.db, in.conn.resp = c.db, 2
	in.globals.RawSetString("KEYS", in.list(keys))
	in.globals.RawSetString("ARGV", in.list(argv))
	top := L.GetTop()
	L.Push(sc.run)
	in.endlessly = false
	if err := L.PCall(0, 1, in.onError); err != nil {
		L.SetTop(top)
		if reply := scriptError(err, digest); in.endlessly {
			in.keepRunning(c, reply)
		} else {
			c.WriteError(reply)
		}
		return
	}
	v := L.Get(-1)
	L.SetTop(top)
	in.reply(c, v, 0)
}

// scriptError formats an error that ended a script as Redis does, with the position.
func scriptError(err error, digest string) string {
	apiErr, ok := errors.AsType[*lua.ApiError](err)
	if !ok {
		return "ERR " + err.Error()
	}
	t, ok := apiErr.Object.(*lua.LTable)
	if !ok {
		text := err.Error()
		if apiErr.Object != nil && apiErr.Object != lua.LNil {
			text = toText(apiErr.Object)
		}
		return "ERR " + cString([]byte(text))
	}
	text := cString([]byte(toText(t.RawGetString("err"))))
	if _, ok := t.RawGetString("err").(lua.LString); !ok {
		text = "ERR unknown error"
	}
	source, line := t.RawGetString("source"), t.RawGetString("line")
	if source == lua.LNil || line == lua.LNil {
		return text
	}
	return text + " script: " + digest + ", on " + toText(source) + ":" + toText(line) + "."
}

// handleError runs where an error was raised: it makes it a table with the position.
func (in *interpreter) handleError(L *lua.LState) int {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		t = L.NewTable()
		t.RawSetString("err", lua.LString("ERR "+toText(L.Get(1))))
	}
	for level := 1; level < 4; level++ {
		dbg, ok := L.GetStack(level)
		if !ok {
			break
		}
		if _, err := L.GetInfo("Sl", dbg, lua.LNil); err != nil || dbg.CurrentLine < 0 || dbg.What == "Go" {
			continue
		}
		t.RawSetString("source", lua.LString("@"+chunk))
		t.RawSetString("line", lua.LNumber(dbg.CurrentLine))
		break
	}
	L.Push(t)
	return 1
}

func cmdScriptLoad(c *Conn, args [][]byte) {
	digest, _, bad := c.s.scripts().load(string(args[2]))
	c.FailIf(bad != "", bad)
	c.WriteBulkString(digest)
}

func cmdScriptExists(c *Conn, args [][]byte) {
	c.WriteArray(len(args) - 2)
	for _, a := range args[2:] {
		c.writeBool(c.s.lua != nil && c.s.lua.scripts.has(c.s.lua.digest(a)))
	}
}

func cmdScriptFlush(c *Conn, args [][]byte) {
	if len(args) > 3 || len(args) == 3 && !is(args[2], "sync") && !is(args[2], "async") {
		c.Fail("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	if c.s.lua != nil {
		c.s.lua.scripts = dict[*script]{}
	}
	c.writeOK()
}
