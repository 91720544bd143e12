package engine

import (
	"math"
	"math/rand/v2"
)

// randomCount parses how many random elements to return, or writes the error; negative:
// with repetition.
func (c *Conn) randomCount(b []byte) (int64, bool) {
	n, ok := c.integer(b)
	if ok && n == math.MinInt64 {
		c.WriteError("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
		return 0, false
	}
	return n, ok
}

// randomPairs parses the count and the option of HRANDFIELD and ZRANDMEMBER, or writes
// the error.
func (c *Conn) randomPairs(args [][]byte, option string) (count int64, pairs, ok bool) {
	if len(args) < 3 {
		return 1, false, true
	}
	if count, ok = c.randomCount(args[2]); !ok {
		return 0, false, false
	}
	pairs = len(args) == 4 && is(args[3], option)
	switch {
	case len(args) > 3 && !pairs:
		c.WriteError(errSyntax)
		return 0, false, false
	case pairs && (count < -math.MaxInt64/2 || count > math.MaxInt64/2):
		c.WriteError("ERR value is out of range")
		return 0, false, false
	}
	return count, pairs, true
}

// pick draws at most count different keys; if count is negative, -count keys with
// repetition, but at most 2^24: Redis would run out of memory.
func pick[V any](d *dict[V], r *rand.Rand, count int64) []string {
	if d.len() == 0 || count == 0 {
		return nil
	}
	if count < 0 {
		names := make([]string, 0, min(-count, 1<<20))
		for count = max(count, -1<<24); count < 0; count++ {
			names = append(names, d.any(r))
		}
		return names
	}
	names := make([]string, 0, d.len())
	for name := range d.all() {
		names = append(names, name)
	}
	if count >= int64(len(names)) {
		return names
	}
	for i := range count {
		j := i + r.Int64N(int64(len(names))-i)
		names[i], names[j] = names[j], names[i]
	}
	return names[:count]
}
