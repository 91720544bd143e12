package engine

import (
	"bytes"
	"math"
	"time"
)

// side parses LEFT or RIGHT.
func (c *Conn) side(b []byte) (left bool) {
	left = is(b, "left")
	c.FailIf(!left && !is(b, "right"), errSyntax)
	return left
}

func cmdLmove(c *Conn, args [][]byte) { c.lmove(args[1], args[2], c.side(args[3]), c.side(args[4])) }

func cmdRpoplpush(c *Conn, args [][]byte) { c.lmove(args[1], args[2], false, true) }

// lmove moves one element, if there is any.
func (c *Conn) lmove(source, dest []byte, from, to bool) {
	o := c.findKind(source, kindList)
	if o == nil {
		c.WriteNull()
		return
	}
	c.findKind(dest, kindList)
	c.WriteBulk(c.moveOne(source, dest, o, from, to))
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

// either is the name of a command or of an option, for its propagation.
func either(first bool, a, b string) []byte {
	if first {
		return []byte(a)
	}
	return []byte(b)
}

func bpop(left bool) Command {
	return func(c *Conn, args [][]byte) {
		c.blockingPop(args, kindList, func(key []byte, o *object) {
			c.WriteArray(2)
			c.WriteBulk(key)
			c.WriteBulk(c.popOne(key, o, left))
			c.s.rewrite(either(left, "LPOP", "RPOP"), key)
		})
	}
}

// blockingPop executes a command with keys and a timeout: take replies with an element of the first one that has any.
func (c *Conn) blockingPop(args [][]byte, k kind, take func(key []byte, o *object)) {
	last := len(args) - 1
	c.serveFirst(args[1:last], k, blockWait{c.timeout(args[last]), c.MayBlock(), c.WriteNullArray}, take)
}

func cmdBlmove(c *Conn, args [][]byte) {
	c.blmove(args, c.side(args[3]), c.side(args[4]), c.timeout(args[5]))
}

func cmdBrpoplpush(c *Conn, args [][]byte) { c.blmove(args, false, true, c.timeout(args[3])) }

func (c *Conn) blmove(args [][]byte, from, to bool, until time.Time) {
	dest := bytes.Clone(args[2])
	c.serveFirst(args[1:2], kindList, blockWait{until, c.MayBlock(), c.WriteNull}, func(key []byte, o *object) {
		if d := c.s.find(c.db, view(dest)); d != nil && d.kind != kindList {
			c.WriteError(wrongType)
			return
		}
		c.WriteBulk(c.moveOne(key, dest, o, from, to))
		c.s.rewrite([]byte("LMOVE"), key, dest, either(from, "LEFT", "RIGHT"), either(to, "LEFT", "RIGHT"))
	})
}

// popRequest is the arguments of LMPOP, BLMPOP, ZMPOP and BZMPOP.
type popRequest struct {
	keys  [][]byte
	first bool // from the left, or the lowest scores
	count int64
}

// parsePops parses "numkeys key … where [COUNT n]".
func (c *Conn) parsePops(args [][]byte, first, last string) (r popRequest) {
	n := c.atLeast(1, args[0], errNumkeys)
	c.FailIf(n >= int64(len(args)-1), errSyntax)
	r.keys, r.count = args[1:1+n], 1
	rest := args[1+n:]
	r.first = is(rest[0], first)
	c.FailIf(!r.first && !is(rest[0], last), errSyntax)
	for i := 1; i < len(rest); i += 2 {
		c.FailIf(i > 1 || !is(rest[i], "count") || i+1 == len(rest), errSyntax)
		r.count = c.atLeast(1, rest[i+1], "ERR count should be greater than 0")
	}
	return r
}

const errNumkeys = "ERR numkeys should be greater than 0"

// popper executes a popRequest.
type popper func(c *Conn, r popRequest, w blockWait)

func mpop(first, last string, pop popper) Command {
	return func(c *Conn, args [][]byte) {
		pop(c, c.parsePops(args[1:], first, last), blockWait{null: c.WriteNullArray})
	}
}

func bmpop(first, last string, pop popper) Command {
	return func(c *Conn, args [][]byte) {
		r := c.parsePops(args[2:], first, last)
		pop(c, r, blockWait{c.timeout(args[1]), c.MayBlock(), c.WriteNullArray})
	}
}

func (c *Conn) lmpop(r popRequest, w blockWait) {
	c.serveFirst(r.keys, kindList, w, func(key []byte, o *object) {
		n := min(r.count, int64(o.list().len()))
		c.WriteArray(2)
		c.WriteBulk(key)
		c.popMany(key, o, r.first, n)
		c.s.rewrite(either(r.first, "LPOP", "RPOP"), key, itob(n))
	})
}

func cmdLpos(c *Conn, args [][]byte) {
	rank, count, limit := int64(1), int64(-1), int64(0)
	for i := 3; i < len(args); i += 2 {
		c.FailIf(i+1 == len(args), errSyntax)
		switch {
		case is(args[i], "rank"):
			rank = c.integer(args[i+1])
			c.FailIf(rank == 0, "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "+
				"or use negative to start from the end of the list")
		case is(args[i], "count"):
			count = c.atLeast(0, args[i+1], "ERR COUNT can't be negative")
		case is(args[i], "maxlen"):
			limit = c.atLeast(0, args[i+1], "ERR MAXLEN can't be negative")
		default:
			c.Fail(errSyntax)
		}
	}
	o := c.findKind(args[1], kindList)
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
