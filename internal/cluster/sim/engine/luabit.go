package engine

import (
	"fmt"
	"math"
	"math/bits"

	lua "github.com/yuin/gopher-lua"
)

// toBits is a number modulo 2^32, as in Lua BitOp.
func toBits(L *lua.LState, i int) uint32 {
	f := math.RoundToEven(float64(checkNumber(L, i)))
	return uint32(int64(math.Mod(f, 1<<32)))
}

// bitLibrary are the functions of Lua BitOp.
func bitLibrary() map[string]lua.LGFunction {
	push := func(L *lua.LState, n uint32) int {
		L.Push(lua.LNumber(int32(n)))
		return 1
	}
	fold := func(f func(a, b uint32) uint32) lua.LGFunction {
		return func(L *lua.LState) int {
			n := toBits(L, 1)
			for i := 2; i <= L.GetTop(); i++ {
				n = f(n, toBits(L, i))
			}
			return push(L, n)
		}
	}
	one := func(f func(a uint32) uint32) lua.LGFunction {
		return func(L *lua.LState) int { return push(L, f(toBits(L, 1))) }
	}
	shift := func(f func(a uint32, n int) uint32) lua.LGFunction {
		return func(L *lua.LState) int { return push(L, f(toBits(L, 1), int(toBits(L, 2)&31))) }
	}
	return map[string]lua.LGFunction{
		"band":    fold(func(a, b uint32) uint32 { return a & b }),
		"bor":     fold(func(a, b uint32) uint32 { return a | b }),
		"bxor":    fold(func(a, b uint32) uint32 { return a ^ b }),
		"tobit":   one(func(a uint32) uint32 { return a }),
		"bnot":    one(func(a uint32) uint32 { return ^a }),
		"bswap":   one(bits.ReverseBytes32),
		"lshift":  shift(func(a uint32, n int) uint32 { return a << n }),
		"rshift":  shift(func(a uint32, n int) uint32 { return a >> n }),
		"arshift": shift(func(a uint32, n int) uint32 { return uint32(int32(a) >> n) }),
		"rol":     shift(bits.RotateLeft32),
		"ror":     shift(func(a uint32, n int) uint32 { return bits.RotateLeft32(a, -n) }),
		"tohex": func(L *lua.LState) int {
			n, format := 8, "%0*x"
			if L.GetTop() > 1 {
				n = int(int32(toBits(L, 2)))
			}
			if n < 0 {
				n, format = -n, "%0*X"
			}
			n = min(n, 8)
			text := fmt.Sprintf(format, 8, toBits(L, 1))
			L.Push(lua.LString(text[8-n:]))
			return 1
		},
	}
}
