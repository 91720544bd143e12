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
	names := make([]string, 0, all.len())
	for name := range all.all() {
		names = append(names, name)
	}
	return names
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

// sets finds the sets; one that does not exist is nil.
func (c *Conn) sets(keys [][]byte) ([]*object, bool) {
	sets := make([]*object, len(keys))
	for i, key := range keys {
		var ok bool
		if sets[i], ok = c.findKind(key, kindSet); !ok {
			return nil, false
		}
	}
	return sets, true
}

// setOperation writes the result, or stores it at dest if that is not nil.
func (c *Conn) setOperation(keys [][]byte, dest []byte, op func([]*object) []string) {
	sets, ok := c.sets(keys)
	if !ok {
		return
	}
	names := op(sets)
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
	keys, limit, ok := c.parseIntercard(args)
	if !ok {
		return
	}
	sets, ok := c.sets(keys)
	if !ok {
		return
	}
	c.writeLimited(len(intersection(sets)), limit)
}

// parseIntercard parses "numkeys key … [LIMIT n]", or writes the error.
func (c *Conn) parseIntercard(args [][]byte) (keys [][]byte, limit int64, ok bool) {
	n, ok := parseInt(args[1])
	if !ok || n <= 0 {
		c.WriteError("ERR numkeys should be greater than 0")
		return nil, 0, false
	}
	if n > int64(len(args)-2) {
		c.WriteError("ERR Number of keys can't be greater than number of args")
		return nil, 0, false
	}
	limit, ok = c.parseLimit(args[2+n:])
	return args[2 : 2+n], limit, ok
}

// parseLimit parses "[LIMIT n]", or writes the error.
func (c *Conn) parseLimit(rest [][]byte) (limit int64, ok bool) {
	for i := 0; i < len(rest); i += 2 {
		if !is(rest[i], "limit") || i+1 == len(rest) {
			c.WriteError(errSyntax)
			return 0, false
		}
		if limit, ok = parseInt(rest[i+1]); !ok || limit < 0 {
			c.WriteError("ERR LIMIT can't be negative")
			return 0, false
		}
	}
	return limit, true
}

func (c *Conn) writeLimited(n int, limit int64) {
	if limit > 0 {
		n = int(min(int64(n), limit))
	}
	c.WriteInt(int64(n))
}
