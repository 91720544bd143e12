package engine

import (
	"bytes"
	"math"
	"strconv"
)

func itob(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func newString(b []byte) *object {
	return &object{kind: kindString, expires: never, str: bytes.Clone(b)}
}

// setOptions are the options of SET and GETEX.
type setOptions struct {
	nx, xx, get, keepTTL, persist bool
	unit                          string // EX, PX, EXAT or PXAT in lower case; "": no expiry
	value                         []byte
}

// parseSetOptions parses them.
func (c *Conn) parseSetOptions(args [][]byte, getex bool) (o setOptions) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		timed := o.unit != "" || o.keepTTL || o.persist
		unit := ""
		for _, u := range []string{"ex", "px", "exat", "pxat"} {
			if is(a, u) {
				unit = u
			}
		}
		switch {
		case !getex && is(a, "nx") && !o.xx:
			o.nx = true
		case !getex && is(a, "xx") && !o.nx:
			o.xx = true
		case !getex && is(a, "get"):
			o.get = true
		case !getex && is(a, "keepttl") && o.unit == "":
			o.keepTTL = true
		case getex && is(a, "persist") && o.unit == "":
			o.persist = true
		case unit != "" && !timed && i+1 < len(args):
			i++
			o.unit, o.value = unit, args[i]
		default:
			c.Fail(errSyntax)
		}
	}
	return o
}

// deadline converts a time in a unit to an expiry in Unix milliseconds.
func (c *Conn) deadline(o setOptions, command string) int64 {
	n := c.integer(o.value)
	invalid := n <= 0
	if o.unit[0] == 'e' {
		invalid = invalid || n > math.MaxInt64/1000
		n *= 1000
	}
	if len(o.unit) == 2 {
		invalid = invalid || n > math.MaxInt64-c.s.ms
		n += c.s.ms
	}
	if invalid {
		c.Fail("ERR invalid expire time in '" + command + "' command")
	}
	return n
}

func cmdSet(c *Conn, args [][]byte) {
	c.setString(args, args[2], c.parseSetOptions(args[3:], false), "set")
}

// setString implements SET with all its options; args[1] is the key.
func (c *Conn) setString(args [][]byte, value []byte, o setOptions, command string) {
	key, at := args[1], int64(never)
	if o.unit != "" {
		at = c.deadline(o, command)
	}
	old := c.find(key)
	if o.get {
		c.FailIf(old != nil && old.kind != kindString, wrongType)
		c.writeString(old)
	}
	if o.nx && old != nil || o.xx && old == nil {
		if !o.get {
			c.WriteNull()
		}
		return
	}
	c.overwrite(key, value, old, at, o.keepTTL)
	if !o.get {
		c.writeOK()
	}
	if o.unit != "" {
		c.s.rewrite([]byte("SET"), key, value, []byte("PXAT"), itob(at))
	} else if o.get {
		c.s.rewrite(withoutGet(args)...)
	}
}

// withoutGet is SET … GET as it is propagated.
func withoutGet(args [][]byte) [][]byte {
	out := append([][]byte{}, args[:3]...)
	for _, a := range args[3:] {
		if !is(a, "get") {
			out = append(out, a)
		}
	}
	return out
}

// overwrite sets key to a string. The memory of an existing string is reused.
func (c *Conn) overwrite(key, value []byte, old *object, at int64, keepTTL bool) {
	if keepTTL && old != nil {
		at = old.expires
	}
	if old != nil && old.kind == kindString {
		old.str = append(old.str[:0], value...)
		old.raw, old.plain = false, false
		if at != old.expires {
			c.s.setExpiry(c.db, key, old, at)
		}
	} else {
		o := newString(value)
		o.expires = at
		c.s.store(c.db, key, o)
	}
	c.changed(key)
}

func (c *Conn) writeString(o *object) {
	if o == nil {
		c.WriteNull()
		return
	}
	c.WriteBulk(o.str)
}

func cmdSetnx(c *Conn, args [][]byte) {
	if c.find(args[1]) != nil {
		c.WriteInt(0)
		return
	}
	c.overwrite(args[1], args[2], nil, never, false)
	c.WriteInt(1)
}

func cmdSetex(c *Conn, args [][]byte) {
	c.setString(args, args[3], setOptions{unit: "ex", value: args[2]}, "setex")
}

func cmdPsetex(c *Conn, args [][]byte) {
	c.setString(args, args[3], setOptions{unit: "px", value: args[2]}, "psetex")
}

func cmdGet(c *Conn, args [][]byte, o *object) {
	c.writeString(o)
}

func cmdGetset(c *Conn, args [][]byte, o *object) {
	c.writeString(o)
	c.overwrite(args[1], args[2], o, never, false)
	c.s.rewrite([]byte("SET"), args[1], args[2])
}

func cmdGetdel(c *Conn, args [][]byte, o *object) {
	c.writeString(o)
	if o != nil {
		c.delete(args[1])
		c.s.rewrite([]byte("DEL"), args[1])
	}
}

func cmdGetex(c *Conn, args [][]byte) {
	opts := c.parseSetOptions(args[2:], true)
	o := c.findKind(args[1], kindString)
	if o == nil {
		c.WriteNull()
		return
	}
	at := int64(never)
	if opts.unit != "" {
		at = c.deadline(opts, "getex")
	}
	c.WriteBulk(o.str)
	switch {
	case opts.unit != "" && at <= c.s.ms:
		c.delete(args[1])
		c.s.rewrite([]byte("DEL"), args[1])
	case opts.unit != "":
		c.s.setExpiry(c.db, args[1], o, at)
		c.changed(args[1])
		c.s.rewrite([]byte("PEXPIREAT"), args[1], itob(at))
	case opts.persist && o.expires != never:
		c.s.setExpiry(c.db, args[1], o, never)
		c.changed(args[1])
		c.s.rewrite([]byte("PERSIST"), args[1])
	}
}

func cmdMget(c *Conn, args [][]byte) {
	c.WriteArray(len(args) - 1)
	for _, key := range args[1:] {
		if o := c.find(key); o != nil && o.kind == kindString {
			c.WriteBulk(o.str)
		} else {
			c.WriteNull()
		}
	}
}

func cmdMset(c *Conn, args [][]byte) { c.mset(args, false, "mset") }

func cmdMsetnx(c *Conn, args [][]byte) { c.mset(args, true, "msetnx") }

func (c *Conn) mset(args [][]byte, nx bool, name string) {
	c.FailIf(len(args)%2 == 0, wrongArgs(name))
	for i := 1; nx && i < len(args); i += 2 {
		if c.find(args[i]) != nil {
			c.WriteInt(0)
			return
		}
	}
	for i := 1; i < len(args); i += 2 {
		c.overwrite(args[i], args[i+1], c.s.find(c.db, view(args[i])), never, false)
	}
	if nx {
		c.WriteInt(1)
	} else {
		c.writeOK()
	}
}

const errTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"

func cmdAppend(c *Conn, args [][]byte, o *object) {
	if o == nil {
		o = newString(args[2])
		c.s.store(c.db, args[1], o)
	} else {
		c.FailIf(len(o.str)+len(args[2]) > maxBulk, errTooLong)
		o.str = append(o.str, args[2]...)
		o.raw = true
	}
	c.changed(args[1])
	c.WriteInt(int64(len(o.str)))
}

func cmdSetrange(c *Conn, args [][]byte) {
	offset := c.integer(args[2])
	c.FailIf(offset < 0, "ERR offset is out of range")
	o := c.findKind(args[1], kindString)
	if len(args[3]) == 0 {
		c.WriteInt(int64(o.size()))
		return
	}
	c.FailIf(offset > maxBulk || offset+int64(len(args[3])) > maxBulk, errTooLong)
	o = c.grown(args[1], o, int(offset)+len(args[3]))
	copy(o.str[offset:], args[3])
	c.changed(args[1])
	c.WriteInt(int64(len(o.str)))
}

// grown extends the string at key to at least n bytes; o is nil if there is none.
func (c *Conn) grown(key []byte, o *object, n int) *object {
	if o == nil {
		o = newString(nil)
		c.s.store(c.db, key, o)
	}
	if missing := n - len(o.str); missing > 0 {
		o.str = append(o.str, make([]byte, missing)...)
	}
	o.raw = true
	return o
}

func cmdGetrange(c *Conn, args [][]byte) {
	start, end, o := c.findRange(args, kindString)
	if o == nil {
		c.WriteBulk(nil)
		return
	}
	if start < 0 && end < 0 && start > end {
		c.WriteBulk(nil)
		return
	}
	n := int64(len(o.str))
	if end < 0 { // Redis returns the first byte if the end is before the string
		end = max(end+n, 0)
	}
	from, to := span(start, end, len(o.str))
	c.WriteBulk(o.str[from:to])
}
