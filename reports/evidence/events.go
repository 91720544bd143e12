package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Recorded events in words.

// spanOf is the operation that an event invokes or ends; nil if there is none.
func (r *Run) spanOf(index int) *history.Span {
	return FirstOf(r.History.Spans, func(s *history.Span) bool { return int(s.Invoked) == index || int(s.Ended) == index })
}

// ByOther reports whether the event with that index is of an operation of another client.
func (r *Run) ByOther(index, client int) bool {
	s := r.spanOf(index)
	return s != nil && r.ClientIn(s.Process) != client
}

// SameOperation are the events of the operation that an event belongs to, or the event itself where it is a notice, a
// write or a probe; none if it is something else, such as a fault.
func (r *Run) SameOperation(index int) []int {
	h := r.History
	if s := r.spanOf(index); s != nil {
		return []int{int(s.Invoked), int(s.Ended)}
	}
	about := func(event int32) bool { return int(event) == index }
	if slices.ContainsFunc(h.Notices, func(n history.Notice) bool { return about(n.Index) }) ||
		slices.ContainsFunc(h.Touches, func(t history.Touched) bool { return about(t.Index) }) ||
		slices.ContainsFunc(h.Probes, func(p history.Probe) bool { return about(p.Index) }) {
		return []int{index}
	}
	return nil
}

// Describe returns the time and the text of the event with that index; false if
// it is not an operation, a notice, a write or a fault.
func (r *Run) Describe(index int) (time.Duration, string, bool) {
	h, is := r.History, func(event int32) bool { return int(event) == index }
	if t := FirstOf(h.Touches, func(t *history.Touched) bool { return is(t.Index) }); t != nil {
		return t.Time, r.TouchText(t), true
	}
	if s := r.spanOf(index); s != nil {
		who, key := r.Who(s.Process), Quote(r.KeyName(s.Key))
		if is(s.Invoked) {
			return s.Call, fmt.Sprintf("%s invokes %s of %s", who, OpName(s.Op), key), true
		}
		t := r.Completed(s)
		if t == history.Infinity {
			t = s.Call
		}
		return t, fmt.Sprintf("%s: %s of %s %s", who, OpName(s.Op), key, outcomeText(s)), true
	}
	if n := FirstOf(h.Notices, func(n *history.Notice) bool { return is(n.Index) }); n != nil {
		return n.Time, r.noticeText(n), true
	}
	if p := FirstOf(h.Probes, func(p *history.Probe) bool { return is(p.Index) }); p != nil {
		return p.Time, fmt.Sprintf("after the run, an acquire of %s by the harness %s", Quote(r.KeyName(p.Key)),
			probeText(p.Outcome)), true
	}
	if l := FirstOf(h.Leftovers, func(l *history.Leftover) bool { return is(l.Index) }); l != nil {
		return l.Time, "after the run, " + leftText(l, Quote(r.KeyName(l.Key))), true
	}
	if f := FirstOf(h.Faults, func(f *history.Fault) bool { return is(f.Index) }); f != nil {
		return f.Time, fmt.Sprintf("fault %s on %s: %s", Quote(f.Name), TargetName(f.Target), phaseText(f.Phase)), true
	}
	return 0, "", false
}

// leftText describes the leftovers of a lock.
func leftText(l *history.Leftover, lock string) string {
	parts := format.Texts(l.Keys, func(key string) string { return "key " + Quote(key) })
	for _, x := range []struct {
		n    int
		noun string
	}{{l.Waiters, "queue entry"}, {l.Permits, "permit"}, {l.Renewals, "renewal"}} {
		if x.n > 0 {
			parts = append(parts, format.Count(x.n, x.noun))
		}
	}
	if len(parts) == 0 {
		return "nothing of " + lock + " is left"
	}
	if len(parts) > maxLeft {
		parts = append(parts[:maxLeft], fmt.Sprintf("%d more", len(parts)-maxLeft))
	}
	if len(parts) == 1 && len(l.Keys) == 1 && Quote(l.Keys[0]) == lock {
		return parts[0] + " left behind" // the key is named after the lock
	}
	return List(parts) + " of " + lock + " left behind"
}

// maxLeft is how many things that are left behind a step lists.
const maxLeft = 3

func probeText(outcome history.Type) string {
	switch outcome {
	case history.OK:
		return "is granted"
	case history.Fail:
		return "is refused"
	}
	return "has an unknown outcome"
}

func (r *Run) noticeText(n *history.Notice) string {
	who, key := r.Who(n.Process), Quote(r.KeyName(n.Key))
	switch n.F {
	case history.Lost:
		return who + " learns that it lost " + key
	case history.Renewed:
		return who + " renews " + key
	case history.Crash:
		return who + " " + r.CrashVerb(n.Time)
	}
	return fmt.Sprintf("%s: %s of %s", who, n.F, key)
}

func phaseText(p history.Phase) string {
	switch p {
	case history.Injected:
		return "injected"
	case history.TookEffect:
		return "took effect"
	case history.Healed:
		return "healed"
	}
	return string(p)
}

// TouchText describes a write to the guarded resource.
func (r *Run) TouchText(t *history.Touched) string {
	text := fmt.Sprintf("%s writes to the resource guarded by %s", r.Who(t.Process),
		Quote(r.KeyName(t.Key)))
	if t.Token > 0 {
		text += fmt.Sprintf(" with token %d", t.Token)
	}
	if t.Token > 0 && t.MaxSeen > t.Token {
		text += fmt.Sprintf(" (highest seen: %d)", t.MaxSeen)
	}
	if !t.Accepted {
		return text + "; rejected"
	}
	if t.Read != t.Found {
		text += fmt.Sprintf("; it had read %d and found %d: a lost update", t.Read, t.Found)
	}
	return text
}

func outcomeText(s *history.Span) string {
	switch s.Outcome {
	case history.OK:
		if s.Token > 0 {
			return fmt.Sprintf("succeeds with token %d", s.Token)
		}
		return "succeeds"
	case history.Fail:
		return "fails"
	}
	return "has an unknown outcome"
}

// OpName is the name of an operation in the history.
func OpName(op history.Op) string { return cmp.Or(op.String(), "operation") }

// CrashVerb says how a client ended at an instant.
func (r *Run) CrashVerb(at time.Duration) string {
	i := slices.IndexFunc(r.History.Exits, func(e history.Exit) bool { return e.Time == at })
	if i >= 0 && r.History.Exits[i].Code == history.CodeProtocol {
		return "violates the protocol and is killed"
	}
	return "crashes"
}
