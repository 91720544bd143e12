// Package holdcount judges the counts of nested holds.
package holdcount

import (
	"slices"
	"sort"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/servers"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// The rules of hold-count.
const (
	WrongCount      = iota // the count in a reply is not the depth
	OwnerRefused           // the owner could not acquire its own lock again
	OverReleased           // a release succeeded although all levels had been released
	FreedTooSoon           // another was granted the lock after an inner release
	HeldTooLong            // a try was refused after the last release
	CountLapsed            // acquits: the promise had ended, so that the count may have started again
	CountUnproved          // acquits: the depth of an owner with unknown outcomes is not certain
	serverCount            // a server has another count
	TakenAgain             // a lock that is not reentrant was granted to its holder
	upgraded               // a reader was granted the lock for writing, although the lock states that it refuses upgrades
	strangerRefused        // an owner that did not hold the lock was refused as its holder
	otherToken             // a writer entered the lock again and got another token
)

// Check judges a lock that its owner can acquire several times: it is free after as many releases, not fewer
// and not more (redisson#7367: an acquire that was sent twice counted twice and was never freed).
//
// The depth of a sequential owner is known by counting, unless an operation of unknown outcome is among its
// operations; such owners are not judged. A count is compared only while the promise of the hold is in force: after
// that it may be another hold, which counts from one. The other rules follow from the intervals of package exclusion.
// All take linear time, except for a binary search for each refused try.
//
// Reading and writing are counted separately. Releases seldom record a mode; so after one by an owner that does both,
// and until it has released both, only the sum of its counts is certain, and only a count that exceeds it is a
// violation. A lock that is meant to be a plain mutex (Options.LockKind) must not be granted again to its holder.
func Check(v *bounds.View, o given.Options) property.Result {
	c := holdCounts{View: v, o: o, found: finding.New(o)}
	if len(v.Levels) > 0 || len(v.Counted) > 0 || len(v.Orphans) > 0 {
		c.judge()
	}
	c.judgeReentryTokens()
	c.judgeUpgrades()
	c.judgeReentered()
	finding.AddWrongHolds(v, servers.HeldMiscounted, serverCount, c.found)
	r := c.found.Result(property.HoldCount, func(f finding.Finding) property.Violation { return holdCountViolation(v, f) })
	r.Counts = map[string]int64{"counts": int64(c.counted), "nested": int64(c.nested)}
	switch {
	case r.Outcome == property.Violated:
	case c.counted == 0 && c.nested == 0 && v.Unjudged(func(s *history.Span) bool { return s.Count != 0 }):
		r.Outcome, r.Summary = property.Undecided, ledger.UnknownHolds(v.UnknownCounts)
	case c.counted == 0 && c.nested == 0 && len(v.Counted) > 0:
		r.Outcome, r.Summary = property.NotApplicable, finding.UncertainCounts
	case c.counted == 0 && c.nested == 0:
		r.Outcome, r.Summary = property.NotApplicable, finding.NoCounts
	default:
		r.Summary = format.Each(c.counted, "hold count", "correct") + "; " +
			format.Each(c.nested, "nested acquire", "released")
		if c.nested > 0 && v.Kind == property.AnyKind && !slices.ContainsFunc(v.Holds,
			func(h ledger.Hold) bool { return h.Reader }) {
			r.Summary += " (if they should have been refused, use --lock-kind mutex)"
		}
	}
	return r
}

// holdCounts is one run of the check.
type holdCounts struct {
	*bounds.View
	o         given.Options
	found     *finding.Findings
	uncertain []bool                   // by owner: its depth is not known
	regranted map[ledger.OwnerKey]bool // owners that acquired a key again inside a hold
	deep      []int32                  // outermost acquires of holds that were entered again
	counted   int                      // counts compared
	nested    int
}

// judge judges the recorded levels, then their consequences for other owners.
func (c *holdCounts) judge() {
	c.findUncertain()
	for _, i := range c.View.Counted {
		if !c.uncertain[c.H.Spans[i].Owner] {
			c.counted++
		}
	}
	c.regranted = make(map[ledger.OwnerKey]bool)
	for _, l := range refs.All(c.Levels) {
		if l.Kind == ledger.Reentered && !c.uncertain[c.H.Spans[l.Span].Owner] {
			c.nested++
			c.deep = append(c.deep, c.Holds[l.Hold].Span)
			c.regranted[ledger.OwnerKey{Owner: c.H.Spans[l.Span].Owner, Key: c.H.Spans[l.Span].Key}] = true
		}
	}
	reentrant := (c.nested > 0 && c.Kind != property.Mutex) || c.Kind == property.Reentrant ||
		c.Kind == property.ReadersWriterLock
	timedOut := slices.Sorted(slices.Values(c.H.TimedOut))
	for i, l := range refs.All(c.Levels) {
		s := &c.H.Spans[l.Span]
		if c.uncertain[s.Owner] || l.Lapsed && c.o.Applies(CountLapsed) {
			continue
		}
		f := finding.Finding{X: i, Y: l.Span, Start: s.Return, End: s.Return}
		switch _, gaveUp := slices.BinarySearch(timedOut, l.Span); {
		case l.Kind == ledger.WrongDepth:
			f.Rule = WrongCount
			c.found.Add(f)
		case l.ModeUnknown:
		case l.Kind == ledger.Reentered && (c.Kind == property.Mutex || c.o.States(promise.RefusesReentry)):
			if f.Rule = TakenAgain; !c.mayBeGone(l) {
				c.found.Add(f)
			}
		case l.Kind == ledger.Refused && reentrant &&
			(s.Busy || gaveUp || s.Behind && c.o.States(promise.WriterPreference) && !s.Write):
			f.Rule, f.Start = OwnerRefused, s.Call
			c.found.Add(f)
		case c.o.States(promise.CountsHolds) && s.Count == 0 && (l.Kind == ledger.Reentered ||
			l.Kind == ledger.ReleasedInner) &&
			!c.reportedLoss(s):
			f.Rule = WrongCount
			c.found.Add(f)
		case l.Kind == ledger.ReleasedInner:
			c.freed(l)
		}
	}
	for _, i := range c.Orphans {
		c.overRelease(i)
	}
	c.judgeRefusedWhileFree()
}

// reportedLoss reports whether a loss of a level of the owner's hold was reported: servers may count that level or not.
func (c *holdCounts) reportedLoss(s *history.Span) bool {
	return slices.ContainsFunc(c.H.Notices, func(n history.Notice) bool {
		return n.F == history.Lost && n.Owner == s.Owner && n.Key == s.Key
	})
}

// findUncertain finds the owners with unknown holds, with an operation of unknown outcome, or with a lost hold.
func (c *holdCounts) findUncertain() {
	c.uncertain = make([]bool, len(c.H.Owners))
	for owner, is := range c.OwnerOrder {
		c.uncertain[owner] = is == ledger.OrdUnknown
	}
	for _, s := range refs.At(c.H.Spans, c.Rare) {
		if s.Outcome == history.Info && excuse.IsLockOp(s) && c.o.Applies(CountUnproved) {
			c.uncertain[s.Owner] = true
		}
	}
	for _, h := range refs.All(c.Holds) {
		if h.Ending == ledger.EndLost && (h.Extra().LostLevels == 0 || c.EndOf(h) != property.Released) {
			c.uncertain[h.Owner] = true
		}
	}
}

// overRelease judges a release that succeeded although its owner had released all levels.
func (c *holdCounts) overRelease(i int32) {
	s := &c.H.Spans[i]
	last, before := c.LastHold(s.Owner, s.Key, s.Call)
	if !before || c.Holds[last].Span > i || c.uncertain[s.Owner] || c.H.Limit(s.Key) != 0 {
		return
	}
	if c.regranted[ledger.Of(s)] || c.counted > 0 {
		c.found.Add(finding.Finding{Rule: OverReleased, X: c.Holds[last].Span, Y: i, Start: s.Call, End: s.Return})
	}
}

// freed looks for a grant to another owner after an inner release, while the owner still held the lock and its
// promise was in force.
func (c *holdCounts) freed(l *ledger.Level) {
	r, x := &c.H.Spans[l.Span], &c.Holds[l.Hold]
	holds := c.ByKey[r.Key]
	n := sort.Search(len(holds), func(n int) bool { return c.Holds[holds[n]].From > r.Return })
	for ; n < len(holds); n++ {
		y := &c.Holds[holds[n]]
		if y.From+c.o.ClockError >= x.Until {
			return
		}
		if y.Owner == r.Owner || (y.Reader && x.Reader) || y.Until-y.From <= c.o.ClockError {
			continue
		}
		if x.PromisedAt(y.From) || !c.o.Applies(CountLapsed) {
			c.found.Add(finding.Finding{Rule: FreedTooSoon, X: l.Span, Y: y.Span, Start: y.From,
				End: c.Clipped(segment.Of(y.From, min(x.Until, y.Until)))})
		}
		return
	}
}
