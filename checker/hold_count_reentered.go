package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeReentered finds the requests that were refused because their owner held the lock (code reentered), although it
// certainly did not: each of its holds had certainly been released before, and none was granted later. Owners with an
// unknown outcome, or a lost hold, are not judged: servers may keep a hold of theirs.
func (c *holdCounts) judgeReentered() {
	if len(c.h.Reentered) == 0 {
		return
	}
	if c.uncertain == nil {
		c.findUncertain()
	}
	for _, i := range c.h.Reentered {
		s := &c.h.Spans[i]
		if !c.uncertain[s.Owner] && c.h.Limit(s.Key) == 0 && !c.mayHaveHeld(i) {
			c.found.add(finding{rule: strangerRefused, x: none, y: i, start: s.Call, end: s.Return})
		}
	}
}

// mayHaveHeld says whether the owner of a request may have held its key at some instant of it, through another request.
func (c *holdCounts) mayHaveHeld(request int32) bool {
	s := &c.h.Spans[request]
	for _, i := range c.byKey[s.Key] {
		h := &c.holds[i]
		if h.owner == s.Owner && h.asked <= s.Return && later(h.freeBy, c.o.ClockError) >= s.Call {
			return true
		}
	}
	return false
}

func (v *view) reenteredViolation(f finding) Violation {
	s := &v.h.Spans[f.y]
	return v.spanViolation(f.y, "an owner that does not hold a lock is not refused as its holder", fmt.Sprintf(
		"client %d was refused %s at %s because its owner held it already, but it did not", v.client(f.y),
		lockName(v.h.Keys[s.Key]), format.Instant(s.Return)))
}
