package engine

import "math"

func cmdExpire(c *Conn, args [][]byte)    { c.expire(args, 1000, c.s.ms, "expire") }
func cmdPexpire(c *Conn, args [][]byte)   { c.expire(args, 1, c.s.ms, "pexpire") }
func cmdExpireat(c *Conn, args [][]byte)  { c.expire(args, 1000, 0, "expireat") }
func cmdPexpireat(c *Conn, args [][]byte) { c.expire(args, 1, 0, "pexpireat") }

// conditions are the options NX, XX, GT and LT.
type conditions struct{ nx, xx, gt, lt bool }

// add adds an option; false: it is another one.
func (o *conditions) add(arg []byte) bool {
	switch {
	case is(arg, "nx"):
		o.nx = true
	case is(arg, "xx"):
		o.xx = true
	case is(arg, "gt"):
		o.gt = true
	case is(arg, "lt"):
		o.lt = true
	default:
		return false
	}
	return true
}

// parseExpireOptions parses NX, XX, GT and LT.
func (c *Conn) parseExpireOptions(args [][]byte) (o conditions) {
	for _, a := range args {
		if !o.add(a) {
			c.Fail("ERR Unsupported option " + cString(a))
		}
	}
	c.FailIf(o.nx && (o.xx || o.gt || o.lt), "ERR NX and XX, GT or LT options at the same time are not compatible")
	c.FailIf(o.gt && o.lt, "ERR GT and LT options at the same time are not compatible")
	return o
}

// allow reports whether an expiry may be replaced; no expiry counts as the latest.
func (o conditions) allow(now, then int64) bool {
	switch {
	case o.nx && now != never, o.xx && now == never:
		return false
	case o.gt && (now == never || then <= now):
		return false
	case o.lt && now != never && then >= now:
		return false
	}
	return true
}

// expire implements the EXPIRE family; base is the start of the time, in milliseconds.
func (c *Conn) expire(args [][]byte, unit, base int64, command string) {
	o := c.parseExpireOptions(args[3:])
	at := c.integer(args[2])
	if at > math.MaxInt64/unit || at < math.MinInt64/unit || at*unit > math.MaxInt64-base {
		c.Fail("ERR invalid expire time in '" + command + "' command")
	}
	at = max(at*unit+base, never+1)
	key := args[1]
	v := c.find(key)
	if v == nil || !o.allow(v.expires, at) {
		c.WriteInt(0)
		return
	}
	if at <= c.s.ms && !c.s.replica && !c.s.applying {
		c.delete(key)
		c.s.rewrite([]byte("DEL"), key)
	} else {
		c.s.setExpiry(c.db, key, v, at)
		c.changed(key)
		c.s.rewrite([]byte("PEXPIREAT"), key, itob(at))
	}
	c.WriteInt(1)
}

func cmdPersist(c *Conn, args [][]byte) {
	o := c.find(args[1])
	if o == nil || o.expires == never {
		c.WriteInt(0)
		return
	}
	c.s.setExpiry(c.db, args[1], o, never)
	c.changed(args[1])
	c.WriteInt(1)
}

func cmdTtl(c *Conn, args [][]byte)         { c.ttl(args[1], c.s.ms, 1000) }
func cmdPttl(c *Conn, args [][]byte)        { c.ttl(args[1], c.s.ms, 1) }
func cmdExpiretime(c *Conn, args [][]byte)  { c.ttl(args[1], 0, 1000) }
func cmdPexpiretime(c *Conn, args [][]byte) { c.ttl(args[1], 0, 1) }

// ttl writes when a key expires, counted from base; -1: never, -2: no such key.
func (c *Conn) ttl(key []byte, base, unit int64) {
	o := c.find(key)
	switch {
	case o == nil:
		c.WriteInt(-2)
	case o.expires == never:
		c.WriteInt(-1)
	case unit == 1:
		c.WriteInt(max(o.expires-base, 0))
	default:
		c.WriteInt(int64((uint64(max(o.expires-base, 0)) + 500) / 1000))
	}
}
