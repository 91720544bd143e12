package checker

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeContradictions finds the operations about which a lock contradicts itself, as its client has seen. A fault that
// may have changed the servers' data excuses the lock: the earlier answer may have been true.
func (c *honestyCheck) judgeContradictions() {
	for _, x := range refs(c.h.Contradicted) {
		if !c.touched(c.dis, segment{0, x.Time}) {
			c.found.add(finding{rule: contradicted, x: none, y: x.Span, start: x.Time, end: x.Time, note: format.Line(x.Text)})
		}
	}
}

// judgeForeign finds the operations about holds that were refused because the key holds something that is not a lock,
// although only clients of the run have used it: any data that they leave is a lock, of its own library perhaps. A
// fault that may have changed the servers' data, or how they execute commands, may have left something else.
func (c *honestyCheck) judgeForeign() {
	for i, s := range refsAt(c.h.Spans, c.h.Foreign) {
		if !c.o.applies(honestData) ||
			!c.dis.mayAffect(segment{0, s.Return}, anyClient, history.AffectsData, history.AffectsCommands) {
			c.found.add(finding{rule: notForeign, x: none, y: i, start: s.Call, end: s.Return})
		}
	}
}

// judgeNotSetUp finds the acquires and tries that state the size of a semaphore and failed because it does not exist:
// the lock could have set it up, unless a fault may have removed it in the meantime.
func (c *honestyCheck) judgeNotSetUp() {
	for i, s := range refsAt(c.h.Spans, c.h.NotSetUp) {
		if !c.touched(c.dis, segment{s.Call, s.Return}) {
			c.found.add(finding{rule: notSetUp, x: none, y: i, start: s.Call, end: s.Return})
		}
	}
}
