package wakeup

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// This file judges how long operations take where nothing delays them: no fault is in force, the servers are available
// and the client runs. An acquire ends when its wait does, a try does not wait, and a release and a renewal take no
// longer than their requests.

// timeBounds finds the operations that break the bounds.
type timeBounds struct {
	bounds.Undisturbed
	o     given.Options
	found *finding.Findings
}

// judgeTimeBounds finds the tries, releases and renewals that took too long, and the acquires that did not end when
// their wait did. Tries are granted or refused within the slack; where a master may be down, they also wait for the
// replies of the others, and are not judged. Releases and renewals have twice the slack, and so has the answer to an
// acquire whose wait is over: some locks wait in whole seconds. If a lock states that a fault does not affect its
// releases (see excuse/scope.go), these have the slack alone: a release that waits for the end of the fault keeps the
// lock held.
func judgeTimeBounds(v *bounds.View, o given.Options, found *finding.Findings) {
	b := timeBounds{v.Undisturbed(o), o, found}
	for i, s := range refs.All(v.H.Spans) {
		if s.Outcome == history.OK || s.Outcome == history.Fail && (s.Busy || s.Op != history.OpTry) {
			b.duration(i, s, s.Return)
		}
	}
	for _, u := range v.H.Unknown {
		s := &v.H.Spans[u.Span]
		if s.Op == history.OpTry && u.Timeout || s.Op != history.OpTry && !u.Abandoned {
			b.duration(u.Span, s, u.Time)
		}
	}
	for _, m := range v.H.Mistimed {
		s := &v.H.Spans[m.Span]
		switch {
		case s.Part || v.WasClosed(m.Span), m.Timeout && !repliedLateOrCrashed(v, s, m.Time): // see [unreturned]
		case m.Time > m.Over:
			over := m.Over
			for _, p := range segment.Within(b.ClientPauses()[b.Client(m.Span)], segment.Of(s.Call, s.Call)) {
				over = max(over, segment.Later(m.Over, p.Until-s.Call)) // the client was asked after a stall
			}
			b.judge(finding.Finding{Rule: notReturned, Y: m.Span, Start: over, End: m.Time, Note: lateAnswer}, 2*o.Slack())
		case m.Over-m.Time > unusedWait && b.waits(s) && b.In(segment.Of(v.LastUse(m.Span), m.Time), m.Span,
			bounds.Delaying()):
			found.Add(finding.Finding{Rule: waitUnused, X: refs.None, Y: m.Span, Start: m.Time, End: m.Over, Note: m.Code})
		}
	}
}

// unusedWait is how long before the end of its wait an acquire may give up: a lock that polls need not wait for less
// than the time to the next poll. No busy machine ends a wait too early.
const unusedWait = time.Second

// lateAnswer is the note of an acquire that returned after its wait; it is none if the acquire never returned.
const lateAnswer = "late"

// duration judges an operation that ended at until.
func (b *timeBounds) duration(i int32, s *history.Span, until time.Duration) {
	if until-s.Call <= b.o.Slack() || s.Part {
		return
	}
	f := finding.Finding{Rule: tryWaited, Y: i, Start: s.Call, End: until}
	switch s.Op {
	case history.OpTry:
		if b.o.MayBeDown > 0 {
			return
		}
		f.Note = map[history.Type]string{history.OK: "the try was granted only", history.Fail: "the try was refused only",
			history.Info: "had not replied"}[s.Outcome] + " after " + format.Duration(until-s.Call)
		b.judge(f, b.o.Slack())
	case history.OpRelease, history.OpRenew:
		bound := 2 * b.o.Slack()
		outlasts := b.o.Isolation() > 0 || b.o.Promises.Any(promise.SurvivesSlotMigration|promise.ReleasesWhenMemoryFull)
		if outlasts && s.Op == history.OpRelease && s.Outcome != history.Info && b.o.MayBeDown == 0 {
			bound = b.o.Slack()
		}
		b.judge(f, bound)
	}
}

// judge adds a finding if more than bound of it is left without the times in which the servers were unavailable or the
// client did not run, and nothing disturbed its operation.
func (b *timeBounds) judge(f finding.Finding, bound time.Duration) {
	p := b.Ran(f.Y, segment.Of(f.Start, f.End))
	if p.Until-p.From > bound && b.In(segment.Of(b.H.Spans[f.Y].Call, f.End), f.Y, bounds.Delaying()) {
		f.X = refs.None
		b.found.Add(f)
	}
}

// waits reports whether the lock has a reason to let acquire s wait: its owner has no hold of the key, which a lock may
// refuse to grant twice, and there are as many permits as it asks for.
func (b *timeBounds) waits(s *history.Span) bool {
	if b.OwnerOrder[s.Owner] != ledger.OrdSequential {
		return false
	}
	if b.H.Limit(s.Key) != 0 {
		least, _ := b.SizesIn(s.Key, segment.Of(s.Call, s.Return))
		return int64(s.Permits) <= least
	}
	last, is := b.LastHold(s.Owner, s.Key, s.Call)
	return !is || b.Holds[last].FreeBy <= s.Call
}
