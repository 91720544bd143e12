// Package latch judges count-down latches.
package latch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of latch.
const (
	passedEarly      = iota // an await succeeded before the latch can have been open
	keptWaiting             // an await did not return although the latch was open
	armedCounting           // an arm succeeded although the latch was still counting
	refusedOpen             // an arm was refused although the latch was open
	latchGone               // an operation was refused because the latch does not exist, although it was armed
	neverArmed              // an operation succeeded on a latch that was never armed
	latchMiscounted         // a count-down, or an inspection, replied with a count that the latch cannot have had
	latchRepeated           // an arm replied with the generation of an earlier one
	latchShownOld           // an inspection showed a generation that another one had followed
	latchUsedDeleted        // an operation succeeded on a generation that had been deleted
	latchKeptDeleted        // an await did not return although the latch was deleted
	unknownArm              // acquits: an arm of unknown outcome may be another generation
	latchFault              // acquits: a fault may have changed the servers' data
	latchOutage             // acquits: the servers were unavailable
	latchPaused             // acquits: the waiter was paused
)

// Check compares the replies about latches with when each generation can have been open, see findOpenings.
// Safety is judged on the earliest opening that is possible, liveness on the latest. A latch that was armed exists
// until it may have been deleted, or until a fault may have changed the servers' data: operations that returned later
// are not judged. An arm of unknown outcome may take effect at any time, so after it operations that name no generation
// are not judged.
func Check(v *bounds.View, o given.Options) property.Result {
	all := Latches(v)
	c := check{View: v, o: o, found: finding.New(o), until: segment.Never, dis: v.AllDisturbances(o)}
	if o.Applies(latchFault) {
		for _, f := range v.FaultTimes() {
			switch {
			case f.States(history.AffectsClockBack): // until it is healed, and the clock jumps forward
				c.until = min(c.until, f.Until)
			// moved keys are not lost
			case f.MayAffect(history.AffectsData) && !excuse.AffectsWord(f.Affects, history.AffectsSlots):
				c.until = min(c.until, f.From)
			}
		}
	}
	c.away = o.ExcusedBy(latchOutage, v.Outages(o).Windows)
	judged := 0
	for _, key := range slices.Sorted(maps.Keys(all)) {
		l := all[key]
		for _, i := range l.uses {
			if v.H.Spans[i].Return < c.until {
				judged++
				c.use(l, i)
			}
		}
	}
	r := c.found.Result(property.Latch, func(f finding.Finding) property.Violation {
		return finding.Word(c.View, f,
			Rules()[f.Rule])
	})
	awaits, waited := Awaits(v, all)
	r.Counts = map[string]int64{"latch_operations": int64(judged), "awaits": int64(awaits), "awaits_waited": int64(waited)}
	switch {
	case r.Outcome == property.Violated:
	case all == nil:
		r.Outcome, r.Summary = property.NotApplicable, finding.NoLatch
	case judged == 0:
		r.Outcome, r.Summary = property.Undecided, "no reply about a latch can be judged"
	default:
		r.Summary = fmt.Sprintf("%s about latches, none of them wrong", format.Count(judged, "reply"))
	}
	return r
}

// check judges the replies about latches.
type check struct {
	*bounds.View
	o     given.Options
	found *finding.Findings
	until time.Duration // operations that returned later are not judged
	away  []segment.Segment
	dis   excuse.Disturbances
}

func (c *check) add(rule int, a *Arming, i int32, from time.Duration) {
	x := int32(-1)
	if a != nil {
		x = a.span
	}
	c.found.Add(finding.Finding{Rule: rule, X: x, Y: i, Start: from, End: c.H.Spans[i].Return})
}

// use judges one reply.
func (c *check) use(l *latchKey, i int32) {
	s := &c.H.Spans[i]
	unknown := l.unknown <= s.Return && c.o.Applies(unknownArm)
	switch {
	case s.Absent:
		c.absent(l, i)
		c.waitedDeleted(l, i)
	case s.Op == history.OpArm && s.Outcome == history.OK:
		for _, a := range refs.All(l.Armings) {
			switch {
			case a.back < s.Call && a.opens > s.Return && !l.MayBeDeleted(a, s.Return):
				c.add(armedCounting, a, i, s.Call)
				return
			case a.back < s.Call && s.Token != 0 && c.H.Spans[a.span].Token == s.Token:
				c.add(latchRepeated, a, i, s.Call)
				return
			}
		}
	case s.Op == history.OpArm && s.Armed:
		if !unknown {
			c.refused(l, i)
		}
	case s.Outcome != history.OK && !s.Armed:
	case unknown && s.Token == 0:
	default:
		c.answered(l, i, unknown)
	}
}

// absent judges an operation that was refused because the latch, or its generation, does not exist.
func (c *check) absent(l *latchKey, i int32) {
	s := &c.H.Spans[i]
	for _, a := range refs.All(l.Armings) {
		if a.back < s.Call && (s.Token == 0 || c.H.Spans[a.span].Token == s.Token) && !l.MayBeDeleted(a, s.Return) {
			c.add(latchGone, a, i, s.Call)
			return
		}
	}
}

// refused judges an arm that was refused because the latch was still counting.
func (c *check) refused(l *latchKey, i int32) {
	s := &c.H.Spans[i]
	var last *Arming
	for _, a := range refs.All(l.Armings) {
		if a.call <= s.Return && min(a.opened, a.deleted) >= s.Call {
			return
		}
		if a.call <= s.Return {
			last = a
		}
	}
	c.add(refusedOpen, last, i, s.Call)
}

// answered judges an await that succeeded or timed out, and a count-down or an inspection that succeeded.
func (c *check) answered(l *latchKey, i int32, unknown bool) {
	s := &c.H.Spans[i]
	meant := generationsOf(c.View, l, i)
	if len(meant) == 0 {
		if s.Outcome == history.OK && !unknown {
			c.add(neverArmed, nil, i, s.Call)
		}
		return
	}
	if s.Op != history.OpAwait {
		if !c.usedDeleted(meant, i) && !c.shownOld(l, meant, i) {
			c.counted(meant, i)
		}
		return
	}
	c.waitedDeleted(l, i)
	opened := s.Call // since when it should not have waited
	early := true
	for _, a := range meant {
		early = early && a.opens > s.Return
	}
	for _, a := range c.foundBy(meant, i) {
		opened = max(opened, a.opened)
	}
	last := meant[len(meant)-1]
	if early && s.Outcome == history.OK {
		c.add(passedEarly, last, i, s.Call)
		return
	}
	c.addWait(keptWaiting, last, i, opened)
}

// addWait adds an await that did not return within the slack after an instant at which it should have.
func (c *check) addWait(rule int, a *Arming, i int32, from time.Duration) {
	wait := segment.Of(from, c.H.Spans[i].Return)
	p := segment.LongestOutside(wait, c.away, c.o.ExcusedBy(latchPaused, c.ClientPauses()[c.Client(i)]))
	if from < wait.Until && p.Until-p.From > c.o.Slack() {
		c.found.Add(finding.Finding{Rule: rule, X: a.span, Y: i, Start: p.From, End: p.Until})
	}
}

// foundBy are the generations of meant that an await can have found within the slack without a fault: it waits for the
// generation that it finds, and not for a later one.
func (c *check) foundBy(meant []*Arming, i int32) []*Arming {
	s := &c.H.Spans[i]
	found := segment.Of(s.Call, segment.Later(s.Call, c.o.Slack()))
	if s.Token != 0 || c.dis.Any(found, func(*excuse.FaultTime) bool { return true }) {
		return meant
	}
	return slices.DeleteFunc(slices.Clone(meant), func(a *Arming) bool { return a.call > found.Until })
}

// counted judges the count in the reply to a count-down, if it has one, or to an inspection: the armed number, less at
// least the participants that had certainly counted it down before, and at most the ones that can have by then.
func (c *check) counted(meant []*Arming, i int32) {
	s := &c.H.Spans[i]
	if s.Count == 0 && s.Op != history.OpInspect || s.Outcome != history.OK {
		return
	}
	for _, a := range meant {
		armed := int(c.H.Spans[a.span].Asked)
		before, _ := slices.BinarySearch(a.certain, s.Call)
		if at, names := a.counted[s.Owner]; names && at >= s.Call {
			before++ // itself
		}
		by, _ := slices.BinarySearch(a.possible, s.Return+1)
		if left := int(s.Count); left >= max(0, armed-by) && left <= max(0, armed-before) {
			return
		}
	}
	c.add(latchMiscounted, meant[len(meant)-1], i, s.Call)
}

// Rules are the rules of latch.
func Rules() finding.Rules {
	return finding.Rules{
		passedEarly: {Name: "passed-early", X: finding.AnOp, Sentence: "an await returns when the latch is open",
			Text: "client $client passed latch $lock by $return, before enough participants had counted it down"},
		keptWaiting: {Name: "kept-waiting", X: finding.AnOp, Sentence: "a waiter for an open latch passes",
			Text: "client $client waited for latch $lock for $length until $end although it was open"},
		armedCounting: {Name: "armed-while-counting", X: finding.AnOp,
			Sentence: "a latch that is still counting is not armed",
			Text:     "client $client armed latch $lock by $return, while it was still counting"},
		refusedOpen: {Name: "refused-while-open", X: finding.AnOp,
			Sentence: "a latch that is open or does not exist can be armed",
			Text:     "client $client could not arm latch $lock at $return although it was not counting"},
		latchGone: {Name: "gone", X: finding.AnOp, Sentence: "a latch that was armed exists",
			Text: "at $return client $client found no latch $lock, or not its generation, although it had been armed"},
		neverArmed: {Name: "never-armed", X: finding.AnOp, Sentence: "a latch that was never armed neither opens nor counts",
			Text: "client $client passed or counted down latch $lock by $return, and it had never been armed"},
		latchMiscounted: {Name: "miscounted", X: finding.AnOp, Sentence: "a latch replies with its count",
			Text: "client $client got count $count for latch $lock at $return, which was armed with $size and cannot have " +
				"had it"},
		latchRepeated: {Name: "generation-repeated", X: finding.AnOp, Sentence: "each arm starts a new generation",
			Text: "client $client armed latch $lock at $return, and the reply has generation $token, as an earlier one had"},
		latchShownOld: {Name: "shown-old", X: finding.AnOp, Sentence: "an inspection shows the current generation",
			Text: "client $client inspected latch $lock at $return and was shown generation $token, although a later one had " +
				"been armed"},
		latchKeptDeleted: {Name: "kept-waiting-deleted", X: finding.AnOp,
			Sentence: "a client that waits for a latch is refused when the latch is deleted",
			Text:     "client $client waited for latch $lock for $length until $end although it had been deleted"},
		latchUsedDeleted: {Name: "used-deleted", X: finding.AnOp, Sentence: "operations on a deleted latch are refused",
			Text: "client $client used latch $lock at $return although it had been deleted"},
		unknownArm: {Name: "unknown-arm"}, latchFault: {Name: "data-fault"}, latchOutage: {Name: "outage"},
		latchPaused: {Name: "waiter-paused"},
	}
}
