package fencing

import (
	"fmt"
	"slices"
	"strings"

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

const foreignRule = "a lock does not change other programs' data"

// foreignDamage finds the data of another program, under the name of a lock that a client used meanwhile, that were
// changed or deleted. Another fault that may change data, and was in force at the same time, excuses the lock.
func foreignDamage(v *bounds.View, o given.Options, found *finding.Findings) {
	injected := make(map[int]int32) // by fault id
	for i, f := range refs.All(v.H.Faults) {
		from, known := injected[f.ID]
		lost, isLoss := strings.CutPrefix(f.Detail, history.ForeignDataLost+": ")
		switch {
		case f.Phase == history.Injected:
			injected[f.ID] = i
		case f.Phase != history.Healed || !known || !isLoss || dataChanged(v, o, &v.H.Faults[from], f):
		default:
			during := segment.Of(v.H.Faults[from].Time, f.Time)
			if s := usedIn(v, strings.Split(lost, ", "), during); s != refs.None {
				found.Add(finding.Finding{Rule: foreignLost, X: from, Y: i, Note: s, Start: during.From, End: during.Until})
			}
		}
	}
}

// usedIn is the first operation of a client on one of some keys that was in flight during a time; none if there is
// none.
func usedIn(v *bounds.View, keys []string, during segment.Segment) int32 {
	return int32(slices.IndexFunc(v.H.Spans, func(s history.Span) bool {
		return s.Call <= during.Until && s.Return >= during.From && s.Op != history.OpWork && s.Op != history.OpTouch &&
			slices.Contains(keys, v.H.Keys[s.Key])
	}))
}

// dataChanged reports whether another fault may have changed data while one was in force. It may still do so for the
// slack after its end, as when a former master synchronizes.
func dataChanged(v *bounds.View, o given.Options, from, to *history.Fault) bool {
	return slices.ContainsFunc(v.FaultTimes(), func(f excuse.FaultTime) bool {
		same := f.From == from.Time && f.Until == to.Time && f.Target == from.Target
		return !same && f.From <= to.Time && segment.Later(f.Until, o.Slack()) >= from.Time &&
			f.MayAffect(history.AffectsData)
	})
}

// foreignViolation describes a finding of this file.
func foreignViolation(v *bounds.View, f finding.Finding) property.Violation {
	from, to := &v.H.Faults[f.X], &v.H.Faults[f.Y]
	used := f.Note.(int32)
	w := finding.Involving(v, property.BrokenPromise, used)
	w.Rule = foreignRule
	w.Events = []int{int(from.Index), int(v.H.Spans[used].Invoked), int(to.Index)}
	w.Text = fmt.Sprintf("data of another program, written to %s at %s under the name of %s, were changed or deleted "+
		"by %s", from.Target, format.Instant(from.Time), finding.LockName(w.Key), format.Instant(to.Time))
	return w
}
