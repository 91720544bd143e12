package engine

import (
	"slices"
	"strconv"
)

// set is the value of a set: its members in order of insertion. A small set of integers
// is returned in numerical order, as Redis does.
type set struct{ members dict[struct{}] }

func (o *object) set() *set { return o.val.(*set) }

func newSet() *object { return &object{kind: kindSet, expires: never, val: &set{}} }

// addMember adds a member, and reports whether it is new.
func (o *object) addMember(b []byte) bool {
	if !o.set().members.set(view(b), struct{}{}) {
		return false
	}
	if _, ok := parseInt(b); !ok || o.set().members.len() > intsetLength {
		o.raw = true
	}
	return true
}

// memberList are the members in the order of a reply.
func (o *object) memberList() []string {
	if o == nil {
		return nil
	}
	names := make([]string, 0, o.set().members.len())
	for name := range o.set().members.all() {
		names = append(names, name)
	}
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

func (o *object) hasMember(b []byte) bool { return o != nil && o.set().members.has(view(b)) }

func (o *object) cardinality() int {
	if o == nil {
		return 0
	}
	return o.set().members.len()
}

func cmdSadd(c *Conn, args [][]byte) {
	o, ok := c.findKind(args[1], kindSet)
	if !ok {
		return
	}
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

func cmdSrem(c *Conn, args [][]byte) {
	o, ok := c.findKind(args[1], kindSet)
	if !ok {
		return
	}
	n := 0
	if o != nil {
		for _, b := range args[2:] {
			_, was := o.set().members.del(view(b))
			n += bit(was)
		}
	}
	if n > 0 {
		c.dropEmpty(args[1], o.cardinality())
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
	to, ok := c.findKind(args[2], kindSet)
	if !ok {
		return
	}
	if from.kind != kindSet {
		c.WriteError(wrongType)
		return
	}
	if from == to {
		c.writeBool(from.hasMember(args[3]))
		return
	}
	if _, was := from.set().members.del(view(args[3])); !was {
		c.WriteInt(0)
		return
	}
	c.dropEmpty(args[1], from.cardinality())
	c.s.touch(c.db, view(args[1]))
	if to == nil {
		to = newSet()
		c.s.store(c.db, args[2], to)
	}
	to.addMember(args[3])
	c.changed(args[2])
	c.WriteInt(1)
}

func cmdSismember(c *Conn, args [][]byte) {
	if o, ok := c.findKind(args[1], kindSet); ok {
		c.writeBool(o.hasMember(args[2]))
	}
}

func cmdSmismember(c *Conn, args [][]byte) {
	o, ok := c.findKind(args[1], kindSet)
	if !ok {
		return
	}
	c.WriteArray(len(args) - 2)
	for _, b := range args[2:] {
		c.writeBool(o.hasMember(b))
	}
}

func cmdScard(c *Conn, args [][]byte) {
	if o, ok := c.findKind(args[1], kindSet); ok {
		c.WriteInt(int64(o.cardinality()))
	}
}

func cmdSmembers(c *Conn, args [][]byte) {
	if o, ok := c.findKind(args[1], kindSet); ok {
		c.writeSet(o.memberList())
	}
}

func (c *Conn) writeSet(names []string) {
	c.WriteSet(len(names))
	for _, name := range names {
		c.WriteBulkString(name)
	}
}

// optionalCount parses the count after a key, 1 if there is none, or writes the error.
func (c *Conn) optionalCount(args [][]byte, parse func([]byte) (int64, bool)) (int64, bool) {
	switch len(args) {
	case 2:
		return 1, true
	case 3:
		return parse(args[2])
	}
	c.WriteError(errSyntax)
	return 0, false
}

func cmdSpop(c *Conn, args [][]byte) {
	count, ok := c.optionalCount(args, c.positive)
	if !ok {
		return
	}
	o, ok := c.findKind(args[1], kindSet)
	switch {
	case !ok:
	case o == nil && len(args) == 2:
		c.WriteNull()
	case o == nil || count == 0:
		c.WriteSet(0)
	default:
		names := pick(&o.set().members, c.s.random, count)
		effect := [][]byte{[]byte("SREM"), args[1]}
		for _, name := range names {
			o.set().members.del(name)
			effect = append(effect, []byte(name))
		}
		if o.cardinality() == 0 {
			effect = [][]byte{[]byte("DEL"), args[1]}
		}
		c.dropEmpty(args[1], o.cardinality())
		c.changed(args[1])
		c.s.rewrite(effect...)
		if len(args) == 2 {
			c.WriteBulkString(names[0])
		} else {
			c.writeSet(names)
		}
	}
}

func cmdSrandmember(c *Conn, args [][]byte) {
	count, ok := c.optionalCount(args, c.randomCount)
	if !ok {
		return
	}
	o, ok := c.findKind(args[1], kindSet)
	switch {
	case !ok:
	case o == nil && len(args) == 2:
		c.WriteNull()
	case o == nil:
		c.WriteArray(0)
	case len(args) == 2:
		c.WriteBulkString(o.set().members.any(c.s.random))
	default:
		names := pick(&o.set().members, c.s.random, count)
		c.WriteArray(len(names))
		for _, name := range names {
			c.WriteBulkString(name)
		}
	}
}

func cmdSscan(c *Conn, args [][]byte) {
	c.scanElements(args, kindSet, func(o *object, opts scanOptions) (uint64, []string) {
		var found []string
		if !o.raw {
			for _, name := range o.memberList() {
				if match(opts.pattern, name) {
					found = append(found, name)
				}
			}
			return 0, found
		}
		next := scan(&o.set().members, opts, false, func(name string, _ struct{}) { found = append(found, name) })
		return next, found
	})
}
