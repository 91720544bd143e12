package checker

import (
	"sort"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeOwnerNamed finds the releases that were refused with code lost although another owner certainly had the lock, at
// a lock that states that it says so. Of a quorum, the masters that refuse a release and the masters that keep the
// other owner's promise are majorities, with a master in common.
//
// A repeated release gets the first reply again, perhaps from before the other grant: an owner with an earlier release
// that failed without a reason, or whose outcome is unknown, is not judged.
func (c *honestyCheck) judgeOwnerNamed() {
	if !c.o.states(promise.DistinguishesNotOwner) {
		return
	}
	repeats, forced := make(map[ownerKey]bool), make(map[int32]bool)
	for _, s := range refsAt(c.h.Spans, c.rare) {
		if s.Op == history.OpForceRelease {
			forced[s.Key] = true
		}
	}
	for i, s := range refs(c.h.Spans) {
		at := ownerKey{s.Owner, s.Key}
		switch {
		case s.Op != history.OpRelease:
		case s.Lost && !s.Part && !repeats[at] && !forced[s.Key] && c.h.Limit(s.Key) == 0:
			c.judgeOwnerUnnamed(i, s)
		case s.Outcome != history.OK && !s.Denied:
			repeats[at] = true
		}
	}
}

// judgeOwnerUnnamed judges one such release.
func (c *honestyCheck) judgeOwnerUnnamed(i int32, s *history.Span) {
	if _, held := c.lastHold(s.Owner, s.Key, s.Call); !held {
		return
	}
	holds := c.byKey[s.Key]
	began := sort.Search(len(holds), func(n int) bool { return c.holds[holds[n]].from >= s.Call })
	for n := began - 1; n >= max(0, began-maxLookBack); n-- {
		h := &c.holds[holds[n]]
		if h.owner == s.Owner || !c.certainlyPromised(h, segment{s.Call, s.Return}) {
			continue
		}
		since := segment{h.asked, s.Return}
		if c.o.applies(honestData) && c.all.mayAffect(since, anyClient, history.AffectsData, history.AffectsCommands,
			history.AffectsRights, history.AffectsClockBack, history.AffectsSlots, history.AffectsMemory) {
			continue // the servers' data, or how they reply, may have changed
		}
		c.found.add(finding{rule: ownerUnnamed, x: holds[n], y: i, start: s.Call, end: s.Return})
		return
	}
}

// certainlyPromised reports whether one promise to write covers all of during, and none of the promises of h was given
// up by then.
func (c *honestyCheck) certainlyPromised(h *hold, during segment) (sure bool) {
	if h.reader || later(h.from, c.o.ClockError) >= during.from || h.until-c.o.ClockError <= during.until {
		return false
	}
	for _, p := range c.promises().of(h) {
		lasts := p.until-c.o.ClockError > during.until
		switch {
		case p.at > during.until:
		case p.kind == promiseOver || p.reader:
			return false
		case later(p.at, c.o.ClockError) < during.from:
			sure = lasts
		default:
			sure = sure && lasts
		}
	}
	return sure
}
