package engine

import (
	"bytes"
	"math"
	"time"
)

// side parses LEFT or RIGHT, or writes the error.
func (c *Conn) side(b []byte) (left, ok bool) {
	switch {
	case is(b, "left"):
		return true, true
	case is(b, "right"):
		return false, true
	}
	c.WriteError(errSyntax)
	return false, false
}

func cmdLmove(c *Conn, args [][]byte) {
	from, ok := c.side(args[3])
	if !ok {
		return
	}
	to, ok := c.side(args[4])
	if ok {
		c.lmove(args[1], args[2], from, to)
	}
}

func cmdRpoplpush(c *Conn, args [][]byte) { c.lmove(args[1], args[2], false, true) }

// lmove moves one element, if there is any.
func (c *Conn) lmove(source, dest []byte, from, to bool) {
	o, ok := c.findKind(source, kindList)
	if !ok {
		return
	}
	if o == nil {
		c.WriteNull()
		return
	}
	if _, ok := c.findKind(dest, kindList); ok {
		c.WriteBulk(c.moveOne(source, dest, o, from, to))
	}
}

func (c *Conn) moveOne(source, dest []byte, o *object, from, to bool) []byte {
	b := o.list().pop(from)
	if bytes.Equal(source, dest) {
		o.list().push(b, to)
	} else {
		d := c.listAt(dest)
		d.list().push(b, to)
		c.dropEmpty(source, o)
		c.s.touch(c.db, view(source))
	}
	c.changed(dest)
	return b
}

func cmdBlpop(c *Conn, args [][]byte) { c.bpop(args, true) }
func cmdBrpop(c *Conn, args [][]byte) { c.bpop(args, false) }

func sideName(left bool) []byte {
	if left {
		return []byte("LEFT")
	}
	return []byte("RIGHT")
}

func (c *Conn) bpop(args [][]byte, left bool) {
	keys := args[1 : len(args)-1]
	until, ok := c.timeout(args[len(args)-1])
	if !ok {
		return
	}
	name := []byte("RPOP")
	if left {
		name = []byte("LPOP")
	}
	c.serveFirst(keys, kindList, blockWait{until, c.MayBlock(), c.WriteNullArray}, func(key []byte, o *object) {
		c.WriteArray(2)
		c.WriteBulk(key)
		c.WriteBulk(c.popOne(key, o, left))
		c.s.rewrite(name, key)
	})
}

func cmdBlmove(c *Conn, args [][]byte) {
	from, ok := c.side(args[3])
	if !ok {
		return
	}
	to, ok := c.side(args[4])
	if !ok {
		return
	}
	if until, ok := c.timeout(args[5]); ok {
		c.blmove(args, from, to, until)
	}
}

func cmdBrpoplpush(c *Conn, args [][]byte) {
	if until, ok := c.timeout(args[3]); ok {
		c.blmove(args, false, true, until)
	}
}

func (c *Conn) blmove(args [][]byte, from, to bool, until time.Time) {
	dest := bytes.Clone(args[2])
	c.serveFirst(args[1:2], kindList, blockWait{until, c.MayBlock(), c.WriteNull}, func(key []byte, o *object) {
		if d := c.s.find(c.db, view(dest)); d != nil && d.kind != kindList {
			c.WriteError(wrongType)
			return
		}
		c.WriteBulk(c.moveOne(key, dest, o, from, to))
		c.s.rewrite([]byte("LMOVE"), key, dest, sideName(from), sideName(to))
	})
}

// popRequest is the arguments of LMPOP, BLMPOP, ZMPOP and BZMPOP.
type popRequest struct {
	keys  [][]byte
	first bool // from the left, or the lowest scores
	count int64
}

// parsePops parses "numkeys key … where [COUNT n]", or writes the error.
func (c *Conn) parsePops(args [][]byte, first, last string) (r popRequest, ok bool) {
	n, ok := parseInt(args[0])
	if !ok || n <= 0 {
		c.WriteError("ERR numkeys should be greater than 0")
		return r, false
	}
	if n >= int64(len(args)-1) {
		c.WriteError(errSyntax)
		return r, false
	}
	r.keys, r.count = args[1:1+n], 1
	rest := args[1+n:]
	r.first = is(rest[0], first)
	if !r.first && !is(rest[0], last) {
		c.WriteError(errSyntax)
		return r, false
	}
	for i := 1; i < len(rest); i += 2 {
		if i > 1 || !is(rest[i], "count") || i+1 == len(rest) {
			c.WriteError(errSyntax)
			return r, false
		}
		if r.count, ok = parseInt(rest[i+1]); !ok || r.count <= 0 {
			c.WriteError("ERR count should be greater than 0")
			return r, false
		}
	}
	return r, true
}

func cmdLmpop(c *Conn, args [][]byte)  { c.mpop(args[1:], "left", "right", c.lmpop) }
func cmdBlmpop(c *Conn, args [][]byte) { c.bmpop(args, "left", "right", c.lmpop) }
func cmdZmpop(c *Conn, args [][]byte)  { c.mpop(args[1:], "min", "max", c.zmpop) }
func cmdBzmpop(c *Conn, args [][]byte) { c.bmpop(args, "min", "max", c.zmpop) }

// popper executes a popRequest, and waits until an instant if it may block.
type popper func(r popRequest, until time.Time, block bool)

func (c *Conn) mpop(args [][]byte, first, last string, pop popper) {
	if r, ok := c.parsePops(args, first, last); ok {
		pop(r, time.Time{}, false)
	}
}

func (c *Conn) bmpop(args [][]byte, first, last string, pop popper) {
	r, ok := c.parsePops(args[2:], first, last)
	if !ok {
		return
	}
	if until, ok := c.timeout(args[1]); ok {
		pop(r, until, c.MayBlock())
	}
}

func (c *Conn) lmpop(r popRequest, until time.Time, block bool) {
	c.serveFirst(r.keys, kindList, blockWait{until, block, c.WriteNullArray}, func(key []byte, o *object) {
		n := min(r.count, int64(o.list().len()))
		c.WriteArray(2)
		c.WriteBulk(key)
		c.popMany(key, o, r.first, n)
		name := []byte("RPOP")
		if r.first {
			name = []byte("LPOP")
		}
		c.s.rewrite(name, key, itob(n))
	})
}

func cmdLpos(c *Conn, args [][]byte) {
	rank, count, limit := int64(1), int64(-1), int64(0)
	for i := 3; i < len(args); i += 2 {
		if i+1 == len(args) {
			c.WriteError(errSyntax)
			return
		}
		n, ok := int64(0), false
		switch {
		case is(args[i], "rank"):
			if rank, ok = c.integer(args[i+1]); !ok {
				return
			}
			if rank == 0 {
				c.WriteError("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... " +
					"or use negative to start from the end of the list")
				return
			}
			continue
		case is(args[i], "count"):
			n, ok = parseInt(args[i+1])
			count = n
		case is(args[i], "maxlen"):
			n, ok = parseInt(args[i+1])
			limit = n
		default:
			c.WriteError(errSyntax)
			return
		}
		if !ok || n < 0 {
			c.WriteError("ERR " + string(bytes.ToUpper(args[i])) + " can't be negative")
			return
		}
	}
	o, ok := c.findKind(args[1], kindList)
	if !ok {
		return
	}
	var found []int
	if o != nil {
		found = o.list().positions(args[2], rank, max(count, 0)+int64(bit(count < 0)), limit)
	}
	switch {
	case count >= 0:
		c.WriteArray(len(found))
		for _, i := range found {
			c.WriteInt(int64(i))
		}
	case len(found) > 0:
		c.WriteInt(int64(found[0]))
	default:
		c.WriteNull()
	}
}

// positions are the indexes of b from its rank-th occurrence on, from the end if rank is
// negative; count and limit (of comparisons) zero: all.
func (l *list) positions(b []byte, rank, count, limit int64) []int {
	var found []int
	n := l.len()
	skip, back := rank-1, rank < 0
	if back {
		skip = -(rank + 1)
	}
	if rank == math.MinInt64 { // negating it overflows in Redis too
		skip = 0
	}
	for i := range n {
		at := i
		if back {
			at = n - 1 - i
		}
		if limit > 0 && int64(i) >= limit {
			break
		}
		if !bytes.Equal(l.at(at), b) {
			continue
		}
		if skip--; skip >= 0 {
			continue
		}
		found = append(found, at)
		if int64(len(found)) == count {
			break
		}
	}
	return found
}
