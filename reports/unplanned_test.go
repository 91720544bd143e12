package reports

import (
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
)

// unplanned says why the violation of the headline cannot be the scenario's; empty: it may be. On a busy machine a lock
// that is wrong may fail before its scenario injects a fault, or when that fault has no effect.
func unplanned(r *Run) string {
	if len(r.Missed) > 0 {
		return r.Missed[0].Name + " was never injected"
	}
	v, until := r.Worst, r.Worst.End
	if p := overlap.Of(r, v); p != nil {
		until = p.B.From
		if text := grantedTooLate(p); text != "" {
			return text
		}
	}
	promoted := slices.IndexFunc(r.Notes, func(n history.Fault) bool {
		return n.Name == history.NodePromoted && r.Promotion(n.Target, n.Time) == nil
	})
	for i := range r.Faults {
		f := &r.Faults[i]
		switch {
		case promoted >= 0 && r.Notes[promoted].Time < min(f.Inject, until):
			return fmt.Sprintf("%s was promoted at %v, before %s was injected at %v", r.Notes[promoted].Target,
				r.Notes[promoted].Time, f.Name, f.Inject)
		case f.Inject > until:
			return fmt.Sprintf("the violation was complete at %v, before %s was injected at %v", until, f.Name, f.Inject)
		case len(f.Effects) == 0 || f.EffectTime() > until:
			return fmt.Sprintf("the violation was complete at %v, before %s had an effect", until, f.Name)
		}
	}
	return unanswered(r)
}

// grantedTooLate: the first holder was granted the lock when its validity had ended, and no fault was the reason.
func grantedTooLate(p *overlap.Pair) string {
	disturbed := slices.ContainsFunc(p.R.Faults, func(f evidence.Fault) bool {
		return (!evidence.IsClient(f.Target) || f.On(cluster.ClientName(p.A.Client))) && f.Effective(p.A.Asked, p.B.From)
	})
	if disturbed || p.ValidUntil == 0 || p.ValidUntil >= p.A.From {
		return ""
	}
	return fmt.Sprintf("without a fault, client %d was granted the lock at %v, after the end of its validity at %v",
		p.A.Client, p.A.From, p.ValidUntil)
}

// unanswered: the violation is about an operation that had no reply, of a client that no fault hit.
func unanswered(r *Run) string {
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		client := s.Process.Client(r.History.Clients)
		hit := slices.ContainsFunc(r.Faults, func(f evidence.Fault) bool {
			return !evidence.IsClient(f.Target) || f.On(cluster.ClientName(client))
		})
		if s.Outcome == history.Info && slices.Contains(r.Worst.Events, int(s.Invoked)) && !hit {
			return fmt.Sprintf("the %s of client %d at %v had no reply, although no fault hit that client", s.Op, client, s.Call)
		}
	}
	return ""
}
