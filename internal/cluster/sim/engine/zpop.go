package engine

import "slices"

func zpop(least bool) Command {
	return func(c *Conn, args [][]byte) {
		count := c.optionalCount(args)
		o := c.findKind(args[1], kindZSet)
		if o == nil || count == 0 {
			c.WriteArray(0)
			return
		}
		items := c.takeItems(args[1], o, least, count)
		if len(args) == 2 && c.resp == 3 { // one pair, not a list of pairs
			c.Write([]any{items[0].name, items[0].score})
			return
		}
		c.writeItems(items, true)
	}
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

func bzpop(least bool) Command {
	return func(c *Conn, args [][]byte) {
		c.blockingPop(args, kindZSet, func(key []byte, o *object) {
			item := c.takeItems(key, o, least, 1)[0]
			c.Write([]any{key, item.name, item.score})
			c.s.rewrite(either(least, "ZPOPMIN", "ZPOPMAX"), key)
		})
	}
}

func (c *Conn) zmpop(r popRequest, w blockWait) {
	c.serveFirst(r.keys, kindZSet, w, func(key []byte, o *object) {
		items := c.takeItems(key, o, r.first, r.count)
		c.WriteArray(2)
		c.WriteBulk(key)
		c.WriteArray(len(items))
		for _, item := range items {
			c.Write([]any{item.name, item.score})
		}
		c.s.rewrite(either(r.first, "ZPOPMIN", "ZPOPMAX"), key, itob(int64(len(items))))
	})
}
