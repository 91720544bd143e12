package engine

import (
	"slices"
	"strconv"
)

// set is the value of a set: its members in order of insertion. A small set of integers
// is returned in numerical order, as Redis does.
type set = dict[struct{}]

func (o *object) set() *set { return o.val.(*set) }

func newSet() *object { return &object{kind: kindSet, expires: never, val: &set{}} }

// addMember adds a member, and reports whether it is new.
func (o *object) addMember(b []byte) bool {
	if !o.set().set(view(b), struct{}{}) {
		return false
	}
	if _, ok := parseInt(b); !ok || o.set().len() > intsetLength {
		o.raw = true
	}
	return true
}

// memberList are the members in the order of a reply.
func (o *object) memberList() []string {
	if o == nil {
		return nil
	}
	names := o.set().names()
	if !o.raw {
		slices.SortFunc(names, func(a, b string) int {
			x, _ := strconv.ParseInt(a, 10, 64)
			y, _ := strconv.ParseInt(b, 10, 64)
			if x < y {
				return -1
			}
			return 1
		})
	}
	return names
}

func (o *object) removeMember(name string) bool {
	_, was := o.set().del(name)
	return was
}

func (o *object) hasMember(b []byte) bool { return o != nil && o.set().has(view(b)) }

func cmdSadd(c *Conn, args [][]byte, o *object) {
	if o == nil {
		o = newSet()
		c.s.store(c.db, args[1], o)
	}
	n := 0
	for _, b := range args[2:] {
		n += bit(o.addMember(b))
	}
	if n > 0 {
		c.changed(args[1])
	}
	c.WriteInt(int64(n))
}

func cmdSmove(c *Conn, args [][]byte) {
	from := c.find(args[1])
	if from == nil {
		c.WriteInt(0)
		return
	}
	to := c.findKind(args[2], kindSet)
	c.FailIf(from.kind != kindSet, wrongType)
	if from == to {
		c.writeBool(from.hasMember(args[3]))
		return
	}
	if !from.removeMember(view(args[3])) {
		c.WriteInt(0)
		return
	}
	c.dropEmpty(args[1], from)
	c.s.touch(c.db, view(args[1]))
	if to == nil {
		to = newSet()
		c.s.store(c.db, args[2], to)
	}
	to.addMember(args[3])
	c.changed(args[2])
	c.WriteInt(1)
}

func cmdSismember(c *Conn, args [][]byte, o *object) {
	c.writeBool(o.hasMember(args[2]))
}

func cmdSmismember(c *Conn, args [][]byte, o *object) {
	c.WriteArray(len(args) - 2)
	for _, b := range args[2:] {
		c.writeBool(o.hasMember(b))
	}
}

func cmdSmembers(c *Conn, args [][]byte, o *object) {
	c.writeSet(o.memberList())
}

func (c *Conn) writeSet(names []string) {
	c.WriteSet(len(names))
	for _, name := range names {
		c.WriteBulkString(name)
	}
}

func cmdSpop(c *Conn, args [][]byte) {
	count := c.optionalCount(args)
	o := c.findKind(args[1], kindSet)
	switch {
	case o == nil && len(args) == 2:
		c.WriteNull()
	case o == nil || count == 0:
		c.WriteSet(0)
	default:
		names := pick(o.set(), c.s.random, count)
		effect := [][]byte{[]byte("SREM"), args[1]}
		for _, name := range names {
			o.set().del(name)
			effect = append(effect, []byte(name))
		}
		if o.size() == 0 {
			effect = [][]byte{[]byte("DEL"), args[1]}
		}
		c.dropEmpty(args[1], o)
		c.changed(args[1])
		c.s.rewrite(effect...)
		if len(args) == 2 {
			c.WriteBulkString(names[0])
		} else {
			c.writeSet(names)
		}
	}
}

func cmdSscan(c *Conn, args [][]byte) {
	scanElements(c, args, kindSet, (*object).set, (*object).memberList, nil)
}
