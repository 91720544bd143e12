package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

const ruleHolderOnly = "a release or renewal succeeds only for the holder"

func (c *honestyCheck) violation(f finding) Violation {
	switch v := c.view; f.rule {
	case notKept, keptShorter:
		return c.unkeptViolation(f)
	case notForeign:
		return c.foreignViolation(f)
	case notSetUp:
		return c.notSetUpViolation(f)
	case deniedGrant:
		return c.beforeViolation(f)
	case goneConfirmed:
		return c.goneViolation(f)
	case fewerPermits:
		return c.permitSumViolation(c.sums[f.y], "servers keep a hold for as long as the lock promises",
			"but clients were promised")
	case lossLate, lossUnfounded:
		return c.lossViolation(f)
	case failedInVain:
		return c.failureViolation(f)
	case failedDone:
		return c.doneViolation(f)
	case forcedNothing, forceMissed:
		return c.forceViolation(f)
	case unacknowledged:
		return c.unacknowledgedViolation(f)
	case renewalWaited:
		return c.lateRenewalViolation(f)
	case ownerUnnamed:
		return c.unnamedViolation(f)
	case restored:
		return c.backViolation(f)
	case contradicted:
		return c.contradictionViolation(f)
	case deniedHolder, revived, notRenewed, notForced, notExtended, grantOver:
		return v.answerViolation(f)
	case shownFree, shownOther, shownGone, shownWrong, shownExpired:
		return c.shownViolation(f)
	case selfRenewed:
		return c.renewedItselfViolation(f)
	case noticedAfter:
		return v.noticedViolation(f)
	case waitersBeyond, waitersMissing:
		return c.waitersViolation(f)
	default:
		return v.honestyViolation(f)
	}
}

func (v *view) honestyViolation(f finding) Violation {
	s := &v.h.Spans[f.y]
	who, key := s.Process.Client(v.h.Clients), lockName(v.h.Keys[s.Key])
	verb := "released"
	if s.Op == history.OpRenew {
		verb = "renewed"
	}
	if f.x < 0 {
		why := "it had never acquired it"
		if f.rule == releasedTwice {
			why = "it had already released it"
		}
		if s.Permits > 1 {
			verb += fmt.Sprintf(" %d permits of", s.Permits)
			why = "it had fewer"
		}
		return v.spanViolation(f.y, ruleHolderOnly,
			fmt.Sprintf("client %d %s %s at %s without an error, although %s", who, verb, key, format.Instant(s.Return), why))
	}
	x := &v.holds[f.x]
	w := v.involving(BrokenPromise, x.span, f.y)
	w.Rule, w.Events = ruleHolderOnly, []int{v.granted(x), int(s.Invoked), int(s.Ended)}
	w.Text = fmt.Sprintf("client %d %s %s at %s without an error, although client %d had held it since %s", who, verb, key,
		format.Instant(s.Return), w.Clients[0], format.Instant(x.from))
	return w
}

func (c *honestyCheck) lossViolation(f finding) Violation {
	h := &c.holds[f.x]
	w := c.involving(BrokenPromise, h.span)
	w.Events = []int{c.granted(h), int(h.endEvent)}
	if h.endEvent < 0 {
		w.Events = []int{int(c.h.Spans[h.span].Invoked), c.granted(h)}
	}
	who, key := w.Clients[0], lockName(w.Key)
	if f.rule == lossUnfounded {
		w.Class = ""
		w.Rule = "the lock reports no loss while its promise is in force and no other client has acquired it"
		w.Text = fmt.Sprintf("client %d received a loss report for %s at %s, although no other client had acquired it and "+
			"the promise %s", who, key, format.Instant(f.end), promiseEnd(h.lastPromise()))
		return w
	}
	w.Rule = "the lock reports a loss when its promise has ended"
	w.Text = fmt.Sprintf("client %d relied on %s until %s; the lock did not report that its promise had ended at %s", who,
		key, format.Instant(f.end), format.Instant(c.validUntil(h)))
	return w
}
