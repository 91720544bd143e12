package engine

import (
	"math"
	"slices"
)

// zoperation is ZUNION, ZINTER or ZDIFF with its arguments.
type zoperation struct {
	what    byte // 'u', 'i' or 'd'
	weights []float64
	fold    func(a, b float64) float64
	scores  bool
}

func cmdZunion(c *Conn, args [][]byte)      { c.zop(args[1:], nil, "zunion") }
func cmdZinter(c *Conn, args [][]byte)      { c.zop(args[1:], nil, "zinter") }
func cmdZdiff(c *Conn, args [][]byte)       { c.zop(args[1:], nil, "zdiff") }
func cmdZunionstore(c *Conn, args [][]byte) { c.zop(args[2:], args[1], "zunionstore") }
func cmdZinterstore(c *Conn, args [][]byte) { c.zop(args[2:], args[1], "zinterstore") }
func cmdZdiffstore(c *Conn, args [][]byte)  { c.zop(args[2:], args[1], "zdiffstore") }

func addScores(a, b float64) float64 {
	if sum := a + b; !math.IsNaN(sum) {
		return sum
	}
	return 0 // of infinities of both signs
}

// parseSources parses "numkeys key …" and finds the sets.
func (c *Conn) parseSources(args [][]byte, name string) []*object {
	n := c.integer(args[0])
	if n < 1 {
		c.Fail("ERR at least 1 input key is needed for '" + name + "' command")
	}
	c.FailIf(n > int64(len(args)-1), errSyntax)
	sources := make([]*object, n)
	for i, key := range args[1 : 1+n] {
		sources[i] = c.zsource(key)
	}
	return sources
}

// zopOptions parses the options after the keys: "[WEIGHTS …] [AGGREGATE …] [WITHSCORES]".
func (c *Conn) zopOptions(op *zoperation, rest [][]byte, store bool) {
	folds := map[string]func(a, b float64) float64{"sum": addScores, "min": math.Min, "max": math.Max}
	n := len(op.weights)
	for len(rest) > 0 {
		used := 0
		switch {
		case op.what != 'd' && is(rest[0], "weights") && len(rest) > n:
			for i := range op.weights {
				op.weights[i] = c.float(rest[1+i], "ERR weight value is not a float")
			}
			used = 1 + n
		case op.what != 'd' && is(rest[0], "aggregate") && len(rest) > 1:
			op.fold, used = folds[string(lowerInto(nil, rest[1]))], 2
		case !store && is(rest[0], "withscores"):
			op.scores, used = true, 1
		}
		c.FailIf(used == 0 || op.fold == nil, errSyntax)
		rest = rest[used:]
	}
}

// zsource is one of the source sets; in a plain set every score is one.
func (c *Conn) zsource(key []byte) *object {
	o := c.find(key)
	if o != nil && o.kind == kindZSet {
		return o
	}
	c.FailIf(o != nil && o.kind != kindSet, wrongType)
	z := newZSet()
	for _, name := range o.memberList() {
		z.setScore(name, 1)
	}
	return z
}

func (c *Conn) zop(args [][]byte, dest []byte, name string) {
	sources := c.parseSources(args, name)
	op := zoperation{what: name[1], fold: addScores, weights: slices.Repeat([]float64{1}, len(sources))}
	c.zopOptions(&op, args[1+len(sources):], dest != nil)
	items := op.run(sources)
	if dest != nil {
		c.storeItems(dest, items)
		return
	}
	c.writeItems(items, op.scores)
}

// weighted is score times weight; infinity times zero is zero.
func weighted(score, weight float64) float64 {
	if f := score * weight; !math.IsNaN(f) {
		return f
	}
	return 0
}

// run returns the result in order.
func (op zoperation) run(sources []*object) []zitem {
	out := newZSet()
	for i, o := range sources {
		for _, item := range o.items() {
			if op.what == 'd' {
				if i == 0 && !slices.ContainsFunc(sources[1:], func(s *object) bool { return s.zset().scores.has(item.name) }) {
					out.setScore(item.name, item.score)
				}
				continue
			}
			score := weighted(item.score, op.weights[i])
			if was, there := out.zset().scores.get(item.name); there {
				score = op.fold(was, score)
			}
			out.setScore(item.name, score)
		}
	}
	if op.what != 'i' {
		return out.items()
	}
	return slices.DeleteFunc(out.items(), func(item zitem) bool {
		return slices.ContainsFunc(sources, func(s *object) bool { return !s.zset().scores.has(item.name) })
	})
}

func cmdZintercard(c *Conn, args [][]byte) {
	sources := c.parseSources(args[1:], "zintercard")
	limit := c.parseLimit(args[2+len(sources):])
	op := zoperation{what: 'i', fold: addScores, weights: make([]float64, len(sources))}
	c.writeLimited(len(op.run(sources)), limit)
}
