package checker

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// The rules of hold-count.
const (
	wrongCount    = iota // the count in an answer is not the depth
	ownerRefused         // the owner could not take what it held
	overReleased         // a release was right although all had been given back
	freedTooSoon         // another was granted the lock after an inner release
	heldTooLong          // a try was refused after the last release
	countLapsed          // acquits: the promise had run out, so that counting may have begun anew
	countUnproved        // acquits: an owner with unknown outcomes has no certain depth
	takenAgain           // a lock that is not reentrant was granted to its own holder
)

func holdCountRules() []string {
	return []string{wrongCount: "wrong-count", ownerRefused: "owner-refused", overReleased: "over-release",
		freedTooSoon: "freed-too-soon", heldTooLong: "held-too-long", countLapsed: "promise-over",
		countUnproved: "unknown-depth", takenAgain: "taken-again"}
}

// checkHoldCount judges a lock that its owner can take again and again: as many
// releases as acquires free it, not fewer and not more (redisson#7367: one
// acquire, sent twice, counted twice and was never freed).
//
// An owner does one thing after another, so its depth is known by counting, as
// long as no operation of unknown outcome is among them; such owners are not
// judged. A count is compared only while the hold's promise is in force: after
// that it may be another hold, which counts from one. The other rules follow
// from the extents of exclusion.go. All are linear but for a binary search for
// each refused try.
//
// Reading and writing are counted apart. Releases seldom tell in which mode they
// are; so after one by an owner that does both, and until all is given back, only
// the sum of its counts is certain, and no more is judged than that nothing
// exceeds it. A lock that is meant to be a plain mutex (Options.LockKind) may not
// be granted again to its holder at all.
func checkHoldCount(v *view, o Options) Result {
	c := depths{view: v, o: o, found: newFindings(o)}
	if c.wanted() {
		c.walk()
	}
	r := c.found.result(HoldCount, v.holdCountViolation)
	r.Counts = map[string]int64{"counts": int64(c.told), "nested": int64(c.nested)}
	switch {
	case r.Outcome == Violated:
	case c.told == 0 && c.nested == 0:
		r.Outcome, r.Summary = NotApplicable, "no owner took the lock twice, and no answer told a count"
	default:
		r.Summary = fmt.Sprintf("%s told, each right; %s, each given back", plural(c.told, "hold count"),
			plural(c.nested, "nested acquire"))
		if c.nested > 0 && v.kind == AnyKind && !slices.ContainsFunc(v.holds, func(h hold) bool { return h.reader }) {
			r.Summary += " (if it should have been refused, say --lock-kind mutex)"
		}
	}
	return r
}

// depths follows the owners through their programs.
type depths struct {
	*view
	o      Options
	found  *findings
	first  []int32 // by owner: 1 + its first depth in all; -1: its depth is not certain
	all    []depth
	wide   map[depthPlace]int32 // of owners with many depths, the same by key; see seek
	inner  []inner              // releases that left the lock held
	again  []int32              // outermost acquires of holds that were taken again
	vain   []inner              // acquires and tries of owners that were refused what they held
	over   []inner              // releases by owners that had given back what they held
	told   int                  // counts compared
	nested int
}

// depth is how deep an owner is in a key.
type depth struct {
	key, next int32 // next: 1 + another depth of the same owner
	now, top  int32
	reader    bool
	blurred   bool          // reading and writing of it cannot be told apart any more
	valid     time.Duration // end of the promise
	grant     int32         // span of the outermost acquire; -1: it never had it
	nested    bool          // it was taken again since
}

// inner is an operation of an owner inside its hold.
type inner struct{ grant, span int32 }

// wanted says whether there is anything to count: an owner that took a key
// twice, or an answer with a count.
func (c *depths) wanted() bool {
	if cap(c.holds) > len(c.holds) || len(c.orphans) > 0 {
		return true
	}
	for i := range c.h.Spans {
		if c.h.Spans[i].Count != 0 {
			return true
		}
	}
	return false
}

// walk counts, then looks at what the counts say about others.
func (c *depths) walk() {
	c.first = make([]int32, len(c.h.Owners))
	for i := range c.h.Spans {
		if s := &c.h.Spans[i]; c.uncertain(s) {
			c.first[s.Owner] = -1
		}
	}
	for i := range c.holds { // lost holds: counting begins anew, nobody knows when
		if h := &c.holds[i]; h.ending == gone {
			c.first[h.owner] = -1
		}
	}
	gaveUp, orphans := slices.Sorted(slices.Values(c.h.TimedOut)), slices.Sorted(slices.Values(c.orphans))
	for i := range c.h.Spans {
		s := &c.h.Spans[i]
		for len(gaveUp) > 0 && int(gaveUp[0]) < i {
			gaveUp = gaveUp[1:]
		}
		if len(orphans) > 0 && int(orphans[0]) == i {
			c.orphan(orphans[0])
			orphans = orphans[1:]
		}
		c.span(int32(i), s, s.Busy || (len(gaveUp) > 0 && int(gaveUp[0]) == i))
	}
	for _, n := range c.over {
		c.overRelease(n)
	}
	if (c.nested > 0 && c.kind != Mutex) || c.kind == Reentrant || c.kind == SharedLock {
		for _, n := range c.vain {
			s := &c.h.Spans[n.span]
			c.found.add(finding{rule: ownerRefused, x: n.grant, y: n.span, start: s.Call, end: s.Return})
		}
	}
	c.freed()
	c.stuck()
}

// uncertain says that after s nobody can count any more.
func (c *depths) uncertain(s *history.Span) bool {
	if c.order[s.Owner] == tangled || c.h.Limit(s.Key) != 0 {
		return true
	}
	return s.Outcome == history.Info && isLockOp(s) && c.o.obeys(countUnproved)
}

// depthPlace is an owner at a key, to read or to write.
type depthPlace struct {
	place
	reader bool
}

// seek is the depth of an owner in a key, to read or to write; nil if it never
// took it so. Of an owner with many the list holds the latest, and wide all.
func (c *depths) seek(s *history.Span, reader bool) *depth {
	steps := 0
	for n := c.first[s.Owner]; n > 0 && steps <= fewHolds; n = c.all[n-1].next {
		if d := &c.all[n-1]; d.key == s.Key && d.reader == reader {
			return d
		}
		steps++
	}
	if steps <= fewHolds {
		return nil
	}
	if n := c.wide[depthPlace{place{s.Owner, s.Key}, reader}]; n > 0 {
		return &c.all[n-1]
	}
	return nil
}

// widen lists all depths of the owner of s that are not listed yet: those before
// one that is are.
func (c *depths) widen(s *history.Span) {
	steps := 0
	for n := c.first[s.Owner]; n > 0; n = c.all[n-1].next {
		if steps++; steps > fewHolds {
			break
		}
	}
	if steps <= fewHolds {
		return
	}
	if c.wide == nil {
		c.wide = make(map[depthPlace]int32)
	}
	for n := c.first[s.Owner]; n > 0; n = c.all[n-1].next {
		at := depthPlace{place{s.Owner, c.all[n-1].key}, c.all[n-1].reader}
		if c.wide[at] > 0 {
			return
		}
		c.wide[at] = n
	}
}

// of is the same, and makes one if there is none.
func (c *depths) of(s *history.Span, reader bool) *depth {
	if d := c.seek(s, reader); d != nil {
		return d
	}
	c.all = append(c.all, depth{key: s.Key, reader: reader, next: c.first[s.Owner], grant: -1})
	c.first[s.Owner] = int32(len(c.all))
	c.widen(s)
	return &c.all[len(c.all)-1]
}

func (c *depths) span(i int32, s *history.Span, refused bool) {
	if c.first[s.Owner] < 0 || (!isLockOp(s) && s.Op != history.OpRenew) || s.Outcome == history.Info {
		return
	}
	switch {
	case s.Op == history.OpRenew:
		for _, d := range []*depth{c.seek(s, false), c.seek(s, true)} {
			if d != nil && s.Outcome == history.OK && d.now > 0 && (s.Valid != 0 || s.Lease > 0) {
				d.valid = max(d.valid, promised(s))
			}
		}
	case s.Op == history.OpRelease:
		c.release(i, s)
	case s.Outcome == history.OK:
		c.acquire(i, s, c.of(s, !s.Write))
	case refused:
		if d := c.seek(s, !s.Write); d != nil && d.now > 0 && !d.blurred && c.sure(s, d) {
			c.vain = append(c.vain, inner{d.grant, i})
		}
	}
}

// sure says whether the owner certainly held the key all through s.
func (c *depths) sure(s *history.Span, d *depth) bool {
	return s.Return < d.valid || !c.o.obeys(countLapsed)
}

func (c *depths) acquire(i int32, s *history.Span, d *depth) {
	if d.now == 0 {
		other := c.seek(s, !d.reader)
		d.blurred = other != nil && other.now > 0 && other.blurred
		d.grant, d.valid, d.nested = i, promised(s), false
		d.now, d.top = 1, max(d.top, 1)
		c.compare(i, s, d, true)
		return
	}
	sure := c.sure(s, d)
	if !d.nested {
		d.nested = true
		c.again = append(c.again, d.grant)
	}
	c.nested++
	if c.kind == Mutex && sure && !d.blurred {
		c.found.add(finding{rule: takenAgain, x: d.grant, y: i, start: s.Return, end: s.Return})
	}
	d.valid = max(d.valid, promised(s))
	d.now++
	d.top = max(d.top, d.now)
	c.compare(i, s, d, sure)
}

// released is the depth that a release makes less, as [holdBuilder.released].
func (c *depths) released(s *history.Span) *depth {
	d, other := c.seek(s, !s.Write), c.seek(s, s.Write)
	if other == nil || other.now == 0 {
		return d
	}
	if d == nil || d.now == 0 {
		return other
	}
	d.blurred = d.blurred || s.Write
	other.blurred = d.blurred
	return d
}

func (c *depths) release(i int32, s *history.Span) {
	d := c.released(s)
	if d == nil || d.now == 0 || s.Outcome != history.OK {
		return
	}
	d.now--
	if sure := c.sure(s, d); sure {
		c.compare(i, s, d, true)
		if d.now > 0 && !d.blurred {
			c.inner = append(c.inner, inner{d.grant, i})
		}
	}
}

// compare compares the count in an answer, if it has one, with the depth. Who
// reads and writes may be told of the one, or of both together.
func (c *depths) compare(i int32, s *history.Span, d *depth, sure bool) {
	if s.Count == 0 || !sure {
		return
	}
	c.told++
	both := d.now
	if other := c.seek(s, !d.reader); other != nil {
		both += other.now
	}
	if s.Count != d.now && s.Count != both && !(d.blurred && s.Count > 0 && s.Count < both) {
		c.found.add(finding{rule: wrongCount, x: d.grant, y: i, start: s.Return, end: s.Return})
	}
}

// orphan is a release that was right although its owner held nothing any more.
func (c *depths) orphan(i int32) {
	s := &c.h.Spans[i]
	for _, reader := range []bool{!s.Write, s.Write} {
		if d := c.seek(s, reader); d != nil && d.grant >= 0 {
			c.over = append(c.over, inner{d.grant, i})
			return
		}
	}
}

// overRelease judges an orphan at the end, when it is known whether the lock counts.
func (c *depths) overRelease(n inner) {
	s := &c.h.Spans[n.span]
	d := c.seek(s, !c.h.Spans[n.grant].Write)
	if d.top > 1 || c.told > 0 {
		c.found.add(finding{rule: overReleased, x: n.grant, y: n.span, start: s.Call, end: s.Return})
	}
}

// freed looks for a grant to another that came after an inner release, while
// the owner was still inside and inside its promise.
func (c *depths) freed() {
	for _, n := range c.inner {
		r := &c.h.Spans[n.span]
		holds := c.byKey[r.Key]
		x := c.holdOf(holds, n.grant)
		if x == nil {
			continue
		}
		at := sort.Search(len(holds), func(at int) bool { return c.holds[holds[at]].from > r.Return })
		for ; at < len(holds); at++ {
			y := &c.holds[holds[at]]
			if y.from+c.o.ClockError >= x.until {
				break
			}
			if y.owner == r.Owner || (y.reader && x.reader) || y.until-y.from <= c.o.ClockError {
				continue
			}
			if x.promisedAt(y.from) || !c.o.obeys(countLapsed) {
				c.found.add(finding{rule: freedTooSoon, x: n.span, y: holds[at], start: y.from,
					end: c.shown(segment{y.from, min(x.until, y.until)})})
			}
			break
		}
	}
}

// holdOf is the hold that began with a span, or nil.
func (c *depths) holdOf(holds []int32, span int32) *hold {
	from := c.h.Spans[span].Return
	n := sort.Search(len(holds), func(n int) bool { return c.holds[holds[n]].from >= from })
	for ; n < len(holds) && c.holds[holds[n]].from == from; n++ {
		if h := &c.holds[holds[n]]; h.span == span {
			return h
		}
	}
	return nil
}
