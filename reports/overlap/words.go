package overlap

import (
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// By names the node that granted a hold, or says why it is not known.
func (p *Pair) By(h *evidence.Hold) evidence.Sentence {
	switch by := p.KnownBy(h); {
	case by.Text != "", p.R.HistoryOnly(): // of a history alone no server is known, and the page says so once
		return by
	case p.R.Unsampled() != "":
		return evidence.Say(" (%s)", p.R.Unsampled())
	case p.neverRecorded():
		return evidence.Say(" (no server of the run recorded it)")
	}
	return evidence.Say(" (no sample shows on which node)")
}

// Grants is the two grants in one sentence. If both nodes are unknown for the same reason, the reason is given once.
func (p *Pair) Grants() evidence.Sentence {
	a, b := p.By(p.A), p.By(p.B)
	if a.Text == b.Text && p.KnownBy(p.B).Text == "" && !p.neverRecorded() {
		b = evidence.Sentence{}
	}
	return evidence.Say("%s was granted %s at %s%s, %s was granted %s at %s%s%s", p.A, p.A.Object("the lock"),
		p.A.GrantedAt(), a, p.B, p.B.Object("it"), p.B.GrantedAt(), b, p.Early())
}

// KnownBy names the node that granted a hold: " by n1"; or the nodes of a quorum on which it was seen; or it says that
// no server did. Empty if that is not known.
func (p *Pair) KnownBy(h *evidence.Hold) evidence.Sentence {
	w, g := &p.R.Witness, p.Grant(h)
	switch {
	case g.Instead != nil:
		return evidence.Say(" (no server recorded it)")
	case p.R.ByMajority() && g.Node != "":
		return evidence.Say(" (%s was the leader)", g.Node)
	case g.Inferred:
		return evidence.Say(" (%s was %s)", g.Node, p.onlyOne())
	case !p.R.Quorum() && g.Node != "":
		return evidence.Say(" by %s", g.Node)
	case !p.R.Quorum() || len(g.Seen) == 0:
		return evidence.Sentence{}
	}
	var names []string
	var from []evidence.Point
	for _, node := range w.Nodes { // in their order, not the samples'
		for _, s := range evidence.AllOf(g.Seen, func(s *history.Sample) bool { return s.Node == node }) {
			names = append(names, node)
			from = append(from, evidence.SampleAt(s))
		}
	}
	count := fmt.Sprintf("%d of %s", len(names), format.Count(len(w.Nodes), "node"))
	seen := evidence.Proved(evidence.ProofNodes, count, from...)
	return evidence.Say(" (seen on %s: %s)", seen, strings.Join(names, ", "))
}

// Granter is the node that granted a hold as the subject of a sentence; where no sample shows the grant, it says so.
func (p *Pair) Granter(h *evidence.Hold) string {
	if g := p.Grant(h); g.Inferred {
		return g.Node + ", " + p.onlyOne() + ","
	}
	return p.Grant(h).Node
}

// onlyOne is a node that must have granted a hold, although no sample shows the grant.
func (p *Pair) onlyOne() string {
	if len(p.R.Manifest.Nodes) == 1 {
		return "the only node"
	}
	return "the only " + p.R.MasterWord() + " seen"
}

// GrantStep is a grant in a list of steps; rest ends the sentence.
func (p *Pair) GrantStep(h *evidence.Hold, rest string) string {
	lock := h.Object(evidence.Quote(p.Key))
	if h.Permits > 0 {
		lock += " of " + evidence.Quote(p.Key)
	}
	switch g := p.Grant(h); {
	case g.Instead != nil:
		return fmt.Sprintf("%s believes that it has %s%s; no server recorded it", h, lock, rest)
	case g.Inferred:
		return fmt.Sprintf("%s is granted %s%s; %s was %s", h, lock, rest, p.R.Witness.Name(g.Node), p.onlyOne())
	}
	return fmt.Sprintf("%s is granted %s%s%s", h, lock, p.KnownBy(h).Text, rest)
}

// Early is how long before the end of the first validity the second grant came.
func (p *Pair) Early() evidence.Sentence {
	if p.ValidUntil <= p.B.From {
		return evidence.Sentence{}
	}
	promise := "validity"
	if p.ValidityName() != "its validity" {
		promise = "requested lease"
	}
	return evidence.Say(", %s before the %s of %s ended", evidence.Elapsed(p.B.GrantedAt(), p.Validity()), promise, p.A)
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

// StaleClause describes the late write, if any, and the effect of fencing on it.
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
