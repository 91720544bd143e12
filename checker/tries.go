package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeTries finds the tries that were granted, or refused because the lock was held, only after longer than the slack,
// or to which the client had not replied by then, though no fault was in force and the client ran: a try does not wait.
// Where a master may be down, a try also waits for the replies of the others. Of a lock that states that a fault does
// not affect its releases (see fault_scope.go), these are judged as well: one that waits for the end of the fault keeps
// the lock held.
func (v *view) judgeTries(o Options, found *findings) {
	if o.MayBeDown > 0 {
		return
	}
	slack := o.slack()
	outlasts := o.isolation() > 0 || o.Promises.Any(promise.SurvivesSlotMigration|promise.ReleasesWhenMemoryFull)
	excuses := v.excusesFor(o)
	judge := func(i int32, until time.Duration) {
		client, during := v.client(i), segment{v.h.Spans[i].Call, until}
		e := excuses(scopeOf(&v.h.Spans[i]))
		p := longestOutside(during, e.away.windows, v.clientPauses()[client])
		if p.until-p.from <= slack || e.dis.mayAffect(during, client, history.AffectsData, history.AffectsTraffic,
			history.AffectsDelays, history.AffectsCommands, history.AffectsClients) {
			return
		}
		did := map[history.Type]string{history.OK: "the try was granted only", history.Fail: "the try was refused only",
			history.Info: "had not replied"}[v.h.Spans[i].Outcome]
		did += " after " + format.Duration(until-during.from)
		found.add(finding{rule: tryWaited, x: none, y: i, start: during.from, end: until, note: did})
	}
	for i, s := range refs(v.h.Spans) {
		waits := s.Op == history.OpTry && (s.Outcome == history.OK || s.Busy) ||
			outlasts && s.Op == history.OpRelease && s.Outcome != history.Info
		if waits && s.Return-s.Call > slack {
			judge(i, s.Return)
		}
	}
	for _, u := range v.h.Unknown {
		if s := &v.h.Spans[u.Span]; u.Timeout && s.Op == history.OpTry && u.Time-s.Call > slack {
			judge(u.Span, u.Time)
		}
	}
}
