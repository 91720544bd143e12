package engine

import (
	"cmp"
	"slices"
	"strings"
)

// bound is an end of a range by score or by member.
type bound struct {
	score     float64
	name      string
	exclusive bool
	infinite  int // of members: -1 before all, 1 after all
}

// limits are both ends; lex: by member.
type limits struct {
	min, max bound
	lex      bool
}

// above reports whether an item is not below the bound.
func (b bound) above(item zitem, lex bool) bool {
	cmp := b.compare(item, lex)
	return cmp > 0 || cmp == 0 && !b.exclusive
}

// below reports whether an item is not above the bound.
func (b bound) below(item zitem, lex bool) bool {
	cmp := b.compare(item, lex)
	return cmp < 0 || cmp == 0 && !b.exclusive
}

func (b bound) compare(item zitem, lex bool) int {
	if !lex {
		return cmp.Compare(item.score, b.score)
	}
	if b.infinite != 0 {
		return -b.infinite
	}
	return strings.Compare(item.name, b.name)
}

// part is the range of items between the limits, as Redis finds it: from the end that is
// returned first. In a range by member with different scores it stops at the first item
// that does not match.
func (l limits) part(items []zitem, rev bool) (from, to int) {
	n := len(items)
	if n == 0 || !l.min.above(items[n-1], l.lex) || !l.max.below(items[0], l.lex) {
		return 0, 0
	}
	if rev {
		for to = n; to > 0 && !l.max.below(items[to-1], l.lex); {
			to--
		}
		for from = to; from > 0 && l.min.above(items[from-1], l.lex); {
			from--
		}
		return from, to
	}
	for from < n && !l.min.above(items[from], l.lex) {
		from++
	}
	for to = from; to < n && l.max.below(items[to], l.lex); {
		to++
	}
	return from, to
}

// parseScoreBound parses a number as strtod does: up to a zero byte, leading white space
// allowed, and an empty string is zero.
func parseScoreBound(b []byte) (bound, bool) {
	var out bound
	if len(b) > 0 && b[0] == '(' {
		out.exclusive = true
		b = b[1:]
	}
	text := strings.TrimLeft(cString(b), " \t\n\v\f\r")
	if text == "" {
		return out, true
	}
	f, ok := parseFloat([]byte(text))
	out.score = f
	return out, ok
}

func parseLexBound(b []byte) (bound, bool) {
	if len(b) == 0 {
		return bound{}, false
	}
	switch {
	case string(b) == "+":
		return bound{infinite: 1}, true
	case string(b) == "-":
		return bound{infinite: -1}, true
	case b[0] == '(':
		return bound{name: string(b[1:]), exclusive: true}, true
	case b[0] == '[':
		return bound{name: string(b[1:])}, true
	}
	return bound{}, false
}

// parseLimits parses both ends.
func (c *Conn) parseLimits(lo, hi []byte, lex bool) (l limits) {
	parse, bad := parseScoreBound, "ERR min or max is not a float"
	if lex {
		parse, bad = parseLexBound, "ERR min or max not valid string range item"
	}
	var okMin, okMax bool
	l.lex = lex
	l.min, okMin = parse(lo)
	l.max, okMax = parse(hi)
	c.FailIf(!okMin || !okMax, bad)
	return l
}

// rangeRequest is the arguments of a command of the ZRANGE family.
type rangeRequest struct {
	by            byte // 'i'ndex, 's'core, 'l'ex
	rev           bool
	scores        bool
	offset, count int64
	store         []byte // destination, or nil
}

func cmdZrange(c *Conn, args [][]byte) {
	c.zrange(args[1], args[2:], rangeRequest{by: 'i'}, true)
}

func cmdZrangestore(c *Conn, args [][]byte) {
	c.zrange(args[2], args[3:], rangeRequest{by: 'i', store: args[1]}, true)
}

// zrangeBy is one of the older commands, whose names say the kind of range.
func zrangeBy(by byte, rev bool) Command {
	return func(c *Conn, args [][]byte) { c.zrange(args[1], args[2:], rangeRequest{by: by, rev: rev}, false) }
}

// parseRange parses the options after both ends; general: of ZRANGE, which select the kind of range.
func (c *Conn) parseRange(args [][]byte, r rangeRequest, general bool) rangeRequest {
	r.count = -1
	limited := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case is(a, "withscores") && r.store == nil:
			r.scores = true
		case is(a, "limit") && i+2 < len(args):
			r.offset, r.count = c.integer(args[i+1]), c.integer(args[i+2])
			limited = true
			i += 2
		case general && is(a, "rev"):
			r.rev = true
		case general && is(a, "bylex"):
			r.by = 'l'
		case general && is(a, "byscore"):
			r.by = 's'
		default:
			c.Fail(errSyntax)
		}
	}
	c.FailIf(limited && r.count != -1 && r.by == 'i',
		"ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	c.FailIf(r.scores && r.by == 'l', "ERR syntax error, WITHSCORES not supported in combination with BYLEX")
	return r
}

func (c *Conn) zrange(key []byte, args [][]byte, r rangeRequest, general bool) {
	r = c.parseRange(args[2:], r, general)
	var start, end int64
	var l limits
	if r.by == 'i' {
		start, end = c.integer(args[0]), c.integer(args[1])
	} else {
		lo, hi := args[0], args[1]
		if r.rev {
			lo, hi = hi, lo
		}
		l = c.parseLimits(lo, hi, r.by == 'l')
	}
	o := c.findKind(key, kindZSet)
	items := slices.Clone(o.items())
	if r.by != 'i' {
		from, to := l.part(items, r.rev)
		items = items[from:to]
	}
	if r.rev {
		slices.Reverse(items)
	}
	if r.by == 'i' {
		from, to := span(start, end, len(items))
		items = items[from:to]
	} else {
		items = limitItems(items, r.offset, r.count)
	}
	if r.store == nil {
		c.writeItems(items, r.scores)
	} else {
		c.storeItems(r.store, items)
	}
}

// limitItems applies LIMIT; a negative offset selects nothing.
func limitItems(items []zitem, offset, count int64) []zitem {
	if offset < 0 || offset >= int64(len(items)) {
		return nil
	}
	items = items[offset:]
	if count >= 0 && count < int64(len(items)) {
		items = items[:count]
	}
	return items
}

// storeItems stores a sorted set at key, or removes the key if there are no items.
func (c *Conn) storeItems(key []byte, items []zitem) {
	o := newZSet()
	for _, item := range items {
		o.setScore(item.name, item.score)
	}
	c.storeResult(key, o)
}

func zcount(lex bool) Command {
	return func(c *Conn, args [][]byte) {
		from, to, _ := c.findLimits(args, lex)
		c.WriteInt(int64(to - from))
	}
}

// findLimits parses KEY MIN MAX after the name of a command and finds the key and the range of its items.
func (c *Conn) findLimits(args [][]byte, lex bool) (from, to int, o *object) {
	l := c.parseLimits(args[2], args[3], lex)
	o = c.findKind(args[1], kindZSet)
	from, to = l.part(o.items(), false)
	return from, to, o
}

func zremrange(lex bool) Command {
	return func(c *Conn, args [][]byte) {
		from, to, o := c.findLimits(args, lex)
		c.removeRange(args[1], o, from, to)
	}
}

func (c *Conn) removeRange(key []byte, o *object, from, to int) {
	if to > from {
		c.dropItems(key, o, from, to)
	}
	c.WriteInt(int64(to - from))
}

func cmdZremrangebyrank(c *Conn, args [][]byte) {
	start, end, o := c.findRange(args, kindZSet)
	from, to := span(start, end, len(o.items()))
	c.removeRange(args[1], o, from, to)
}
