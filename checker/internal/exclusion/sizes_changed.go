package exclusion

import (
	"fmt"

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
func judgeSizeChanges(v *bounds.View, o given.Options, found *finding.Findings) {
	last := make(map[int32]sizeChange) // by key; before is none: uncertain
	dis := v.AllDisturbances(o)
	outOfRange := make(map[int32]bool)
	for _, i := range v.H.OutOfRange {
		outOfRange[i] = true
	}
	for i, s := range refs.At(v.H.Spans, v.Rare) {
		refused := outOfRange[i]
		if !bounds.SetsSize(s) || s.Outcome == history.Fail && !refused || s.Part {
			continue
		}
		c, known := last[s.Key]
		if known && c.before == refs.None {
			continue
		}
		if s.Outcome == history.Info || known && !refused && s.Call <= v.H.Spans[c.before].Return {
			last[s.Key] = sizeChange{before: refs.None}
			continue
		}
		if s.Op == history.OpResize {
			last[s.Key] = sizeChange{i, int64(s.Asked)}
			continue
		}
		want, rule := c.known+bounds.ChangeBy(s), wrongChange
		wrong := known && (want < 0 || want != int64(s.Count))
		if refused {
			rule, wrong = refusedChange, known && want >= 0 && s.Call > v.H.Spans[c.before].Return
		}
		if wrong && !dis.MayAffect(segment.Of(v.H.Spans[c.before].Call, s.Return), excuse.AnyClient, history.AffectsData) {
			found.Add(finding.Finding{Rule: rule, X: c.before, Y: i, Start: s.Call, End: s.Return, Note: c.known})
		}
		if !refused {
			last[s.Key] = sizeChange{i, int64(s.Count)}
		}
	}
}

// changeViolation describes a finding of this file.
func changeViolation(v *bounds.View, f finding.Finding) property.Violation {
	s, known := &v.H.Spans[f.Y], f.Note.(int64)
	w := finding.Word(v, f,
		finding.Rule{Sentence: "a change of the number of permits counts once and never makes it negative", X: finding.AnOp})
	if f.Rule == refusedChange {
		w.Rule = "permits that exist can be removed"
		w.Text = fmt.Sprintf("client %d removed %s of %s at %s, and was refused although it had %d", w.Clients[0],
			format.Count(-bounds.ChangeBy(s), "permit"), finding.LockName(w.Key), format.Instant(s.Return), known)
		return w
	}
	verb, by := "added", bounds.ChangeBy(s)
	if by < 0 {
		verb, by = "removed", -by
	}
	now := fmt.Sprintf("has %d since", s.Count)
	if verb == "removed" && by > known {
		now = "cannot have a negative number"
	}
	w.Text = fmt.Sprintf("client %d %s %s at %s, which had %d, and %s", w.Clients[0], verb,
		format.Count(by, "permit")+" of "+finding.LockName(w.Key), format.Instant(s.Return), known, now)
	return w
}
