package engine

import (
	"math"
	"strconv"
)

func cmdIncr(c *Conn, args [][]byte) { c.incr(args[1], 1) }

func cmdDecr(c *Conn, args [][]byte) { c.incr(args[1], -1) }

func cmdIncrby(c *Conn, args [][]byte) {
	if n, ok := c.integer(args[2]); ok {
		c.incr(args[1], n)
	}
}

func cmdDecrby(c *Conn, args [][]byte) {
	n, ok := c.integer(args[2])
	if !ok {
		return
	}
	if n == math.MinInt64 {
		c.WriteError("ERR decrement would overflow")
		return
	}
	c.incr(args[1], -n)
}

// overflows reports whether a sum overflows 64 bits.
func overflows(a, b int64) bool {
	return b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b
}

func (c *Conn) incr(key []byte, by int64) {
	o, ok := c.findKind(key, kindString)
	if !ok {
		return
	}
	var n int64
	if o != nil {
		if n, ok = c.integer(o.str); !ok {
			return
		}
	}
	if overflows(n, by) {
		c.WriteError("ERR increment or decrement would overflow")
		return
	}
	n += by
	if o == nil {
		o = newString(nil)
		c.s.store(c.db, key, o)
	}
	o.str = strconv.AppendInt(o.str[:0], n, 10)
	o.raw, o.plain = false, false
	c.changed(key)
	c.WriteInt(n)
}

func cmdIncrbyfloat(c *Conn, args [][]byte) {
	key := args[1]
	o, ok := c.findKind(key, kindString)
	if !ok {
		return
	}
	sum := []byte("0")
	if o != nil {
		sum = o.str
	}
	if sum, ok = c.addFloat(sum, args[2], errNotFloat); !ok {
		return
	}
	if o == nil {
		o = newString(nil)
		c.s.store(c.db, key, o)
	}
	o.str, o.raw, o.plain = sum, false, true
	c.changed(key)
	c.s.rewrite([]byte("SET"), key, sum, []byte("KEEPTTL"))
	c.WriteBulk(sum)
}

// addFloat adds two numbers with the precision of Redis, or writes the error; notNumber
// if the first is invalid.
func (c *Conn) addFloat(a, b []byte, notNumber string) ([]byte, bool) {
	x, ok := parseExtended(a)
	if !ok {
		c.WriteError(notNumber)
		return nil, false
	}
	y, ok := parseExtended(b)
	if !ok {
		c.WriteError(errNotFloat)
		return nil, false
	}
	if x.IsInf() || y.IsInf() {
		c.WriteError("ERR increment would produce NaN or Infinity")
		return nil, false
	}
	return []byte(formatExtended(x.Add(x, y))), true
}
