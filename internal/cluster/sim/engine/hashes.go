package engine

import (
	"bytes"
	"math"
	"strconv"
)

// hash is the value of a hash: its fields in order of insertion.
type hash = dict[[]byte]

// Limits of a collection in a listpack.
const (
	packEntries  = 128
	packBytes    = 64
	intsetLength = 512
)

func (o *object) hash() *hash { return o.val.(*hash) }

// hashAt finds the hash at key, or creates it.
func (c *Conn) hashAt(key []byte) *object {
	o := c.findKind(key, kindHash)
	if o == nil {
		o = &object{kind: kindHash, expires: never, val: &hash{}}
		c.s.store(c.db, key, o)
	}
	return o
}

// setField sets a field, and reports whether it is new.
func (o *object) setField(field, value []byte) bool {
	h := o.hash()
	added := true
	if i := h.find(view(field)); i >= 0 {
		e := &h.list[i]
		e.val = append(e.val[:0], value...)
		added = false
	} else {
		h.set(view(field), bytes.Clone(value))
	}
	if len(field) > packBytes || len(value) > packBytes || h.len() > packEntries {
		o.raw = true
	}
	return added
}

func (o *object) removeField(name string) bool {
	_, was := o.hash().del(name)
	return was
}

func cmdHset(c *Conn, args [][]byte) { c.hset(args, "hset") }

func cmdHmset(c *Conn, args [][]byte) { c.hset(args, "hmset") }

func (c *Conn) hset(args [][]byte, name string) {
	if len(args)%2 == 1 {
		c.Fail(wrongArgs(name))
	}
	o := c.hashAt(args[1])
	added := 0
	for i := 2; i < len(args); i += 2 {
		added += bit(o.setField(args[i], args[i+1]))
	}
	c.changed(args[1])
	if name == "hset" {
		c.WriteInt(int64(added))
	} else {
		c.writeOK()
	}
}

func cmdHsetnx(c *Conn, args [][]byte, o *object) {
	if o != nil && o.hash().has(view(args[2])) {
		c.WriteInt(0)
		return
	}
	c.hashAt(args[1]).setField(args[2], args[3])
	c.changed(args[1])
	c.WriteInt(1)
}

// field is the value of a field; nil: there is none.
func (o *object) field(name []byte) []byte {
	if o == nil {
		return nil
	}
	v, ok := o.hash().get(view(name))
	if ok && v == nil {
		return []byte{}
	}
	return v
}

func (c *Conn) writeOptional(b []byte) {
	if b == nil {
		c.WriteNull()
		return
	}
	c.WriteBulk(b)
}

func cmdHget(c *Conn, args [][]byte, o *object) {
	c.writeOptional(o.field(args[2]))
}

func cmdHmget(c *Conn, args [][]byte, o *object) {
	c.WriteArray(len(args) - 2)
	for _, f := range args[2:] {
		c.writeOptional(o.field(f))
	}
}

func cmdHstrlen(c *Conn, args [][]byte, o *object) {
	c.WriteInt(int64(len(o.field(args[2]))))
}

func cmdHexists(c *Conn, args [][]byte, o *object) {
	c.writeBool(o.field(args[2]) != nil)
}

func cmdHgetall(c *Conn, args [][]byte) { c.hgetall(args[1], true, true) }
func cmdHkeys(c *Conn, args [][]byte)   { c.hgetall(args[1], true, false) }
func cmdHvals(c *Conn, args [][]byte)   { c.hgetall(args[1], false, true) }

func (c *Conn) hgetall(key []byte, names, values bool) {
	o := c.findKind(key, kindHash)
	h := &hash{}
	if o != nil {
		h = o.hash()
	}
	if names && values {
		c.WriteMap(h.len())
	} else {
		c.WriteArray(h.len())
	}
	for name, value := range h.all() {
		if names {
			c.WriteBulkString(name)
		}
		if values {
			c.WriteBulk(value)
		}
	}
}

func cmdHincrby(c *Conn, args [][]byte) {
	by := c.integer(args[3])
	o := c.findKind(args[1], kindHash)
	n := by
	if v := o.field(args[2]); v != nil {
		n = c.sum(c.atLeast(math.MinInt64, v, "ERR hash value is not an integer"), by)
	}
	var buf [20]byte
	c.hashAt(args[1]).setField(args[2], strconv.AppendInt(buf[:0], n, 10))
	c.changed(args[1])
	c.WriteInt(n)
}

func cmdHincrbyfloat(c *Conn, args [][]byte) {
	c.FailIf(c.extended(args[3], errNotFloat).IsInf(), "ERR value is NaN or Infinity")
	o := c.findKind(args[1], kindHash)
	sum := []byte("0")
	if v := o.field(args[2]); v != nil {
		sum = v
	}
	sum = c.addFloat(sum, args[3], "ERR hash value is not a float")
	c.hashAt(args[1]).setField(args[2], sum)
	c.changed(args[1])
	c.s.rewrite([]byte("HSET"), args[1], args[2], sum)
	c.WriteBulk(sum)
}

func cmdHscan(c *Conn, args [][]byte) {
	scanElements(c, args, kindHash, (*object).hash, nil, func(value []byte) string { return string(value) })
}
