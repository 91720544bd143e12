package engine

import (
	"time"

	"github.com/yuin/gopher-lua/ast"

	lua "github.com/yuin/gopher-lua"
)

const (
	errBusy   = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	errKilled = "ERR Script killed by user with SCRIPT KILL..."
	errWrites = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait " +
		"the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
)

// busyScript is a script that does not end. A script takes no time here, so only one loop without an end is known:
// while true do end. The server is busy at once, not after busy-reply-threshold.
type busyScript struct {
	caller *Conn // waits for the reply
	reply  string
	wrote  bool
}

// endlessName is the global function that stands for the loop. No script can name it.
const endlessName = "while true do end"

// rewriteEndless replaces the loop by a call of that function.
func rewriteEndless(s ast.Stmt) ast.Stmt {
	loop, ok := s.(*ast.WhileStmt)
	if !ok || len(loop.Stmts) > 0 {
		return s
	}
	if _, always := loop.Condition.(*ast.TrueExpr); !always {
		return s
	}
	name, call := &ast.IdentExpr{Value: endlessName}, &ast.FuncCallExpr{}
	name.SetLine(loop.Line())
	call.SetLine(loop.Line())
	call.Func = name
	stmt := &ast.FuncCallStmt{Expr: call}
	stmt.SetLine(loop.Line())
	return stmt
}

// endless ends the script with the error that it has when it is killed.
func (in *interpreter) endless(L *lua.LState) int {
	in.endlessly = true
	t := L.NewTable()
	t.RawSetString("err", lua.LString(errKilled))
	L.Error(t, 1)
	return 0
}

// keepRunning makes the server busy with a script of c that does not end. In a transaction it is killed at once.
func (in *interpreter) keepRunning(c *Conn, reply string) {
	c.FailIf(!c.MayBlock(), reply)
	c.s.busy = &busyScript{caller: c, reply: reply, wrote: in.wrote}
	c.Block(time.Time{}, nil)
}

const errLoading = "LOADING Redis is loading the dataset in memory"

// SetLoading makes the server reply as while it reads its data from disk: most commands are refused. Its data are there
// all the same.
func (s *Server) SetLoading(loads bool) { s.loads = loads }

// Loading reports whether the server replies as while it reads its data from disk.
func (s *Server) Loading() bool { return s.loads }

// Busy reports whether a script runs that does not end.
func (s *Server) Busy() bool { return s.busy != nil }

func cmdScriptKill(c *Conn, _ [][]byte) {
	b := c.s.busy
	switch {
	case b == nil:
		c.Fail("NOTBUSY No scripts in execution right now.")
	case b.wrote:
		c.Fail(errWrites)
	}
	c.s.busy = nil
	c.writeOK()
	if b.caller.wait != nil { // it has not closed the connection
		b.caller.Unblock()
		b.caller.WriteError(b.reply)
	}
}
