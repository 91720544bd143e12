package engine

import (
	"math"
	"strconv"
)

func cmdIncr(c *Conn, args [][]byte) { c.incr(args[1], 1) }

func cmdDecr(c *Conn, args [][]byte) { c.incr(args[1], -1) }

func cmdIncrby(c *Conn, args [][]byte) {
	c.incr(args[1], c.integer(args[2]))
}

func cmdDecrby(c *Conn, args [][]byte) {
	n := c.integer(args[2])
	c.FailIf(n == math.MinInt64, "ERR decrement would overflow")
	c.incr(args[1], -n)
}

// sum adds numbers that must not overflow 64 bits.
func (c *Conn) sum(a, b int64) int64 {
	c.FailIf(b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b, "ERR increment or decrement would overflow")
	return a + b
}

func (c *Conn) incr(key []byte, by int64) {
	o := c.findKind(key, kindString)
	n := by
	if o != nil {
		n = c.sum(c.integer(o.str), by)
	} else {
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
	o := c.findKind(key, kindString)
	sum := []byte("0")
	if o != nil {
		sum = o.str
	}
	sum = c.addFloat(sum, args[2], errNotFloat)
	if o == nil {
		o = newString(nil)
		c.s.store(c.db, key, o)
	}
	o.str, o.raw, o.plain = sum, false, true
	c.changed(key)
	c.s.rewrite([]byte("SET"), key, sum, []byte("KEEPTTL"))
	c.WriteBulk(sum)
}

// addFloat adds two numbers with the precision of Redis; notNumber is the error if the first is invalid.
func (c *Conn) addFloat(a, b []byte, notNumber string) []byte {
	x, y := c.extended(a, notNumber), c.extended(b, errNotFloat)
	c.FailIf(x.IsInf() || y.IsInf(), "ERR increment would produce NaN or Infinity")
	return []byte(formatExtended(x.Add(x, y)))
}
