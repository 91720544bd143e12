package wakeup

import (
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/waiting"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeGivenUp finds acquires that failed before their wait timeout, and acquires that failed at the timeout although
// the lock was free and the servers were available for longer than the slack of the wait. The client starts the timeout
// after the request was recorded, so an acquire that used all of its time ends later than the request plus the timeout.
func judgeGivenUp(v *bounds.View, o given.Options, found *finding.Findings) {
	if !o.States(promise.RetriesTransientErrors) {
		return
	}
	dis, excuses, unanswered := v.Disturbances(o), v.ExcusesFor(o), make(map[int32]bool)
	for _, i := range v.H.Unanswered {
		unanswered[i] = true
	}
	for _, f := range v.H.Failures {
		s := &v.H.Spans[f.Span]
		if s.Op != history.OpAcquire || s.Part {
			continue
		}
		if waiting.WaitedOut(v, f, o) {
			if !unanswered[f.Span] {
				judgeFailedWait(v, f, o, excuses(excuse.ScopeOf(s)).Away, found)
			}
			continue
		}
		if o.States(promise.MultiKey) && s.Outcome == history.Info && o.Applies(wakeSeveral) {
			continue
		}
		if !o.Applies(wakeRights) || !dis.RefusedForGood(segment.Of(s.Call, f.Time), o) {
			found.Add(finding.Finding{Rule: gaveUp, X: refs.None, Y: f.Span, Start: s.Call, End: f.Time})
		}
	}
}

// judgeFailedWait judges an acquire that failed at its wait timeout. It leaves out acquires of unknown outcome, because
// only the last of several requests may have got no reply, and acquires without any reply, because the client may have
// relied on the requests of other waiters.
func judgeFailedWait(v *bounds.View, f history.Failure, o given.Options, away excuse.OutageWindows,
	found *finding.Findings) {
	s := &v.H.Spans[f.Span]
	if s.Outcome != history.Fail {
		return
	}
	for g := range v.FreeTimes().GapsOf(s.Key, segment.Of(s.Call, f.Time)) {
		p := segment.Of(max(g.From, s.Call), min(g.Until, f.Time))
		if p.Until-p.From <= o.Slack() {
			continue
		}
		p = segment.LongestOutside(p, v.ClientPauses()[v.Client(f.Span)], o.ExcusedBy(wakeOutage, away.Windows))
		if p.Until-p.From > o.Slack() {
			found.Add(finding.Finding{Rule: failedWait, X: refs.None, Y: f.Span, Start: p.From, End: p.Until})
			return
		}
	}
}

// judgeNoReason finds the acquires that timed out with the error "no reply", although no fault except short delays was
// in force. A client with a lock object of its own sends its own requests, so it got replies, and the error must say
// that the lock was held. While a slot migrates, an acquire of several locks is not judged: each of the locks may be
// granted too late for the others.
func judgeNoReason(v *bounds.View, o given.Options, found *finding.Findings) {
	if !o.States(promise.RetriesTransientErrors) || o.Shared && o.Applies(wakeShared) {
		return
	}
	dis := v.Disturbances(o)
	if o.States(promise.MultiKey) && o.Applies(wakeSeveral) {
		dis = v.AllDisturbances(o)
	}
	noDelay := func(f *excuse.FaultTime) bool { return f.Affects != history.AffectsDelays }
	for i, s := range refs.At(v.H.Spans, v.H.Unanswered) {
		during := segment.Of(s.Call, s.Return)
		if s.Return-s.Call > o.Slack() && !s.Part &&
			!(o.Applies(wakeOutage) && dis.Any(during, noDelay)) {
			found.Add(finding.Finding{Rule: noReason, X: refs.None, Y: i, Start: s.Call, End: s.Return})
		}
	}
}
