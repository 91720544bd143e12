package reports

import (
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// unplanned says why the violation of the headline cannot be the one that the scenario plans; empty: it may be. On a
// busy machine a lock that is wrong may fail before its scenario injects a fault, or when that fault has no effect.
func unplanned(r *Run) string {
	if len(r.missed) > 0 {
		return r.missed[0].Name + " was never injected"
	}
	v, until := r.worst, r.worst.End
	if p := pairOf(r, v); p != nil {
		until = p.b.From
		if text := grantedTooLate(p); text != "" {
			return text
		}
	}
	promoted := slices.IndexFunc(r.notes, func(n history.Fault) bool {
		return n.Name == history.NodePromoted && r.promotion(n.Target, n.Time) == nil
	})
	for i := range r.faults {
		f := &r.faults[i]
		switch {
		case promoted >= 0 && r.notes[promoted].Time < min(f.inject, until):
			return fmt.Sprintf("%s was promoted at %v, before %s was injected at %v", r.notes[promoted].Target,
				r.notes[promoted].Time, f.name, f.inject)
		case f.inject > until:
			return fmt.Sprintf("the violation was complete at %v, before %s was injected at %v", until, f.name, f.inject)
		case len(f.effects) == 0 || f.effectTime() > until:
			return fmt.Sprintf("the violation was complete at %v, before %s had an effect", until, f.name)
		}
	}
	return unanswered(r)
}

// grantedTooLate: the first holder was granted the lock when its validity had ended, and no fault was the reason.
func grantedTooLate(p *pair) string {
	disturbed := slices.ContainsFunc(p.r.faults, func(f injection) bool {
		return (!isClient(f.target) || f.on(cluster.ClientName(p.a.Client))) && f.effective(p.a.Asked, p.b.From)
	})
	if disturbed || p.validUntil == 0 || p.validUntil >= p.a.From {
		return ""
	}
	return fmt.Sprintf("without a fault, client %d was granted the lock at %v, after the end of its validity at %v",
		p.a.Client, p.a.From, p.validUntil)
}

// unanswered: the violation is about an operation that had no reply, of a client that no fault hit.
func unanswered(r *Run) string {
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		client := s.Process.Client(r.History.Clients)
		hit := slices.ContainsFunc(r.faults, func(f injection) bool {
			return !isClient(f.target) || f.on(cluster.ClientName(client))
		})
		if s.Outcome == history.Info && slices.Contains(r.worst.Events, int(s.Invoked)) && !hit {
			return fmt.Sprintf("the %s of client %d at %v had no reply, although no fault hit that client", s.Op, client, s.Call)
		}
	}
	return ""
}
