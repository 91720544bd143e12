package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// This file is about changes of the number of permits (ops add-permits and drop-permits): the reply has the number
// after the change.

// sizeChange is the known number of permits before a change.
type sizeChange struct {
	before int32 // span of the resize or change before it
	known  int64 // permits that there were since
}

// judgeSizeChanges finds the changes of the number of permits whose reply is not the previous number plus the requested
// change, the changes that left a negative number, and the ones that were refused although there were enough permits.
// The previous number is certain if the last change or resize succeeded and returned before this one was invoked, and
// no fault can have changed the data of the servers since then. After a change of unknown outcome, which may take
// effect at any time, it is never certain again.
func (v *view) judgeSizeChanges(o Options, found *findings) {
	last := make(map[int32]sizeChange) // by key; before is none: uncertain
	dis := v.allDisturbances(o)
	outOfRange := make(map[int32]bool)
	for _, i := range v.h.OutOfRange {
		outOfRange[i] = true
	}
	for i, s := range refsAt(v.h.Spans, v.rare) {
		refused := outOfRange[i]
		if !setsSize(s) || s.Outcome == history.Fail && !refused || s.Part {
			continue
		}
		c, known := last[s.Key]
		if known && c.before == none {
			continue
		}
		if s.Outcome == history.Info || known && !refused && s.Call <= v.h.Spans[c.before].Return {
			last[s.Key] = sizeChange{before: none}
			continue
		}
		if s.Op == history.OpResize {
			last[s.Key] = sizeChange{i, int64(s.Asked)}
			continue
		}
		want, rule := c.known+changeBy(s), wrongChange
		wrong := known && (want < 0 || want != int64(s.Count))
		if refused {
			rule, wrong = refusedChange, known && want >= 0 && s.Call > v.h.Spans[c.before].Return
		}
		if wrong && !dis.mayAffect(segment{v.h.Spans[c.before].Call, s.Return}, anyClient, history.AffectsData) {
			found.add(finding{rule: rule, x: c.before, y: i, start: s.Call, end: s.Return, note: c.known})
		}
		if !refused {
			last[s.Key] = sizeChange{i, int64(s.Count)}
		}
	}
}

// setsSize reports whether s sets or changes the number of permits of a semaphore.
func setsSize(s *history.Span) bool {
	return s.Op == history.OpResize || s.Op == history.OpAddPermits || s.Op == history.OpDropPermits
}

// changeBy is by how many permits s changes a semaphore.
func changeBy(s *history.Span) int64 {
	if s.Op == history.OpDropPermits {
		return -int64(s.Asked)
	}
	return int64(s.Asked)
}

// changeViolation describes a finding of this file.
func (v *view) changeViolation(f finding) Violation {
	s, known := &v.h.Spans[f.y], f.note.(int64)
	w := v.word(f, wording{rule: "a change of the number of permits counts once and never makes it negative", x: anOp})
	if f.rule == refusedChange {
		w.Rule = "permits that exist can be removed"
		w.Text = fmt.Sprintf("client %d removed %s of %s at %s, and was refused although it had %d", w.Clients[0],
			format.Count(-changeBy(s), "permit"), lockName(w.Key), format.Instant(s.Return), known)
		return w
	}
	verb, by := "added", changeBy(s)
	if by < 0 {
		verb, by = "removed", -by
	}
	now := fmt.Sprintf("has %d since", s.Count)
	if verb == "removed" && by > known {
		now = "cannot have a negative number"
	}
	w.Text = fmt.Sprintf("client %d %s %s at %s, which had %d, and %s", w.Clients[0], verb,
		format.Count(by, "permit")+" of "+lockName(w.Key), format.Instant(s.Return), known, now)
	return w
}
