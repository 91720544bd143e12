package engine

import (
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

// parseScan parses the options after the cursor, or writes the error.
func (c *Conn) parseScan(args [][]byte, keys bool) (o scanOptions, ok bool) {
	o = scanOptions{count: 10, pattern: "*"}
	for i := 0; i < len(args); i += 2 {
		switch {
		case i+1 < len(args) && is(args[i], "count"):
			n, ok := c.integer(args[i+1])
			if !ok {
				return o, false
			}
			if n < 1 {
				c.WriteError(errSyntax)
				return o, false
			}
			o.count = int(min(n, 1<<30))
		case i+1 < len(args) && is(args[i], "match"):
			o.pattern = string(args[i+1])
		case i+1 < len(args) && is(args[i], "type") && keys:
			o.kind = string(args[i+1])
		default:
			c.WriteError(errSyntax)
			return o, false
		}
	}
	return o, true
}

func (c *Conn) cursor(b []byte) (uint64, bool) {
	// As C's strtoul: a sign is allowed, a negative number counts from 2^64, and an empty
	// string is zero.
	text := cString(b)
	if text == "" {
		return 0, true
	}
	digits := strings.TrimLeft(text, "+-")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || len(text)-len(digits) > 1 {
		c.WriteError("ERR invalid cursor")
		return 0, false
	}
	if text[0] == '-' {
		n = -n
	}
	return n, true
}

// scan continues after a cursor, which is the sequence number of the last insertion that
// was returned: an element that stays is returned once. whole: all at once, as Redis does
// with a small collection.
func scan[V any](d *dict[V], o scanOptions, whole bool, visit func(key string, v V)) (next uint64) {
	if whole {
		o.cursor = 0 // in place of the argument
	}
	for i := d.after(o.cursor); i < len(d.list); i++ {
		e := &d.list[i]
		if !e.live {
			continue
		}
		if match(o.pattern, e.key) {
			visit(e.key, e.val)
		}
		if o.count--; o.count <= 0 && !whole && i+1 < len(d.list) {
			return e.seq
		}
	}
	return 0
}

func (c *Conn) writeScan(next uint64, found []string) {
	c.WriteArray(2)
	c.WriteBulkString(strconv.FormatUint(next, 10))
	c.WriteArray(len(found))
	for _, f := range found {
		c.WriteBulkString(f)
	}
}

func cmdScan(c *Conn, args [][]byte) {
	cursor, ok := c.cursor(args[1])
	if !ok {
		return
	}
	o, ok := c.parseScan(args[2:], true)
	if !ok {
		return
	}
	o.cursor = cursor
	var found, over []string
	next := scan(&c.s.dbs[c.db].keys, o, false, func(key string, v *object) {
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

// scanElements implements HSCAN, SSCAN and ZSCAN.
func (c *Conn) scanElements(args [][]byte, k kind, visit func(o *object, opts scanOptions) (uint64, []string)) {
	cursor, ok := c.cursor(args[2])
	if !ok {
		return
	}
	o, ok := c.findKind(args[1], k)
	if !ok {
		return
	}
	if o == nil {
		c.writeScan(0, nil)
		return
	}
	opts, ok := c.parseScan(args[3:], false)
	if !ok {
		return
	}
	opts.cursor = cursor
	c.writeScan(visit(o, opts))
}
