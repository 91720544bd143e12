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

// parseZop parses "numkeys key … [WEIGHTS …] [AGGREGATE …] [WITHSCORES]", or writes the
// error.
func (c *Conn) parseZop(args [][]byte, name string, store bool) (op zoperation, sources []*object, ok bool) {
	if sources, ok = c.parseSources(args, name); !ok {
		return op, nil, false
	}
	n := len(sources)
	op = zoperation{what: name[1], fold: addScores, weights: make([]float64, n)}
	for i := range op.weights {
		op.weights[i] = 1
	}
	ok = c.zopOptions(&op, args[1+n:], store)
	return op, sources, ok
}

// parseSources parses "numkeys key …" and finds the sets, or writes the error.
func (c *Conn) parseSources(args [][]byte, name string) ([]*object, bool) {
	n, ok := c.integer(args[0])
	if !ok {
		return nil, false
	}
	if n < 1 {
		c.WriteError("ERR at least 1 input key is needed for '" + name + "' command")
		return nil, false
	}
	if n > int64(len(args)-1) {
		c.WriteError(errSyntax)
		return nil, false
	}
	return c.zsources(args[1 : 1+n])
}

// zopOptions parses the options after the keys.
func (c *Conn) zopOptions(op *zoperation, rest [][]byte, store bool) bool {
	folds := map[string]func(a, b float64) float64{"sum": addScores, "min": math.Min, "max": math.Max}
	n := len(op.weights)
	for len(rest) > 0 {
		used := 0
		switch {
		case op.what != 'd' && is(rest[0], "weights") && len(rest) > n:
			for i := range op.weights {
				f, ok := parseFloat(rest[1+i])
				if !ok {
					c.WriteError("ERR weight value is not a float")
					return false
				}
				op.weights[i] = f
			}
			used = 1 + n
		case op.what != 'd' && is(rest[0], "aggregate") && len(rest) > 1:
			op.fold, used = folds[string(lowerInto(nil, rest[1]))], 2
		case !store && is(rest[0], "withscores"):
			op.scores, used = true, 1
		}
		if used == 0 || op.fold == nil {
			c.WriteError(errSyntax)
			return false
		}
		rest = rest[used:]
	}
	return true
}

// zsource is one of the source sets; in a plain set every score is one.
func (c *Conn) zsource(key []byte) (*object, bool) {
	o := c.find(key)
	switch {
	case o == nil:
		return newZSet(), true
	case o.kind == kindZSet:
		return o, true
	case o.kind == kindSet:
		z := newZSet()
		for _, name := range o.memberList() {
			z.setScore(name, 1)
		}
		return z, true
	}
	c.WriteError(wrongType)
	return nil, false
}

func (c *Conn) zsources(keys [][]byte) ([]*object, bool) {
	sources := make([]*object, len(keys))
	for i, key := range keys {
		var ok bool
		if sources[i], ok = c.zsource(key); !ok {
			return nil, false
		}
	}
	return sources, true
}

func (c *Conn) zop(args [][]byte, dest []byte, name string) {
	op, sources, ok := c.parseZop(args, name, dest != nil)
	if !ok {
		return
	}
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
	sources, ok := c.parseSources(args[1:], "zintercard")
	if !ok {
		return
	}
	limit, ok := c.parseLimit(args[2+len(sources):])
	if !ok {
		return
	}
	op := zoperation{what: 'i', fold: addScores, weights: make([]float64, len(sources))}
	c.writeLimited(len(op.run(sources)), limit)
}
