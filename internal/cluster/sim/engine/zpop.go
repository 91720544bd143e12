package engine

import (
	"slices"
	"time"
)

func cmdZpopmin(c *Conn, args [][]byte) { c.zpop(args, true) }
func cmdZpopmax(c *Conn, args [][]byte) { c.zpop(args, false) }

func (c *Conn) zpop(args [][]byte, least bool) {
	count, ok := c.optionalCount(args, c.positive)
	if !ok {
		return
	}
	o, ok := c.findKind(args[1], kindZSet)
	if !ok {
		return
	}
	if o == nil || count == 0 {
		c.WriteArray(0)
		return
	}
	items := c.takeItems(args[1], o, least, count)
	if len(args) == 2 && c.resp == 3 { // one pair, not a list of pairs
		c.WriteArray(2)
		c.WriteBulkString(items[0].name)
		c.WriteDouble(items[0].score)
		return
	}
	c.writeItems(items, true)
}

// takeItems removes the items with the lowest or the highest scores, in order.
func (c *Conn) takeItems(key []byte, o *object, least bool, count int64) []zitem {
	n := int(min(count, int64(len(o.items()))))
	from := 0
	if !least {
		from = len(o.items()) - n
	}
	items := slices.Clone(o.items()[from : from+n])
	if !least {
		slices.Reverse(items)
	}
	c.dropItems(key, o, from, from+n)
	return items
}

func cmdBzpopmin(c *Conn, args [][]byte) { c.bzpop(args, true) }
func cmdBzpopmax(c *Conn, args [][]byte) { c.bzpop(args, false) }

func popName(least bool) []byte {
	if least {
		return []byte("ZPOPMIN")
	}
	return []byte("ZPOPMAX")
}

func (c *Conn) bzpop(args [][]byte, least bool) {
	until, ok := c.timeout(args[len(args)-1])
	if !ok {
		return
	}
	keys := args[1 : len(args)-1]
	c.serveFirst(keys, kindZSet, blockWait{until, c.MayBlock(), c.WriteNullArray}, func(key []byte, o *object) {
		item := c.takeItems(key, o, least, 1)[0]
		c.WriteArray(3)
		c.WriteBulk(key)
		c.WriteBulkString(item.name)
		c.WriteDouble(item.score)
		c.s.rewrite(popName(least), key)
	})
}

func (c *Conn) zmpop(r popRequest, until time.Time, block bool) {
	c.serveFirst(r.keys, kindZSet, blockWait{until, block, c.WriteNullArray}, func(key []byte, o *object) {
		items := c.takeItems(key, o, r.first, r.count)
		c.WriteArray(2)
		c.WriteBulk(key)
		c.WriteArray(len(items))
		for _, item := range items {
			c.WriteArray(2)
			c.WriteBulkString(item.name)
			c.WriteDouble(item.score)
		}
		c.s.rewrite(popName(r.first), key, itob(int64(len(items))))
	})
}
