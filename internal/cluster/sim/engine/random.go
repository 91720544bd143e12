package engine

import (
	"math"
	"math/rand/v2"
)

// randomCount parses how many random elements to return; negative: with repetition.
func (c *Conn) randomCount(b []byte) int64 {
	n := c.integer(b)
	c.FailIf(n == math.MinInt64,
		"ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
	return n
}

// optionalCount parses the count after a key, 1 if there is none.
func (c *Conn) optionalCount(args [][]byte) int64 {
	c.FailIf(len(args) > 3, errSyntax)
	if len(args) == 2 {
		return 1
	}
	return c.positive(args[2])
}

func cmdHrandfield(c *Conn, args [][]byte) {
	randomElements(c, args, kindHash, "withvalues", (*object).hash, c.WriteBulk)
}

func cmdZrandmember(c *Conn, args [][]byte) {
	randomElements(c, args, kindZSet, "withscores", (*object).scoreDict, c.WriteDouble)
}

func cmdSrandmember(c *Conn, args [][]byte) {
	randomElements(c, args, kindSet, "", (*object).set, nil)
}

// randomElements replies with random elements of a collection: one, or as many as the count says; with their values if
// the arguments have the option.
func randomElements[V any](c *Conn, args [][]byte, k kind, option string, in func(*object) *dict[V], write func(V)) {
	count, values := c.randomOptions(args, option)
	o := c.findKind(args[1], k)
	switch {
	case o == nil && len(args) == 2:
		c.WriteNull()
	case o == nil:
		c.WriteArray(0)
	case len(args) == 2:
		c.WriteBulkString(in(o).any(c.s.random))
	default:
		d := in(o)
		names := pick(d, c.s.random, count)
		c.writePairs(len(names), values, func(i int) string { return names[i] }, func(i int) {
			v, _ := d.get(names[i])
			write(v)
		})
	}
}

// randomOptions parses the count and the option, if the command has one.
func (c *Conn) randomOptions(args [][]byte, option string) (count int64, values bool) {
	if len(args) < 3 {
		return 1, false
	}
	c.FailIf(option == "" && len(args) > 3, errSyntax)
	count = c.randomCount(args[2])
	values = len(args) == 4 && is(args[3], option)
	c.FailIf(len(args) > 3 && !values, errSyntax)
	c.FailIf(values && (count < -math.MaxInt64/2 || count > math.MaxInt64/2), "ERR value is out of range")
	return count, values
}

// writePairs writes n names, optionally each with a value: flat in RESP2, in pairs in RESP3.
func (c *Conn) writePairs(n int, values bool, name func(i int) string, writeValue func(i int)) {
	if values && c.resp == 2 {
		c.WriteArray(2 * n)
	} else {
		c.WriteArray(n)
	}
	for i := range n {
		if values && c.resp == 3 {
			c.WriteArray(2)
		}
		c.WriteBulkString(name(i))
		if values {
			writeValue(i)
		}
	}
}

// pick draws at most count different keys; if count is negative, -count keys with
// repetition, but at most 2^24: Redis would run out of memory.
func pick[V any](d *dict[V], r *rand.Rand, count int64) []string {
	if d.len() == 0 || count == 0 {
		return nil
	}
	if count < 0 {
		names := make([]string, 0, min(-count, 1<<20))
		for count = max(count, -1<<24); count < 0; count++ {
			names = append(names, d.any(r))
		}
		return names
	}
	names := d.names()
	if count >= int64(len(names)) {
		return names
	}
	for i := range count {
		j := i + r.Int64N(int64(len(names))-i)
		names[i], names[j] = names[j], names[i]
	}
	return names[:count]
}
