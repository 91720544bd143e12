package checker

import (
	"fmt"
	"maps"
	"slices"
	"time"

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

func latchRules() []string {
	return []string{passedEarly: "passed-early", keptWaiting: "kept-waiting", armedCounting: "armed-while-counting",
		refusedOpen: "refused-while-open", latchGone: "gone", neverArmed: "never-armed", latchMiscounted: "miscounted",
		latchRepeated: "generation-repeated", latchShownOld: "shown-old", latchUsedDeleted: "used-deleted",
		latchKeptDeleted: "kept-waiting-deleted",
		unknownArm:       "unknown-arm", latchFault: "data-fault", latchOutage: "outage", latchPaused: "waiter-paused"}
}

// checkLatch compares the replies about latches with when each generation can have been open, see findOpenings.
// Safety is judged on the earliest opening that is possible, liveness on the latest. A latch that was armed exists
// until it may have been deleted, or until a fault may have changed the servers' data: operations that returned later
// are not judged. An arm of unknown outcome may take effect at any time, so after it operations that name no generation
// are not judged.
func checkLatch(v *view, o Options) Result {
	all := v.latches()
	c := latchCheck{view: v, o: o, found: newFindings(o), until: never, dis: v.allDisturbances(o)}
	if o.applies(latchFault) {
		for _, f := range v.faultTimes() {
			switch {
			case f.states(history.AffectsClockBack): // until it is healed, and the clock jumps forward
				c.until = min(c.until, f.until)
			case f.mayAffect(history.AffectsData) && !affectsWord(f.affects, history.AffectsSlots): // moved keys are not lost
				c.until = min(c.until, f.from)
			}
		}
	}
	c.away = o.excusedBy(latchOutage, v.outages(o).windows)
	judged := 0
	for _, key := range slices.Sorted(maps.Keys(all)) {
		l := all[key]
		for _, i := range l.uses {
			if v.h.Spans[i].Return < c.until {
				judged++
				c.use(l, i)
			}
		}
	}
	r := c.found.result(Latch, func(f finding) Violation { return c.word(f, latchWords()[f.rule]) })
	awaits, waited := v.awaits(all)
	r.Counts = map[string]int64{"latch_operations": int64(judged), "awaits": int64(awaits), "awaits_waited": int64(waited)}
	switch {
	case r.Outcome == Violated:
	case all == nil:
		r.Outcome, r.Summary = NotApplicable, noLatch
	case judged == 0:
		r.Outcome, r.Summary = Undecided, "no reply about a latch can be judged"
	default:
		r.Summary = fmt.Sprintf("%s about latches, none of them wrong", format.Count(judged, "reply"))
	}
	return r
}

// latchCheck judges the replies about latches.
type latchCheck struct {
	*view
	o     Options
	found *findings
	until time.Duration // operations that returned later are not judged
	away  []segment
	dis   disturbances
}

func (c *latchCheck) add(rule int, a *arming, i int32, from time.Duration) {
	x := int32(-1)
	if a != nil {
		x = a.span
	}
	c.found.add(finding{rule: rule, x: x, y: i, start: from, end: c.h.Spans[i].Return})
}

// use judges one reply.
func (c *latchCheck) use(l *latchKey, i int32) {
	s := &c.h.Spans[i]
	unknown := l.unknown <= s.Return && c.o.applies(unknownArm)
	switch {
	case s.Absent:
		c.absent(l, i)
		c.waitedDeleted(l, i)
	case s.Op == history.OpArm && s.Outcome == history.OK:
		for _, a := range refs(l.armings) {
			switch {
			case a.back < s.Call && a.opens > s.Return && !l.mayBeDeleted(a, s.Return):
				c.add(armedCounting, a, i, s.Call)
				return
			case a.back < s.Call && s.Token != 0 && c.h.Spans[a.span].Token == s.Token:
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
func (c *latchCheck) absent(l *latchKey, i int32) {
	s := &c.h.Spans[i]
	for _, a := range refs(l.armings) {
		if a.back < s.Call && (s.Token == 0 || c.h.Spans[a.span].Token == s.Token) && !l.mayBeDeleted(a, s.Return) {
			c.add(latchGone, a, i, s.Call)
			return
		}
	}
}

// refused judges an arm that was refused because the latch was still counting.
func (c *latchCheck) refused(l *latchKey, i int32) {
	s := &c.h.Spans[i]
	var last *arming
	for _, a := range refs(l.armings) {
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
func (c *latchCheck) answered(l *latchKey, i int32, unknown bool) {
	s := &c.h.Spans[i]
	meant := c.generationsOf(l, i)
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
func (c *latchCheck) addWait(rule int, a *arming, i int32, from time.Duration) {
	wait := segment{from, c.h.Spans[i].Return}
	p := longestOutside(wait, c.away, c.o.excusedBy(latchPaused, c.clientPauses()[c.client(i)]))
	if from < wait.until && p.until-p.from > c.o.slack() {
		c.found.add(finding{rule: rule, x: a.span, y: i, start: p.from, end: p.until})
	}
}

// foundBy are the generations of meant that an await can have found within the slack without a fault: it waits for the
// generation that it finds, and not for a later one.
func (c *latchCheck) foundBy(meant []*arming, i int32) []*arming {
	s := &c.h.Spans[i]
	found := segment{s.Call, later(s.Call, c.o.slack())}
	if s.Token != 0 || c.dis.any(found, func(*faultTime) bool { return true }) {
		return meant
	}
	return slices.DeleteFunc(slices.Clone(meant), func(a *arming) bool { return a.call > found.until })
}

// counted judges the count in the reply to a count-down, if it has one, or to an inspection: the armed number, less at
// least the participants that had certainly counted it down before, and at most the ones that can have by then.
func (c *latchCheck) counted(meant []*arming, i int32) {
	s := &c.h.Spans[i]
	if s.Count == 0 && s.Op != history.OpInspect || s.Outcome != history.OK {
		return
	}
	for _, a := range meant {
		armed := int(c.h.Spans[a.span].Asked)
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

// latchWords are the wordings of the rules of latch.
func latchWords() map[int]wording {
	return map[int]wording{
		passedEarly: {"", anOp, "an await returns when the latch is open",
			"client $client passed latch $lock by $return, before enough participants had counted it down"},
		keptWaiting: {"", anOp, "a waiter for an open latch passes",
			"client $client waited for latch $lock for $length until $end although it was open"},
		armedCounting: {"", anOp, "a latch that is still counting is not armed",
			"client $client armed latch $lock by $return, while it was still counting"},
		refusedOpen: {"", anOp, "a latch that is open or does not exist can be armed",
			"client $client could not arm latch $lock at $return although it was not counting"},
		latchGone: {"", anOp, "a latch that was armed exists",
			"at $return client $client found no latch $lock, or not its generation, although it had been armed"},
		neverArmed: {"", anOp, "a latch that was never armed neither opens nor counts",
			"client $client passed or counted down latch $lock by $return, and it had never been armed"},
		latchMiscounted: {"", anOp, "a latch replies with its count",
			"client $client got count $count for latch $lock at $return, which was armed with $size and cannot have had it"},
		latchRepeated: {"", anOp, "each arm starts a new generation",
			"client $client armed latch $lock at $return, and the reply has generation $token, as an earlier one had"},
		latchShownOld: {"", anOp, "an inspection shows the current generation",
			"client $client inspected latch $lock at $return and was shown generation $token, although a later one had been " +
				"armed"},
		latchKeptDeleted: {"", anOp, "a client that waits for a latch is refused when the latch is deleted",
			"client $client waited for latch $lock for $length until $end although it had been deleted"},
		latchUsedDeleted: {"", anOp, "operations on a deleted latch are refused",
			"client $client used latch $lock at $return although it had been deleted"},
	}
}
