package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// This file judges how long operations take where nothing delays them: no fault is in force, the servers are available
// and the client runs. An acquire ends when its wait does, a try does not wait, and a release and a renewal take no
// longer than their requests.

// timeBounds finds the operations that break the bounds.
type timeBounds struct {
	undisturbed
	o     Options
	found *findings
}

// judgeTimeBounds finds the tries, releases and renewals that took too long, and the acquires that did not end when
// their wait did. Tries are granted or refused within the slack; where a master may be down, they also wait for the
// replies of the others, and are not judged. Releases and renewals have twice the slack, and so has the answer to an
// acquire whose wait is over: some locks wait in whole seconds. If a lock states that a fault does not affect its
// releases (see fault_scope.go), these have the slack alone: a release that waits for the end of the fault keeps the
// lock held.
func (v *view) judgeTimeBounds(o Options, found *findings) {
	b := timeBounds{v.undisturbed(o), o, found}
	for i, s := range refs(v.h.Spans) {
		if s.Outcome == history.OK || s.Outcome == history.Fail && (s.Busy || s.Op != history.OpTry) {
			b.duration(i, s, s.Return)
		}
	}
	for _, u := range v.h.Unknown {
		s := &v.h.Spans[u.Span]
		if s.Op == history.OpTry && u.Timeout || s.Op != history.OpTry && !u.Abandoned {
			b.duration(u.Span, s, u.Time)
		}
	}
	for _, m := range v.h.Mistimed {
		s := &v.h.Spans[m.Span]
		switch {
		case s.Part || v.wasClosed(m.Span), m.Timeout && !v.repliedLateOrCrashed(s, m.Time): // see [view.unreturned]
		case m.Time > m.Over:
			over := m.Over
			for _, p := range within(b.clientPauses()[b.client(m.Span)], segment{s.Call, s.Call}) {
				over = max(over, later(m.Over, p.until-s.Call)) // the client was asked after a stall
			}
			b.judge(finding{rule: notReturned, y: m.Span, start: over, end: m.Time, note: lateAnswer}, 2*o.slack())
		case m.Over-m.Time > unusedWait && b.waits(s) && b.in(segment{v.lastUse(m.Span), m.Time}, m.Span, delaying()):
			found.add(finding{rule: waitUnused, x: none, y: m.Span, start: m.Time, end: m.Over, note: m.Code})
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
	if until-s.Call <= b.o.slack() || s.Part {
		return
	}
	f := finding{rule: tryWaited, y: i, start: s.Call, end: until}
	switch s.Op {
	case history.OpTry:
		if b.o.MayBeDown > 0 {
			return
		}
		f.note = map[history.Type]string{history.OK: "the try was granted only", history.Fail: "the try was refused only",
			history.Info: "had not replied"}[s.Outcome] + " after " + format.Duration(until-s.Call)
		b.judge(f, b.o.slack())
	case history.OpRelease, history.OpRenew:
		bound := 2 * b.o.slack()
		outlasts := b.o.isolation() > 0 || b.o.Promises.Any(promise.SurvivesSlotMigration|promise.ReleasesWhenMemoryFull)
		if outlasts && s.Op == history.OpRelease && s.Outcome != history.Info && b.o.MayBeDown == 0 {
			bound = b.o.slack()
		}
		b.judge(f, bound)
	}
}

// judge adds a finding if more than bound of it is left without the times in which the servers were unavailable or the
// client did not run, and nothing disturbed its operation.
func (b *timeBounds) judge(f finding, bound time.Duration) {
	p := b.ran(f.y, segment{f.start, f.end})
	if p.until-p.from > bound && b.in(segment{b.h.Spans[f.y].Call, f.end}, f.y, delaying()) {
		f.x = none
		b.found.add(f)
	}
}

// waits reports whether the lock has a reason to let acquire s wait: its owner has no hold of the key, which a lock may
// refuse to grant twice, and there are as many permits as it asks for.
func (b *timeBounds) waits(s *history.Span) bool {
	if b.ownerOrder[s.Owner] != ordSequential {
		return false
	}
	if b.h.Limit(s.Key) != 0 {
		least, _ := b.sizesIn(s.Key, segment{s.Call, s.Return})
		return int64(s.Permits) <= least
	}
	last, is := b.lastHold(s.Owner, s.Key, s.Call)
	return !is || b.holds[last].freeBy <= s.Call
}
