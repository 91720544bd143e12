package engine

import (
	"math/bits"
	"slices"
)

const errBitOffset = "ERR bit offset is not an integer or out of range"

// bitOffset parses a bit offset.
func (c *Conn) bitOffset(b []byte) int {
	n := c.atLeast(0, b, errBitOffset)
	c.FailIf(n>>3 >= maxBulk, errBitOffset)
	return int(n)
}

func cmdGetbit(c *Conn, args [][]byte) {
	n := c.bitOffset(args[2])
	o := c.findKind(args[1], kindString)
	c.WriteInt(int64(bitAt(o, n)))
}

func bitAt(o *object, n int) int {
	if o == nil || n>>3 >= len(o.str) {
		return 0
	}
	return int(o.str[n>>3]>>(7-n&7)) & 1
}

func cmdSetbit(c *Conn, args [][]byte) {
	n := c.bitOffset(args[2])
	c.FailIf(len(args[3]) != 1 || args[3][0] != '0' && args[3][0] != '1', "ERR bit is not an integer or out of range")
	o := c.findKind(args[1], kindString)
	was := bitAt(o, n)
	to := int(args[3][0] - '0')
	changes := o == nil || n>>3 >= len(o.str) || was != to
	o = c.grown(args[1], o, n>>3+1)
	mask := byte(1) << (7 - n&7)
	o.str[n>>3] &^= mask
	if to == 1 {
		o.str[n>>3] |= mask
	}
	if changes {
		c.changed(args[1])
	}
	c.WriteInt(int64(was))
}

// bitRange is a range of bits of a string, both ends included.
type bitRange struct{ from, to int }

// parseBits parses start, end and unit, each of which may be missing: the range is the whole string then, in bytes.
func (c *Conn) parseBits(args [][]byte, o *object) bitRange {
	start, end, unit := int64(0), int64(-1), int64(8)
	if len(args) > 0 {
		start = c.integer(args[0])
	}
	if len(args) > 1 {
		end = c.integer(args[1])
	}
	if len(args) > 2 {
		switch {
		case is(args[2], "bit"):
			unit = 1
		case !is(args[2], "byte"):
			c.Fail(errSyntax)
		}
	}
	size := int64(o.size()) * 8 / unit
	if start < 0 {
		start = max(start+size, 0)
	}
	if end < 0 {
		end = max(end+size, 0)
	}
	start, end = min(start, size), min(end, size-1) // so that neither overflows as a bit offset
	return bitRange{int(start * unit), int(end*unit + unit - 1)}
}

func cmdBitcount(c *Conn, args [][]byte, o *object) {
	if o == nil { // Redis does not check the rest
		c.WriteInt(0)
		return
	}
	c.FailIf(len(args) == 3 || len(args) > 5, errSyntax)
	r := c.parseBits(args[2:], o)
	if len(args) > 3 && bothBehind(args[2], args[3]) {
		c.WriteInt(0)
		return
	}
	n := 0
	for i := r.from; i <= r.to; i++ {
		if i&7 == 0 && i+7 <= r.to {
			n += bits.OnesCount8(o.str[i>>3])
			i += 7
			continue
		}
		n += bitAt(o, i)
	}
	c.WriteInt(int64(n))
}

// bothBehind: both ends count from the end, and the first is behind the second.
func bothBehind(a, b []byte) bool {
	start, _ := parseInt(a)
	end, _ := parseInt(b)
	return start < 0 && end < 0 && start > end
}

func cmdBitpos(c *Conn, args [][]byte) {
	want := c.integer(args[2])
	c.FailIf(want != 0 && want != 1, "ERR The bit argument must be 1 or 0.")
	o := c.findKind(args[1], kindString)
	if o == nil {
		c.WriteInt(-want)
		return
	}
	c.FailIf(len(args) > 6, errSyntax)
	r := c.parseBits(args[3:], o)
	for i := r.from; i <= r.to; i++ {
		if int64(bitAt(o, i)) == want {
			c.WriteInt(int64(i))
			return
		}
	}
	// A string of ones is followed by zeros, unless an end was given.
	if want == 0 && len(args) < 5 && r.from <= r.to {
		c.WriteInt(int64(len(o.str) * 8))
		return
	}
	c.WriteInt(-1)
}

func cmdBitop(c *Conn, args [][]byte) {
	var op func(a, b byte) byte
	switch {
	case is(args[1], "and"):
		op = func(a, b byte) byte { return a & b }
	case is(args[1], "or"):
		op = func(a, b byte) byte { return a | b }
	case is(args[1], "xor"):
		op = func(a, b byte) byte { return a ^ b }
	case is(args[1], "not"):
		c.FailIf(len(args) != 4, "ERR BITOP NOT must be called with a single source key.")
		op = func(a, _ byte) byte { return ^a }
	default:
		c.Fail(errSyntax)
	}
	sources, longest := make([][]byte, 0, len(args)-3), 0
	for _, key := range args[3:] {
		b := c.findKind(key, kindString).text()
		sources = append(sources, b)
		longest = max(longest, len(b))
	}
	if longest == 0 {
		c.delete(args[2])
		c.WriteInt(0)
		return
	}
	c.overwrite(args[2], combine(sources, longest, op), c.s.find(c.db, view(args[2])), never, false)
	if o := c.s.peek(c.db, view(args[2])); o != nil {
		o.raw = true
	}
	c.WriteInt(int64(longest))
}

// combine applies a bit operation; shorter strings are padded with zeros.
func combine(sources [][]byte, n int, op func(a, b byte) byte) []byte {
	out := slices.Grow([]byte(nil), n)[:n]
	at := func(b []byte, i int) byte {
		if i < len(b) {
			return b[i]
		}
		return 0
	}
	for i := range out {
		out[i] = at(sources[0], i)
		if len(sources) == 1 {
			if op(0, 0) == 0xff {
				out[i] = ^out[i]
			}
			continue
		}
		for _, b := range sources[1:] {
			out[i] = op(out[i], at(b, i))
		}
	}
	return out
}
