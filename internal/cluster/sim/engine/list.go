package engine

import (
	"bytes"
	"slices"
)

// list is the value of a list; removing the first item does not move the others.
type list struct {
	items [][]byte
	head  int // index of the first item
}

func (o *object) list() *list { return o.val.(*list) }

func (l *list) len() int        { return len(l.items) - l.head }
func (l *list) all() [][]byte   { return l.items[l.head:] }
func (l *list) at(i int) []byte { return l.items[l.head+i] }

// push adds a copy of b.
func (l *list) push(b []byte, left bool) {
	b = bytes.Clone(b)
	if b == nil {
		b = []byte{}
	}
	if !left {
		l.items = append(l.items, b)
		return
	}
	if l.head == 0 {
		room := len(l.items)/2 + 4
		l.items = append(make([][]byte, room, room+len(l.items)), l.items...)
		l.head = room
	}
	l.head--
	l.items[l.head] = b
}

// pop removes one item; there must be one.
func (l *list) pop(left bool) []byte {
	if !left {
		b := l.items[len(l.items)-1]
		l.items[len(l.items)-1] = nil
		l.items = l.items[:len(l.items)-1]
		return b
	}
	b := l.items[l.head]
	l.items[l.head] = nil
	l.head++
	if l.head > 32 && l.head > len(l.items)/2 {
		l.items = append([][]byte{}, l.items[l.head:]...)
		l.head = 0
	}
	return b
}

// set replaces all items.
func (l *list) set(items [][]byte) { l.items, l.head = items, 0 }

// listAt finds the list at key, or creates it.
func (c *Conn) listAt(key []byte) *object {
	o := c.findKind(key, kindList)
	if o == nil {
		o = &object{kind: kindList, expires: never, val: &list{}}
		c.s.store(c.db, key, o)
	}
	return o
}

func cmdLpush(c *Conn, args [][]byte)  { c.pushTo(args, true, false) }
func cmdRpush(c *Conn, args [][]byte)  { c.pushTo(args, false, false) }
func cmdLpushx(c *Conn, args [][]byte) { c.pushTo(args, true, true) }
func cmdRpushx(c *Conn, args [][]byte) { c.pushTo(args, false, true) }

func (c *Conn) pushTo(args [][]byte, left, mustBeThere bool) {
	o := c.findKind(args[1], kindList)
	if o == nil && mustBeThere {
		c.WriteInt(0)
		return
	}
	o = c.listAt(args[1])
	for _, b := range args[2:] {
		o.list().push(b, left)
	}
	c.changed(args[1])
	c.WriteInt(int64(o.list().len()))
}

func cmdLpop(c *Conn, args [][]byte) { c.popFrom(args, true, "lpop") }
func cmdRpop(c *Conn, args [][]byte) { c.popFrom(args, false, "rpop") }

func (c *Conn) popFrom(args [][]byte, left bool, name string) {
	if len(args) > 3 {
		c.Fail(wrongArgs(name))
	}
	count := int64(-1)
	if len(args) == 3 {
		count = c.positive(args[2])
	}
	o := c.findKind(args[1], kindList)
	switch {
	case o == nil && count < 0:
		c.WriteNull()
	case o == nil:
		c.WriteNullArray()
	case count < 0:
		c.WriteBulk(c.popOne(args[1], o, left))
	case count == 0:
		c.WriteArray(0)
	default:
		c.popMany(args[1], o, left, count)
	}
}

// popOne pops one item of the list at key, and propagates that.
func (c *Conn) popOne(key []byte, o *object, left bool) []byte {
	b := o.list().pop(left)
	c.dropEmpty(key, o)
	c.changed(key)
	return b
}

func (c *Conn) popMany(key []byte, o *object, left bool, count int64) {
	n := int(min(count, int64(o.list().len())))
	c.WriteArray(n)
	for range n {
		c.WriteBulk(o.list().pop(left))
	}
	c.dropEmpty(key, o)
	c.changed(key)
}

func cmdLrange(c *Conn, args [][]byte) {
	start, end, o := c.findRange(args, kindList)
	if o == nil {
		c.WriteArray(0)
		return
	}
	from, to := span(start, end, o.list().len())
	c.WriteArray(to - from)
	for _, b := range o.list().all()[from:to] {
		c.WriteBulk(b)
	}
}

func cmdLtrim(c *Conn, args [][]byte) {
	start, end, o := c.findRange(args, kindList)
	if o != nil {
		from, to := span(start, end, o.list().len())
		o.list().set(slices.Clone(o.list().all()[from:to]))
		c.dropEmpty(args[1], o)
		c.changed(args[1])
	}
	c.writeOK()
}

// index turns a position that may count from the end into an index; false: out of range.
func (l *list) index(i int64) (int, bool) {
	if i < 0 {
		i += int64(l.len())
	}
	return int(i), i >= 0 && i < int64(l.len())
}

func cmdLindex(c *Conn, args [][]byte, o *object) {
	if o == nil {
		c.WriteNull()
		return
	}
	n := c.integer(args[2])
	if i, ok := o.list().index(n); ok {
		c.WriteBulk(o.list().at(i))
	} else {
		c.WriteNull()
	}
}

func cmdLset(c *Conn, args [][]byte, o *object) {
	c.FailIf(o == nil, "ERR no such key")
	n := c.integer(args[2])
	i, ok := o.list().index(n)
	c.FailIf(!ok, "ERR index out of range")
	o.list().all()[i] = append([]byte{}, args[3]...)
	c.changed(args[1])
	c.writeOK()
}

func cmdLinsert(c *Conn, args [][]byte) {
	behind := 0
	switch {
	case is(args[2], "after"):
		behind = 1
	case !is(args[2], "before"):
		c.Fail(errSyntax)
	}
	o := c.findKind(args[1], kindList)
	if o == nil {
		c.WriteInt(0)
		return
	}
	l := o.list()
	for i, b := range l.all() {
		if bytes.Equal(b, args[3]) {
			l.set(slices.Insert(slices.Clone(l.all()), i+behind, append([]byte{}, args[4]...)))
			c.changed(args[1])
			c.WriteInt(int64(l.len()))
			return
		}
	}
	c.WriteInt(-1)
}

func cmdLrem(c *Conn, args [][]byte) {
	count := c.integer(args[2])
	o := c.findKind(args[1], kindList)
	if o == nil {
		c.WriteInt(0)
		return
	}
	items := slices.Clone(o.list().all())
	if count < 0 {
		slices.Reverse(items)
	}
	left := count
	if left < 0 {
		left = -left
	}
	removed := int64(0)
	items = slices.DeleteFunc(items, func(b []byte) bool {
		if !bytes.Equal(b, args[3]) || count != 0 && removed == left {
			return false
		}
		removed++
		return true
	})
	if count < 0 {
		slices.Reverse(items)
	}
	if removed > 0 {
		o.list().set(items)
		c.dropEmpty(args[1], o)
		c.changed(args[1])
	}
	c.WriteInt(removed)
}
