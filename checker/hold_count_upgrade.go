package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeUpgrades finds owners that were granted the lock to write while they certainly read, at a lock that states that
// it refuses that: other readers may have held it as well. A fault that may have changed what servers keep excuses the
// lock, since it may not know the hold of the reader any more.
func (c *holdCounts) judgeUpgrades() {
	if !c.o.RefusesUpgrade {
		return
	}
	dis := c.disturbances(c.o)
	for i := range c.holds {
		h := &c.holds[i]
		s := &c.h.Spans[h.span]
		during := segment{s.Call, s.Return}
		if h.reader || !h.inner || c.ownerOrder[h.owner] != sequential || !c.readsThroughout(h.owner, h.key, during) ||
			dis.touch(segment{0, s.Return}, anyClient, history.AffectsData) {
			continue
		}
		c.found.add(finding{rule: upgraded, x: int32(i), y: h.span, start: s.Return, end: s.Return})
	}
}

func (v *view) upgradeViolation(f finding) Violation {
	s := &v.h.Spans[f.y]
	return v.spanViolation(f.y, "an owner that reads is not granted the lock to write", fmt.Sprintf(
		"client %d was granted %s to write at %s, although it read", v.client(f.y), lockName(v.h.Keys[s.Key]),
		format.Instant(s.Return)))
}
