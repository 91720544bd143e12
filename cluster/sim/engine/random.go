package engine

import (
	"math"
	"math/rand/v2"
)

// randomCount reads how many random elements are wanted, or writes the error;
// fewer than none: they may come again. Where Redis would exhaust its memory,
// it is refused.
func (c *Conn) randomCount(b []byte) (int64, bool) {
	n, ok := c.integer(b)
	if ok && (n < -1<<24 || n > math.MaxInt64/2) {
		c.WriteError("ERR value is out of range")
		return 0, false
	}
	return n, ok
}

// pick draws count different keys, all if there are no more; if count is
// negative, -count keys, each of which may come again.
func pick[V any](d *dict[V], r *rand.Rand, count int64) []string {
	if d.len() == 0 || count == 0 {
		return nil
	}
	if count < 0 {
		names := make([]string, 0, min(-count, 1<<20))
		for ; count < 0; count++ {
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
