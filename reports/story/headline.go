package story

import (
	"slices"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/cause"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
)

// headline is the sentence about a violation: who held which locks at once, or which event did not happen, and the
// cause.
func headline(c *cause.Cause, p *overlap.Pair) evidence.Sentence {
	if p == nil {
		return c.Sentence
	}
	return evidence.Say("%s: %s", bothHeld(p), c.Sentence)
}

// bothHeld says which two clients held which lock at the same time.
func bothHeld(p *overlap.Pair) evidence.Sentence {
	a, b, key := holder(p, p.A), holder(p, p.B), evidence.Quote(p.Key)
	took := evidence.Say("at %s", p.B.GrantedAt()) // the history ends with the second grant
	if p.Overlap() > 0 {
		took = evidence.Say("for %s", overlapText(p))
	}
	switch {
	case p.A.Permits > 0:
		size := evidence.Proved(evidence.ProofSetting, format.Count(p.R.History.Limit(p.A.Key), "permit"))
		return evidence.Say("%[3]s together held more than the %[2]s of %[4]s %[1]s", took, size, crowd(p), key)
	case p.A.Client == p.B.Client:
		return evidence.Say("%s held %s twice at once %s", a, key, took)
	}
	return evidence.Say("%s and %s both held %s %s", a, b, key, took)
}

// maxCrowd is how many clients a headline lists.
const maxCrowd = 6

// crowd are the clients that held permits, the two of the pair among them.
func crowd(p *overlap.Pair) string {
	var names []string
	for _, c := range append(slices.Clone(p.V.Clients), p.A.Client, p.B.Client) {
		if name := evidence.ClientName(c); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > maxCrowd {
		names = []string{evidence.ClientName(p.A.Client), evidence.ClientName(p.B.Client), "others"}
	}
	return evidence.List(names)
}

// holder is the client of a hold, with its mode where the lock has modes.
func holder(p *overlap.Pair, h *evidence.Hold) string {
	switch {
	case p.A.Reader == p.B.Reader:
		return h.String()
	case h.Reader:
		return h.String() + " (reading)"
	}
	return h.String() + " (writing)"
}

// overlapText is the length of the overlap, which is the violation's. With permits, other holds than the two of the
// pair may begin or end it.
func overlapText(p *overlap.Pair) evidence.Sentence {
	from, until := p.B.GrantedAt(), p.A.EndedAt()
	if p.B.To < p.A.To {
		until = p.B.EndedAt()
	}
	during := p.R.During(p.V)
	for h := range evidence.Each(p.R.Holds) {
		switch {
		case during.Length() == 0 || p.R.KeyName(h.Key) != p.V.Key:
		case h.From == during.From:
			from = h.GrantedAt()
		case h.To == during.Until:
			until = h.EndedAt()
		}
	}
	if until.Event < 0 {
		until = evidence.Point{Event: p.R.LastEvent(), Time: p.R.History.End}
	}
	return evidence.Proved(evidence.ProofElapsed, format.Duration(p.Overlap()), from, until)
}
