package overlap

import (
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// What the sentences of several causes say about two holds.

// By names the node that granted a hold, or says why it is not known.
func (p *Pair) By(h *evidence.Hold) evidence.Sentence {
	switch by := p.KnownBy(h); {
	case by.Text != "", p.R.HistoryOnly(): // of a history alone no server is known, and the page says so once
		return by
	case len(p.R.Samples) == 0:
		return evidence.Say(" by an unknown node (nodes were not sampled)")
	}
	return evidence.Say(" by an unknown node (no sample shows the grant)")
}

// KnownBy names the node that granted a hold: " by n1"; or those of a quorum on which
// it was seen; empty if it is not known.
func (p *Pair) KnownBy(h *evidence.Hold) evidence.Sentence {
	w, all, granter := &p.R.Witness, p.ObservedA, p.GranterA
	if h == p.B {
		all, granter = p.ObservedB, p.GranterB
	}
	switch {
	case len(p.R.Manifest.Nodes) == 1:
		return evidence.Say(" by %s", p.R.Manifest.Nodes[0].Name)
	case p.R.ByMajority() && granter != "":
		return evidence.Say(" (%s was the leader)", granter)
	case !p.R.Quorum() && granter != "":
		return evidence.Say(" by %s", granter)
	case !p.R.Quorum() || len(all) == 0:
		return evidence.Sentence{}
	}
	var names []string
	var from []evidence.Point
	for _, node := range w.Nodes { // in their order, not in that of the samples
		for _, s := range evidence.AllOf(all, func(s *history.Sample) bool { return s.Node == node }) {
			names = append(names, node)
			from = append(from, evidence.SampleAt(s))
		}
	}
	seen := evidence.Proved(evidence.ProofNodes, fmt.Sprintf("%d of %s", len(names), format.Count(len(w.Nodes), "node")), from...)
	return evidence.Say(" (seen on %s: %s)", seen, strings.Join(names, ", "))
}

// Early is how long before the end of the first validity the second grant came.
func (p *Pair) Early() evidence.Sentence {
	if p.ValidUntil <= p.B.From {
		return evidence.Sentence{}
	}
	what := "validity"
	if p.ValidityName() != "its validity" {
		what = "requested lease"
	}
	return evidence.Say(", %s before the %s of %s ended", evidence.Elapsed(p.B.GrantedAt(), p.Validity()), what, p.A)
}

// EndingA says how the first hold ended, where that explains something.
func (p *Pair) EndingA() string {
	switch {
	case p.A.Lost():
		return ", when it learned of the loss,"
	case p.A.End == checker.Crashed:
		return ", when it crashed,"
	}
	return ""
}

// StaleClause describes the late write, if any, and what fencing did or would have done.
func (p *Pair) StaleClause() evidence.Sentence {
	t := p.Stale
	if t == nil {
		return evidence.Sentence{}
	}
	wrote := evidence.EventAt(t.Index, t.Time)
	s := evidence.Say(", and %s wrote at %s", p.A, wrote)
	switch {
	case t.Token == 0 && p.R.IssuesTokens():
		s.Add(" without a token")
		return s
	case t.Token == 0:
		s.Add(" without a token: this lock issues none")
		return s
	case t.MaxSeen <= t.Token:
		s.Add(" with %s, before a greater one had been seen", evidence.Token(t.Token, wrote))
		return s
	}
	s.Add(" with %s after %s had been seen: ", evidence.Token(t.Token, wrote), evidence.Token(t.MaxSeen, wrote))
	switch {
	case !t.Accepted:
		s.Add("the guarded resource rejected that write")
	case t.Fenced:
		s.Add("the guarded resource accepted that write although it checks tokens")
	default:
		s.Add("fencing would have rejected that write")
	}
	return s
}
