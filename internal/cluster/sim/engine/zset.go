package engine

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// zset is the value of a sorted set: scores by member, and members sorted by score and
// then by name.
type zset struct {
	scores dict[float64]
	sorted []zitem
}

type zitem struct {
	score float64
	name  string
}

func (o *object) zset() *zset { return o.val.(*zset) }

func (o *object) scoreDict() *dict[float64] { return &o.zset().scores }

func newZSet() *object { return &object{kind: kindZSet, expires: never, val: &zset{}} }

func compareItems(a, b zitem) int {
	return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.name, b.name))
}

// rank is the index of an existing member.
func (z *zset) rank(item zitem) int {
	i, _ := slices.BinarySearchFunc(z.sorted, item, compareItems)
	return i
}

// setScore adds a member or changes its score.
func (o *object) setScore(name string, score float64) {
	z := o.zset()
	if i := z.scores.find(name); i >= 0 {
		e := &z.scores.list[i]
		at := z.rank(zitem{e.val, e.key})
		z.sorted = slices.Delete(z.sorted, at, at+1)
		e.val = score
		item := zitem{score, e.key}
		z.sorted = slices.Insert(z.sorted, z.rank(item), item)
		return
	}
	item := zitem{score, strings.Clone(name)}
	z.scores.set(item.name, score)
	z.sorted = slices.Insert(z.sorted, z.rank(item), item)
	if len(name) > packBytes || len(z.sorted) > packEntries {
		o.raw = true
	}
}

// removeItem removes a member, and reports whether it existed.
func (o *object) removeItem(name string) bool {
	z := o.zset()
	score, ok := z.scores.get(name)
	if !ok {
		return false
	}
	at := z.rank(zitem{score, name})
	z.sorted = slices.Delete(z.sorted, at, at+1)
	z.scores.del(name)
	return true
}

// items are the members in order; nil without a set.
func (o *object) items() []zitem {
	if o == nil {
		return nil
	}
	return o.zset().sorted
}

// dropItems removes a range of the sorted members.
func (c *Conn) dropItems(key []byte, o *object, from, to int) {
	z := o.zset()
	for _, item := range z.sorted[from:to] {
		z.scores.del(item.name)
	}
	z.sorted = slices.Delete(z.sorted, from, to)
	c.dropEmpty(key, o)
	c.changed(key)
}

type zaddOptions struct {
	conditions
	ch, incr bool
}

// parseZadd parses the options and returns the index of the first pair.
func (c *Conn) parseZadd(args [][]byte) (o zaddOptions, at int) {
	at = 2
options:
	for ; at < len(args); at++ {
		switch a := args[at]; {
		case o.add(a):
		case is(a, "ch"):
			o.ch = true
		case is(a, "incr"):
			o.incr = true
		default:
			break options
		}
	}
	pairs := len(args) - at
	c.FailIf(pairs == 0 || pairs%2 == 1, errSyntax)
	c.FailIf(o.nx && o.xx, "ERR XX and NX options at the same time are not compatible")
	c.FailIf(o.gt && o.nx || o.lt && o.nx || o.gt && o.lt,
		"ERR GT, LT, and/or NX options at the same time are not compatible")
	c.FailIf(o.incr && pairs > 2, "ERR INCR option supports a single increment-element pair")
	return o, at
}

func cmdZadd(c *Conn, args [][]byte) {
	o, at := c.parseZadd(args)
	c.zadd(args[1], args[at:], o)
}

func cmdZincrby(c *Conn, args [][]byte) { c.zadd(args[1], args[2:], zaddOptions{incr: true}) }

func (c *Conn) zadd(key []byte, pairs [][]byte, opts zaddOptions) {
	scores := make([]float64, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		scores = append(scores, c.float(pairs[i], errNotFloat))
	}
	o := c.findKind(key, kindZSet)
	if o == nil && opts.xx {
		c.writeZadd(opts, 0, 0, 0, false)
		return
	}
	fresh := o == nil
	if fresh {
		o = newZSet()
	}
	added, updated, done, last := 0, 0, false, 0.0
	for i, score := range scores {
		name := view(pairs[2*i+1])
		was, there := o.zset().scores.get(name)
		if opts.incr && there {
			score += was
		}
		c.FailIf(math.IsNaN(score), "ERR resulting score is not a number (NaN)")
		if there && (opts.nx || opts.gt && score <= was || opts.lt && score >= was) || !there && opts.xx {
			continue
		}
		done, last = true, score
		switch {
		case !there:
			added++
		case score != was:
			updated++
		default:
			continue
		}
		o.setScore(name, score)
	}
	if fresh && added > 0 {
		c.s.store(c.db, key, o)
	}
	if added+updated > 0 {
		c.changed(key)
	}
	c.writeZadd(opts, added, updated, last, done)
}

func (c *Conn) writeZadd(opts zaddOptions, added, updated int, last float64, done bool) {
	switch {
	case opts.incr && done:
		c.WriteDouble(last)
	case opts.incr:
		c.WriteNull()
	case opts.ch:
		c.WriteInt(int64(added + updated))
	default:
		c.WriteInt(int64(added))
	}
}

func (o *object) score(name []byte) (float64, bool) {
	if o == nil {
		return 0, false
	}
	return o.zset().scores.get(view(name))
}

func cmdZscore(c *Conn, args [][]byte, o *object) {
	if f, ok := o.score(args[2]); ok {
		c.WriteDouble(f)
	} else {
		c.WriteNull()
	}
}

func cmdZmscore(c *Conn, args [][]byte, o *object) {
	c.WriteArray(len(args) - 2)
	for i := range args[2:] {
		cmdZscore(c, args[i:], o)
	}
}

func zrank(rev bool) Command {
	return on(kindZSet, func(c *Conn, args [][]byte, o *object) {
		f, ok := o.score(args[2])
		if !ok {
			c.WriteNull()
			return
		}
		i := o.zset().rank(zitem{f, string(args[2])})
		if rev {
			i = len(o.items()) - 1 - i
		}
		c.WriteInt(int64(i))
	})
}

func cmdZscan(c *Conn, args [][]byte) {
	scanElements(c, args, kindZSet, (*object).scoreDict, (*object).itemNames, formatScore)
}

// itemNames are the members in order.
func (o *object) itemNames() []string {
	names := make([]string, len(o.items()))
	for i, item := range o.items() {
		names[i] = item.name
	}
	return names
}

// writeItems writes members, optionally with scores.
func (c *Conn) writeItems(items []zitem, scores bool) {
	c.writePairs(len(items), scores, func(i int) string { return items[i].name }, func(i int) {
		c.WriteDouble(items[i].score)
	})
}
