package engine

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// concatName is the function that a..b is rewritten to; no script can name it.
//
// The interpreter formats numbers differently, and scripts use them in keys and values:
// 1.7e+15, not 1700000000000000. Its concatenation operator cannot be replaced, so the
// source is rewritten before it is compiled.
const concatName = "\x00concat"

// modName is the function that a%b is rewritten to: for large numbers Lua 5.1 computes
// another result than the interpreter.
const modName = "\x00mod"

func luaMod(L *lua.LState) int {
	for i := 1; i <= 2; i++ {
		v := L.Get(i)
		if f := L.GetMetaField(v, "__mod"); v.Type() != lua.LTNumber && f != lua.LNil {
			L.Push(f)
			L.Push(L.Get(1))
			L.Push(L.Get(2))
			L.Call(2, 1)
			return 1
		}
	}
	var n [2]float64
	for i := range n {
		v := L.Get(i + 1)
		f, ok := v.(lua.LNumber)
		if s, is := v.(lua.LString); is {
			var x float64
			x, ok = readNumber(string(s), 10)
			f = lua.LNumber(x)
		}
		if !ok {
			L.RaiseError("attempt to perform arithmetic on a %s value", v.Type().String())
		}
		n[i] = float64(f)
	}
	L.Push(lua.LNumber(n[0] - math.Floor(n[0]/n[1])*n[1]))
	return 1
}

func luaConcat(L *lua.LState) int {
	n := L.GetTop()
	plain := true
	for i := 1; i <= n; i++ {
		if t := L.Get(i).Type(); t != lua.LTString && t != lua.LTNumber {
			plain = false
		}
	}
	if plain {
		L.Push(lua.LString(joinValues(L, n)))
		return 1
	}
	// From the right, in pairs, as Lua does with metatables.
	right := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		right = concatTwo(L, L.Get(i), right)
	}
	L.Push(right)
	return 1
}

func joinValues(L *lua.LState, n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		b.WriteString(toText(L.Get(i)))
	}
	return b.String()
}

func concatTwo(L *lua.LState, left, right lua.LValue) lua.LValue {
	bad := left
	for _, v := range []lua.LValue{right, left} {
		if v.Type() != lua.LTString && v.Type() != lua.LTNumber {
			bad = v
			if f := L.GetMetaField(v, "__concat"); f != lua.LNil {
				L.Push(f)
				L.Push(left)
				L.Push(right)
				L.Call(2, 1)
				result := L.Get(-1)
				L.Pop(1)
				return result
			}
		}
	}
	if t := bad.Type(); t != lua.LTString && t != lua.LTNumber {
		L.RaiseError("attempt to concatenate a %s value", t.String())
	}
	return lua.LString(toText(left) + toText(right))
}

func rewriteBlock(stmts []ast.Stmt) {
	for i, s := range stmts {
		stmts[i] = rewriteEndless(s)
		rewriteStmt(stmts[i])
	}
}

func rewriteStmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		rewriteAll(s.Lhs)
		rewriteAll(s.Rhs)
	case *ast.LocalAssignStmt:
		rewriteAll(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = rewrite(s.Expr)
	case *ast.DoBlockStmt:
		rewriteBlock(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = rewrite(s.Condition)
		rewriteBlock(s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = rewrite(s.Condition)
		rewriteBlock(s.Stmts)
	case *ast.IfStmt:
		s.Condition = rewrite(s.Condition)
		rewriteBlock(s.Then)
		rewriteBlock(s.Else)
	case *ast.NumberForStmt:
		s.Init, s.Limit, s.Step = rewrite(s.Init), rewrite(s.Limit), rewrite(s.Step)
		rewriteBlock(s.Stmts)
	case *ast.GenericForStmt:
		rewriteAll(s.Exprs)
		rewriteBlock(s.Stmts)
	case *ast.FuncDefStmt:
		rewriteBlock(s.Func.Stmts)
	case *ast.ReturnStmt:
		rewriteAll(s.Exprs)
	}
}

func rewriteAll(exprs []ast.Expr) {
	for i, e := range exprs {
		exprs[i] = rewrite(e)
	}
}

func rewrite(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.NumberExpr:
		// The interpreter would read 010 as octal.
		if digits := strings.TrimLeft(e.Value, "0"); digits != "" && digits[0] >= '0' && digits[0] <= '9' {
			e.Value = digits
		}
	case *ast.StringConcatOpExpr:
		return rewriteConcat(e)
	case *ast.AttrGetExpr:
		e.Object, e.Key = rewrite(e.Object), rewrite(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			f.Key, f.Value = rewrite(f.Key), rewrite(f.Value)
		}
	case *ast.FuncCallExpr:
		e.Func, e.Receiver = rewrite(e.Func), rewrite(e.Receiver)
		rewriteAll(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = rewrite(e.Lhs), rewrite(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = rewrite(e.Lhs), rewrite(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = rewrite(e.Lhs), rewrite(e.Rhs)
		if e.Operator == "%" {
			return callOf(modName, e, single(e.Lhs), single(e.Rhs))
		}
	case *ast.UnaryMinusOpExpr:
		e.Expr = rewrite(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = rewrite(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = rewrite(e.Expr)
	case *ast.FunctionExpr:
		rewriteBlock(e.Stmts)
	}
	return e
}

// rewriteConcat rewrites a chain of concatenations to one call.
func rewriteConcat(e *ast.StringConcatOpExpr) ast.Expr {
	var parts []ast.Expr
	var rest ast.Expr = e
	for {
		c, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		parts = append(parts, single(rewrite(c.Lhs)))
		rest = c.Rhs
	}
	parts = append(parts, single(rewrite(rest)))
	return callOf(concatName, e, parts...)
}

// callOf is a call of one of our functions in place of an expression.
func callOf(name string, e ast.PositionHolder, args ...ast.Expr) ast.Expr {
	f := &ast.IdentExpr{Value: name}
	call := &ast.FuncCallExpr{Func: f, Args: args, AdjustRet: true}
	for _, n := range []ast.PositionHolder{f, call} {
		n.SetLine(e.Line())
		n.SetLastLine(e.LastLine())
	}
	return call
}

// single reduces an expression with several values to the first.
func single(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}
