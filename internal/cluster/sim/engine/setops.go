package engine

import "slices"

func cmdSunion(c *Conn, args [][]byte)      { c.setOperation(args[1:], nil, union) }
func cmdSinter(c *Conn, args [][]byte)      { c.setOperation(args[1:], nil, intersection) }
func cmdSdiff(c *Conn, args [][]byte)       { c.setOperation(args[1:], nil, difference) }
func cmdSunionstore(c *Conn, args [][]byte) { c.setOperation(args[2:], args[1], union) }
func cmdSinterstore(c *Conn, args [][]byte) { c.setOperation(args[2:], args[1], intersection) }
func cmdSdiffstore(c *Conn, args [][]byte)  { c.setOperation(args[2:], args[1], difference) }

func union(sets []*object) []string {
	var all dict[struct{}]
	for _, o := range sets {
		for _, name := range o.memberList() {
			all.set(name, struct{}{})
		}
	}
	return all.names()
}

func intersection(sets []*object) []string {
	return slices.DeleteFunc(sets[0].memberList(), func(name string) bool {
		return slices.ContainsFunc(sets[1:], func(o *object) bool { return !o.hasMember([]byte(name)) })
	})
}

func difference(sets []*object) []string {
	return slices.DeleteFunc(sets[0].memberList(), func(name string) bool {
		return slices.ContainsFunc(sets[1:], func(o *object) bool { return o.hasMember([]byte(name)) })
	})
}

// sets finds the sets; a missing one is nil.
func (c *Conn) sets(keys [][]byte) []*object {
	sets := make([]*object, len(keys))
	for i, key := range keys {
		sets[i] = c.findKind(key, kindSet)
	}
	return sets
}

// setOperation writes the result, or stores it at dest if that is not nil.
func (c *Conn) setOperation(keys [][]byte, dest []byte, op func([]*object) []string) {
	names := op(c.sets(keys))
	if dest == nil {
		c.writeSet(names)
		return
	}
	o := newSet()
	for _, name := range names {
		o.addMember([]byte(name))
	}
	c.storeResult(dest, o)
}

func cmdSintercard(c *Conn, args [][]byte) {
	n := c.atLeast(1, args[1], errNumkeys)
	c.FailIf(n > int64(len(args)-2), errTooManyKeys)
	limit := c.parseLimit(args[2+n:])
	c.writeLimited(len(intersection(c.sets(args[2:2+n]))), limit)
}

// parseLimit parses "[LIMIT n]".
func (c *Conn) parseLimit(rest [][]byte) (limit int64) {
	for i := 0; i < len(rest); i += 2 {
		c.FailIf(!is(rest[i], "limit") || i+1 == len(rest), errSyntax)
		limit = c.atLeast(0, rest[i+1], "ERR LIMIT can't be negative")
	}
	return limit
}

func (c *Conn) writeLimited(n int, limit int64) {
	if limit > 0 {
		n = int(min(int64(n), limit))
	}
	c.WriteInt(int64(n))
}
