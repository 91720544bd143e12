package checker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

const foreignRule = "a lock does not change other programs' data"

// foreignDamage finds the data of another program, under the name of a lock that a client used meanwhile, that were
// changed or deleted. Another fault that may change data, and was in force at the same time, excuses the lock.
func (v *view) foreignDamage(o Options, found *findings) {
	injected := make(map[int]int32) // by fault id
	for i, f := range refs(v.h.Faults) {
		from, known := injected[f.ID]
		lost, isLoss := strings.CutPrefix(f.Detail, history.ForeignDataLost+": ")
		switch {
		case f.Phase == history.Injected:
			injected[f.ID] = i
		case f.Phase != history.Healed || !known || !isLoss || v.dataChanged(o, &v.h.Faults[from], f):
		default:
			during := segment{v.h.Faults[from].Time, f.Time}
			if s := v.usedIn(strings.Split(lost, ", "), during); s != none {
				found.add(finding{rule: foreignLost, x: from, y: i, note: s, start: during.from, end: during.until})
			}
		}
	}
}

// usedIn is the first operation of a client on one of some keys that was in flight during a time; none if there is
// none.
func (v *view) usedIn(keys []string, during segment) int32 {
	return int32(slices.IndexFunc(v.h.Spans, func(s history.Span) bool {
		return s.Call <= during.until && s.Return >= during.from && s.Op != history.OpWork && s.Op != history.OpTouch &&
			slices.Contains(keys, v.h.Keys[s.Key])
	}))
}

// dataChanged reports whether another fault may have changed data while one was in force. It may still do so for the
// slack after its end, as when a former master synchronizes.
func (v *view) dataChanged(o Options, from, to *history.Fault) bool {
	return slices.ContainsFunc(v.faultTimes(), func(f faultTime) bool {
		same := f.from == from.Time && f.until == to.Time && f.target == from.Target
		return !same && f.from <= to.Time && later(f.until, o.slack()) >= from.Time && f.mayAffect(history.AffectsData)
	})
}

// foreignViolation describes a finding of this file.
func (v *view) foreignViolation(f finding) Violation {
	from, to := &v.h.Faults[f.x], &v.h.Faults[f.y]
	used := f.note.(int32)
	w := v.involving(BrokenPromise, used)
	w.Rule = foreignRule
	w.Events = []int{int(from.Index), int(v.h.Spans[used].Invoked), int(to.Index)}
	w.Text = fmt.Sprintf("data of another program, written to %s at %s under the name of %s, were changed or deleted "+
		"by %s", from.Target, format.Instant(from.Time), lockName(w.Key), format.Instant(to.Time))
	return w
}
