package checker

import (
	"slices"
	"sort"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// The rules of hold-count.
const (
	wrongCount      = iota // the count in a reply is not the depth
	ownerRefused           // the owner could not acquire its own lock again
	overReleased           // a release succeeded although all levels had been released
	freedTooSoon           // another was granted the lock after an inner release
	heldTooLong            // a try was refused after the last release
	countLapsed            // acquits: the promise had ended, so that the count may have started again
	countUnproved          // acquits: the depth of an owner with unknown outcomes is not certain
	serverCount            // a server has another count
	takenAgain             // a lock that is not reentrant was granted to its holder
	upgraded               // a reader was granted the lock for writing, although the lock states that it refuses upgrades
	strangerRefused        // an owner that did not hold the lock was refused as its holder
	otherToken             // a writer entered the lock again and got another token
)

func holdCountRules() []string {
	return []string{wrongCount: "wrong-count", ownerRefused: "owner-refused", overReleased: "over-release",
		freedTooSoon: "freed-too-soon", heldTooLong: "held-too-long", countLapsed: "promise-over",
		countUnproved: "unknown-depth", takenAgain: "taken-again", serverCount: "server-count",
		upgraded: "upgraded", strangerRefused: "refused-as-holder", otherToken: "other-token"}
}

// checkHoldCount judges a lock that its owner can acquire several times: it is free after as many releases, not fewer
// and not more (redisson#7367: an acquire that was sent twice counted twice and was never freed).
//
// The depth of a sequential owner is known by counting, unless an operation of unknown outcome is among its
// operations; such owners are not judged. A count is compared only while the promise of the hold is in force: after
// that it may be another hold, which counts from one. The other rules follow from the intervals of exclusion.go. All
// take linear time, except for a binary search for each refused try.
//
// Reading and writing are counted separately. Releases seldom record a mode; so after one by an owner that does both,
// and until it has released both, only the sum of its counts is certain, and only a count that exceeds it is a
// violation. A lock that is meant to be a plain mutex (Options.LockKind) must not be granted again to its holder.
func checkHoldCount(v *view, o Options) Result {
	c := holdCounts{view: v, o: o, found: newFindings(o)}
	if len(v.levels) > 0 || len(v.counted) > 0 || len(v.orphans) > 0 {
		c.judge()
	}
	c.judgeReentryTokens()
	c.judgeUpgrades()
	c.judgeReentered()
	v.addWrongHolds(heldMiscounted, serverCount, c.found)
	r := c.found.result(HoldCount, v.holdCountViolation)
	r.Counts = map[string]int64{"counts": int64(c.counted), "nested": int64(c.nested)}
	switch {
	case r.Outcome == Violated:
	case c.counted == 0 && c.nested == 0 && v.unjudged(func(s *history.Span) bool { return s.Count != 0 }):
		r.Outcome, r.Summary = Undecided, unknownHolds(v.unknownCounts)
	case c.counted == 0 && c.nested == 0 && len(v.counted) > 0:
		r.Outcome, r.Summary = NotApplicable, uncertainCounts
	case c.counted == 0 && c.nested == 0:
		r.Outcome, r.Summary = NotApplicable, noCounts
	default:
		r.Summary = format.Each(c.counted, "hold count", "correct") + "; " +
			format.Each(c.nested, "nested acquire", "released")
		if c.nested > 0 && v.kind == AnyKind && !slices.ContainsFunc(v.holds, func(h hold) bool { return h.reader }) {
			r.Summary += " (if they should have been refused, use --lock-kind mutex)"
		}
	}
	return r
}

// holdCounts is one run of the check.
type holdCounts struct {
	*view
	o         Options
	found     *findings
	uncertain []bool            // by owner: its depth is not known
	regranted map[ownerKey]bool // owners that acquired a key again inside a hold
	deep      []int32           // outermost acquires of holds that were entered again
	counted   int               // counts compared
	nested    int
}

// judge judges the recorded levels, then their consequences for other owners.
func (c *holdCounts) judge() {
	c.findUncertain()
	for _, i := range c.view.counted {
		if !c.uncertain[c.h.Spans[i].Owner] {
			c.counted++
		}
	}
	c.regranted = make(map[ownerKey]bool)
	for _, l := range refs(c.levels) {
		if l.kind == reentered && !c.uncertain[c.h.Spans[l.span].Owner] {
			c.nested++
			c.deep = append(c.deep, c.holds[l.hold].span)
			c.regranted[ownerKey{c.h.Spans[l.span].Owner, c.h.Spans[l.span].Key}] = true
		}
	}
	reentrant := (c.nested > 0 && c.kind != Mutex) || c.kind == Reentrant || c.kind == ReadersWriterLock
	timedOut := slices.Sorted(slices.Values(c.h.TimedOut))
	for i, l := range refs(c.levels) {
		s := &c.h.Spans[l.span]
		if c.uncertain[s.Owner] || l.lapsed && c.o.applies(countLapsed) {
			continue
		}
		f := finding{x: i, y: l.span, start: s.Return, end: s.Return}
		switch _, gaveUp := slices.BinarySearch(timedOut, l.span); {
		case l.kind == wrongDepth:
			f.rule = wrongCount
			c.found.add(f)
		case l.modeUnknown:
		case l.kind == reentered && (c.kind == Mutex || c.o.states(promise.RefusesReentry)):
			if f.rule = takenAgain; !c.mayBeGone(l) {
				c.found.add(f)
			}
		case l.kind == refused && reentrant &&
			(s.Busy || gaveUp || s.Behind && c.o.states(promise.WriterPreference) && !s.Write):
			f.rule, f.start = ownerRefused, s.Call
			c.found.add(f)
		case c.o.states(promise.CountsHolds) && s.Count == 0 && (l.kind == reentered || l.kind == releasedInner) &&
			!c.reportedLoss(s):
			f.rule = wrongCount
			c.found.add(f)
		case l.kind == releasedInner:
			c.freed(l)
		}
	}
	for _, i := range c.orphans {
		c.overRelease(i)
	}
	c.judgeRefusedWhileFree()
}

// reportedLoss reports whether a loss of a level of the owner's hold was reported: servers may count that level or not.
func (c *holdCounts) reportedLoss(s *history.Span) bool {
	return slices.ContainsFunc(c.h.Notices, func(n history.Notice) bool {
		return n.F == history.Lost && n.Owner == s.Owner && n.Key == s.Key
	})
}

// findUncertain finds the owners with unknown holds, with an operation of unknown outcome, or with a lost hold.
func (c *holdCounts) findUncertain() {
	c.uncertain = make([]bool, len(c.h.Owners))
	for owner, is := range c.ownerOrder {
		c.uncertain[owner] = is == ordUnknown
	}
	for _, s := range refsAt(c.h.Spans, c.rare) {
		if s.Outcome == history.Info && isLockOp(s) && c.o.applies(countUnproved) {
			c.uncertain[s.Owner] = true
		}
	}
	for _, h := range refs(c.holds) {
		if h.ending == endLost && (h.extra().lostLevels == 0 || c.endOf(h) != Released) {
			c.uncertain[h.owner] = true
		}
	}
}

// overRelease judges a release that succeeded although its owner had released all levels.
func (c *holdCounts) overRelease(i int32) {
	s := &c.h.Spans[i]
	last, before := c.lastHold(s.Owner, s.Key, s.Call)
	if !before || c.holds[last].span > i || c.uncertain[s.Owner] || c.h.Limit(s.Key) != 0 {
		return
	}
	if c.regranted[ownerKey{s.Owner, s.Key}] || c.counted > 0 {
		c.found.add(finding{rule: overReleased, x: c.holds[last].span, y: i, start: s.Call, end: s.Return})
	}
}

// freed looks for a grant to another owner after an inner release, while the owner still held the lock and its
// promise was in force.
func (c *holdCounts) freed(l *level) {
	r, x := &c.h.Spans[l.span], &c.holds[l.hold]
	holds := c.byKey[r.Key]
	n := sort.Search(len(holds), func(n int) bool { return c.holds[holds[n]].from > r.Return })
	for ; n < len(holds); n++ {
		y := &c.holds[holds[n]]
		if y.from+c.o.ClockError >= x.until {
			return
		}
		if y.owner == r.Owner || (y.reader && x.reader) || y.until-y.from <= c.o.ClockError {
			continue
		}
		if x.promisedAt(y.from) || !c.o.applies(countLapsed) {
			c.found.add(finding{rule: freedTooSoon, x: l.span, y: y.span, start: y.from,
				end: c.clipped(segment{y.from, min(x.until, y.until)})})
		}
		return
	}
}
