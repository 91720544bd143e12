package checker

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeContradictions finds the operations about which a lock contradicts itself, as its client has seen. A fault that
// may have changed what servers keep excuses the lock: it may have answered from what was there before.
func (c *honestyCheck) judgeContradictions() {
	if len(c.h.Contradicted) == 0 {
		return
	}
	dis := c.disturbances(c.o)
	for _, x := range every(c.h.Contradicted) {
		during := segment{0, x.Time}
		if c.o.applies(honestData) && dis.touch(during, anyClient, history.AffectsData) {
			continue
		}
		c.found.add(finding{rule: contradicted, x: none, y: x.Span, note: format.Line(x.Text), start: x.Time, end: x.Time})
	}
}

// judgeForeign finds the acquires and tries that were refused because the key holds something that is not a lock,
// although only clients of the run have used it: what any of them leaves there is a lock, of its own library perhaps. A
// fault that may have changed what servers keep, or how they execute commands, may have left something else.
func (c *honestyCheck) judgeForeign() {
	if len(c.h.Foreign) == 0 {
		return
	}
	dis := c.disturbances(c.o)
	for i, s := range those(c.h.Spans, c.h.Foreign) {
		if c.o.applies(honestData) &&
			dis.touch(segment{0, s.Return}, anyClient, history.AffectsData, history.AffectsCommands) {
			continue
		}
		c.found.add(finding{rule: notForeign, x: none, y: i, start: s.Call, end: s.Return})
	}
}

// judgeNotSetUp finds the acquires and tries that state the size of a semaphore and failed because it does not exist:
// the lock could have set it up, unless a fault may have removed it in the meantime.
func (c *honestyCheck) judgeNotSetUp() {
	if len(c.h.NotSetUp) == 0 {
		return
	}
	dis := c.disturbances(c.o)
	for i, s := range those(c.h.Spans, c.h.NotSetUp) {
		if c.o.applies(honestData) && dis.touch(segment{s.Call, s.Return}, anyClient, history.AffectsData) {
			continue
		}
		c.found.add(finding{rule: notSetUp, x: none, y: i, start: s.Call, end: s.Return})
	}
}
