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
)

func holdCountRules() []string {
	return []string{wrongCount: "wrong-count", ownerRefused: "owner-refused", overReleased: "over-release",
		freedTooSoon: "freed-too-soon", heldTooLong: "held-too-long", countLapsed: "promise-over",
		countUnproved: "unknown-depth"}
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
	inner  []inner // releases that left the lock held
	again  []int32 // outermost acquires of holds that were taken again
	vain   []inner // acquires and tries of owners that were refused what they held
	told   int     // counts compared
	nested int
}

// depth is how deep an owner is in a key.
type depth struct {
	key, next int32 // next: 1 + another key of the same owner
	now, top  int32
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
	gaveUp := slices.Sorted(slices.Values(c.h.GaveUp))
	for i := range c.h.Spans {
		s := &c.h.Spans[i]
		for len(gaveUp) > 0 && int(gaveUp[0]) < i {
			gaveUp = gaveUp[1:]
		}
		c.span(int32(i), s, s.Busy || (len(gaveUp) > 0 && int(gaveUp[0]) == i))
	}
	for _, i := range c.orphans {
		c.orphan(i)
	}
	if c.nested > 0 {
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

// of is the depth of an owner in a key.
func (c *depths) of(s *history.Span) *depth {
	for n := c.first[s.Owner]; n > 0; n = c.all[n-1].next {
		if c.all[n-1].key == s.Key {
			return &c.all[n-1]
		}
	}
	c.all = append(c.all, depth{key: s.Key, next: c.first[s.Owner], grant: -1})
	c.first[s.Owner] = int32(len(c.all))
	return &c.all[len(c.all)-1]
}

func (c *depths) span(i int32, s *history.Span, refused bool) {
	if c.first[s.Owner] < 0 || (!isLockOp(s) && s.Op != history.OpRenew) || s.Outcome == history.Info {
		return
	}
	d := c.of(s)
	switch {
	case s.Op == history.OpRenew:
		if s.Outcome == history.OK && d.now > 0 && (s.Valid != 0 || s.Lease > 0) {
			d.valid = max(d.valid, promised(s))
		}
	case s.Op == history.OpRelease:
		c.release(i, s, d)
	case s.Outcome == history.OK:
		c.acquire(i, s, d)
	case refused && d.now > 0 && c.sure(s, d):
		c.vain = append(c.vain, inner{d.grant, i})
	}
}

// sure says whether the owner certainly held the key all through s.
func (c *depths) sure(s *history.Span, d *depth) bool {
	return s.Return < d.valid || !c.o.obeys(countLapsed)
}

func (c *depths) acquire(i int32, s *history.Span, d *depth) {
	if d.now == 0 {
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
	d.valid = max(d.valid, promised(s))
	d.now++
	d.top = max(d.top, d.now)
	c.compare(i, s, d, sure)
}

func (c *depths) release(i int32, s *history.Span, d *depth) {
	if d.now == 0 || s.Outcome != history.OK {
		return
	}
	d.now--
	if sure := c.sure(s, d); sure {
		c.compare(i, s, d, true)
		if d.now > 0 {
			c.inner = append(c.inner, inner{d.grant, i})
		}
	}
}

// compare compares the count in an answer, if it has one, with the depth.
func (c *depths) compare(i int32, s *history.Span, d *depth, sure bool) {
	if s.Count == 0 || !sure {
		return
	}
	c.told++
	if s.Count != d.now {
		c.found.add(finding{rule: wrongCount, x: d.grant, y: i, start: s.Return, end: s.Return})
	}
}

// orphan is a release that was right although its owner held nothing any more.
func (c *depths) orphan(i int32) {
	s := &c.h.Spans[i]
	if c.first[s.Owner] <= 0 {
		return
	}
	if d := c.of(s); d.grant >= 0 && (d.top > 1 || c.told > 0) {
		c.found.add(finding{rule: overReleased, x: d.grant, y: i, start: s.Call, end: s.Return})
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

// stuck looks for tries that were refused after the last release of a hold
// that had been taken more than once, when nobody can have held the lock: by
// the argument of linear.go.
func (c *depths) stuck() {
	if len(c.again) == 0 {
		return
	}
	unknown := c.firstUnknown()
	slices.Sort(c.again)
	for i := range c.h.Spans {
		s := &c.h.Spans[i]
		if !s.Busy || unknown[s.Key] <= s.Return {
			continue
		}
		holds := c.byKey[s.Key]
		n := sort.Search(len(holds), func(n int) bool { return c.holds[holds[n]].from >= s.Call }) - 1
		if n < 0 {
			continue
		}
		_, again := slices.BinarySearch(c.again, c.holds[holds[n]].span)
		if again && !c.explained(holds, never, segment{s.Call, s.Return}, c.o.ClockError) {
			c.found.add(finding{rule: heldTooLong, x: holds[n], y: int32(i), start: s.Call, end: s.Return})
		}
	}
}

func (v *view) holdCountViolation(f finding) Violation {
	switch f.rule {
	case freedTooSoon:
		r, y := &v.h.Spans[f.x], &v.holds[f.y]
		w := v.spanPair(r, &v.h.Spans[y.span], "a lock that its owner took several times is free after as many releases")
		w.Events = []int{int(r.Ended), v.granted(y)}
		w.Text = fmt.Sprintf("client %d released one of its holds of %s at %s and was still inside, but client %d was "+
			"granted it at %s", w.Clients[0], keyName(w.Key), at(r.Return), w.Clients[1], at(y.from))
		return w
	case heldTooLong:
		x, s := &v.holds[f.x], &v.h.Spans[f.y]
		w := v.spanPair(&v.h.Spans[x.span], s, "a lock is free when it was released as often as it was taken")
		w.Events = []int{int(x.ended), int(s.Invoked), int(s.Ended)}
		w.Text = fmt.Sprintf("client %d had released %s as often as it had taken it by %s, but client %d was refused it "+
			"at %s",
			w.Clients[0], keyName(w.Key), at(x.back), w.Clients[1], at(s.Return))
		return w
	}
	g, s := &v.h.Spans[f.x], &v.h.Spans[f.y]
	w := v.spanPair(g, s, "")
	w.Clients, w.Owners = w.Clients[1:], w.Owners[1:]
	w.Events = []int{int(g.Ended), int(s.Ended)}
	if f.x == f.y {
		w.Events[0] = int(s.Invoked)
	}
	who, key := w.Clients[0], keyName(w.Key)
	switch f.rule {
	case wrongCount:
		w.Rule = "the count that an answer tells is how often the owner holds the lock"
		w.Text = fmt.Sprintf("client %d was told at %s that it holds %s %d times, and it is %d", who, at(s.Return), key,
			s.Count, v.depthAfter(f.x, f.y))
	case ownerRefused:
		w.Rule = "an owner can take again what it holds"
		w.Text = fmt.Sprintf("client %d was refused %s at %s although it held it since %s", who, key, at(s.Return),
			at(g.Return))
	case overReleased:
		w.Rule = "a lock can be released as often as it was taken, and not more"
		w.Text = fmt.Sprintf("client %d released %s at %s once more than it had taken it, and was told that this was right",
			who, key, at(s.Return))
	}
	return w
}

// spanPair is a violation about two operations.
func (v *view) spanPair(x, y *history.Span, rule string) Violation {
	return Violation{
		Rule: rule, Key: v.h.Keys[y.Key], Class: BrokenPromise,
		Clients: []int{x.Process.Client(v.h.Clients), y.Process.Client(v.h.Clients)},
		Owners:  []string{v.h.Owners[x.Owner], v.h.Owners[y.Owner]},
	}
}

// depthAfter is how deep an owner is after span y, if its hold began with span x.
func (v *view) depthAfter(x, y int32) (n int) {
	o := v.h.Spans[x].Owner
	for i := x; i <= y; i++ {
		s := &v.h.Spans[i]
		switch {
		case s.Owner != o || s.Key != v.h.Spans[x].Key || s.Outcome != history.OK:
		case s.Op == history.OpRelease:
			n--
		case s.Op == history.OpAcquire || s.Op == history.OpTry:
			n++
		}
	}
	return n
}
