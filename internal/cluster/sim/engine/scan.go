package engine

import (
	"math"
	"strconv"
	"strings"
)

// scanOptions are the options of SCAN, HSCAN, SSCAN and ZSCAN.
type scanOptions struct {
	cursor  uint64
	count   int
	pattern string
	kind    string // TYPE, SCAN only
}

// parseScan parses the options after the cursor.
func (c *Conn) parseScan(cursor uint64, args [][]byte, keys bool) scanOptions {
	o := scanOptions{cursor: cursor, count: 10, pattern: "*"}
	for i := 0; i < len(args); i += 2 {
		switch {
		case i+1 < len(args) && is(args[i], "count"):
			n := c.integer(args[i+1])
			c.FailIf(n < 1, errSyntax)
			o.count = int(min(n, 1<<30))
		case i+1 < len(args) && is(args[i], "match"):
			o.pattern = string(args[i+1])
		case i+1 < len(args) && is(args[i], "type") && keys:
			o.kind = string(args[i+1])
		default:
			c.Fail(errSyntax)
		}
	}
	return o
}

func (c *Conn) cursor(b []byte) uint64 {
	// As C's strtoul: a sign is allowed, a negative number counts from 2^64, and an empty
	// string is zero.
	text := cString(b)
	if text == "" {
		return 0
	}
	digits := strings.TrimLeft(text, "+-")
	n, err := strconv.ParseUint(digits, 10, 64)
	c.FailIf(err != nil || len(text)-len(digits) > 1, "ERR invalid cursor")
	if text[0] == '-' {
		n = -n
	}
	return n
}

// scan continues after a cursor, which is the sequence number of the last insertion that
// was returned: an element that stays is returned once.
func scan[V any](d *dict[V], o scanOptions, visit func(key string, v V)) (next uint64) {
	for i := d.after(o.cursor); i < len(d.list); i++ {
		e := &d.list[i]
		if !e.live {
			continue
		}
		if match(o.pattern, e.key) {
			visit(e.key, e.val)
		}
		if o.count--; o.count <= 0 && i+1 < len(d.list) {
			return e.seq
		}
	}
	return 0
}

func (c *Conn) writeScan(next uint64, found []string) {
	c.Write([]any{strconv.FormatUint(next, 10), found})
}

func cmdScan(c *Conn, args [][]byte) {
	o := c.parseScan(c.cursor(args[1]), args[2:], true)
	var found, over []string
	next := scan(&c.s.dbs[c.db].keys, o, func(key string, v *object) {
		switch {
		case c.s.expired(v):
			over = append(over, key)
		case o.kind == "" || is([]byte(o.kind), v.kind.String()):
			found = append(found, key)
		}
	})
	for _, key := range over {
		c.s.find(c.db, key)
	}
	c.writeScan(next, found)
}

// scanElements implements HSCAN, SSCAN and ZSCAN. A small collection is returned at once, in the order of sorted (nil:
// of insertion); text is the text of an element's value (nil: there is none).
func scanElements[V any](
	c *Conn, args [][]byte, k kind, in func(*object) *dict[V], sorted func(*object) []string, text func(V) string,
) {
	cursor := c.cursor(args[2])
	o := c.findKind(args[1], k)
	if o == nil {
		c.writeScan(0, nil)
		return
	}
	opts := c.parseScan(cursor, args[3:], false)
	var found []string
	add := func(name string, v V) {
		if found = append(found, name); text != nil {
			found = append(found, text(v))
		}
	}
	switch {
	case o.raw:
	case sorted == nil:
		opts.cursor, opts.count = 0, math.MaxInt
	default:
		for _, name := range sorted(o) {
			if match(opts.pattern, name) {
				v, _ := in(o).get(name)
				add(name, v)
			}
		}
		c.writeScan(0, found)
		return
	}
	next := scan(in(o), opts, add)
	c.writeScan(next, found)
}
