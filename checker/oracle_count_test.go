package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/holdcount"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
)

// counter judges hold counts by brute force. For each owner it keeps all possible depths in writing and in reading.
type counter struct {
	h         *history.History
	kind      property.LockKind
	holds     []*naiveHold
	uncertain []bool // owners that are not judged
	worlds    [][][2]int32
	valid     [][2]time.Duration
	top       [][2]int32
	now       [][2]int32 // the assumed depths
	blur      []bool     // a release may have been of either mode
	counted   bool       // a reply had a count that could be compared
	nested    bool
	refused   bool // an owner was refused the lock that it held
	over      []int32
	broken    map[int]bool
}

// miscounted returns which rules of hold-count a history violates. The history must have no losses and no failed
// releases.
func miscounted(h *history.History, kind property.LockKind) map[int]bool {
	n := len(h.Owners)
	c := counter{h: h, kind: kind, holds: naiveHolds(h), uncertain: make([]bool, n), worlds: make([][][2]int32, n),
		valid: make([][2]time.Duration, n), top: make([][2]int32, n), now: make([][2]int32, n), blur: make([]bool, n),
		broken: make(map[int]bool)}
	for i := range h.Spans {
		if s := &h.Spans[i]; s.Outcome == history.Info {
			c.uncertain[s.Owner] = true
		}
	}
	for i := range n {
		c.worlds[i] = [][2]int32{{}}
	}
	for i := range h.Spans {
		if s := &h.Spans[i]; !c.uncertain[s.Owner] {
			c.step(s)
		}
	}
	for _, o := range c.over {
		c.broken[holdcount.OverReleased] = c.broken[holdcount.OverReleased] || max(c.top[o][0], c.top[o][1]) > 1 || c.counted
	}
	if (c.nested && kind != property.Mutex) || kind == property.Reentrant {
		c.broken[holdcount.OwnerRefused] = c.refused
	}
	c.stuck()
	return c.broken
}

func (c *counter) step(s *history.Span) {
	m, o := mode(!s.Write), s.Owner
	worlds := c.worlds[o]
	has := func(m int) bool {
		return !slices.ContainsFunc(worlds, func(w [2]int32) bool { return w[m] == 0 })
	}
	sure := s.Return < c.valid[o][m]
	switch {
	case s.Op == history.OpRelease:
		c.release(s)
	case s.Outcome == history.OK:
		inside := c.now[o][m] > 0
		if inside {
			c.nested = true
			c.broken[holdcount.TakenAgain] = c.broken[holdcount.TakenAgain] ||
				(c.kind == property.Mutex && sure && !c.blur[o] && has(m))
			if p := ledger.Promised(s); s.Return <= c.valid[o][m] || p > s.Return { // the new promise replaces the old one
				c.valid[o][m] = max(s.Return, p)
			}
		} else {
			c.valid[o][m] = ledger.Promised(s)
		}
		c.now[o][m]++
		for i := range worlds {
			worlds[i][m]++
			c.top[o][m] = max(c.top[o][m], worlds[i][m])
		}
		if sure || !inside {
			c.count(s, m)
		}
	case s.Busy && has(m) && !c.blur[o] && sure:
		c.refused = true
	}
}

// count records whether the count in a reply can be right: the count of the mode of the operation, or of both.
func (c *counter) count(s *history.Span, modes ...int) {
	if s.Count == 0 {
		return
	}
	c.counted = true
	for _, w := range c.worlds[s.Owner] {
		if s.Count == w[0]+w[1] {
			return
		}
		for _, m := range modes {
			if s.Count == w[m] || (c.blur[s.Owner] && s.Count == w[1-m]) {
				return
			}
		}
	}
	c.broken[holdcount.WrongCount] = true
}

func (c *counter) release(s *history.Span) {
	o := s.Owner
	var after [][2]int32
	first := mode(!s.Write)
	both := false
	for _, w := range c.worlds[o] {
		if w == [2]int32{} {
			if c.top[o] != [2]int32{} {
				c.over = append(c.over, o)
			}
			return
		}
		both = both || (w[0] > 0 && w[1] > 0)
		for m := range w {
			if w[m] == 0 || (m != first && w[first] > 0 && !s.Write) { // a release with mode read ends reading
				continue
			}
			next := w
			if next[m]--; !slices.Contains(after, next) {
				after = append(after, next)
			}
		}
	}
	c.worlds[o] = after
	released := first // whose promise counts; without a mode, writing ends first
	if c.now[o][first] == 0 {
		released = 1 - first
	}
	c.now[o][released]--
	c.blur[o] = c.blur[o] || (both && s.Write)
	if s.Return < c.valid[o][released] {
		c.count(s, released)
		c.freed(s, released)
	}
	if !slices.ContainsFunc(c.worlds[o], func(w [2]int32) bool { return w != [2]int32{} }) {
		c.blur[o] = false
	}
}

// freed looks for the first grant to another owner after a release that left its owner a level.
func (c *counter) freed(s *history.Span, m int) {
	if c.blur[s.Owner] || slices.ContainsFunc(c.worlds[s.Owner], func(w [2]int32) bool { return w[m] == 0 }) {
		return
	}
	var x, next *naiveHold
	for _, y := range c.holds {
		if y.owner == s.Owner && mode(y.reader) == m && y.span.Ended < s.Invoked && y.until >= s.Return {
			x = y
		}
	}
	if x == nil {
		return
	}
	for _, y := range c.holds {
		if y.owner == s.Owner || (y.reader && x.reader) || y.from <= s.Return || y.from >= x.until || y.until == y.from {
			continue
		}
		if next == nil || y.from < next.from {
			next = y
		}
	}
	if next != nil && x.promisedAt(next.from) {
		c.broken[holdcount.FreedTooSoon] = true
	}
}

// stuck looks for refused tries after the last release of a hold that was nested.
func (c *counter) stuck() {
	for i := range c.h.Spans {
		s := &c.h.Spans[i]
		if !s.Busy {
			continue
		}
		explained, nested := false, false
		last := &naiveHold{from: -1}
		for n := range c.h.Spans {
			u := &c.h.Spans[n]
			explained = explained || (u.Outcome == history.Info && u.Op != history.OpRelease && u.Call <= s.Return)
		}
		for _, x := range c.holds {
			if x.from >= s.Call {
				explained = explained || x.called <= s.Return
				continue
			}
			explained = explained || x.back >= s.Call
			if x.from > last.from || (x.from == last.from && x.until >= last.until) {
				nested, last = x.nested && !c.uncertain[x.owner], x
			}
		}
		c.broken[holdcount.HeldTooLong] = c.broken[holdcount.HeldTooLong] || (nested && !explained)
	}
}
