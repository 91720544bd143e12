package checker

import (
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/exercised"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/property"
)

// countGrants counts the grants of a view, and notes the ones that were contended so far. Unless the run is over, a
// grant at the present instant is not noted yet: a request in flight may end at that instant too.
func (s *Stream) countGrants(v *bounds.View, over bool) {
	s.grants = s.trimmed.grants + len(v.Holds)
	exercised.Contended(v, func(x *ledger.Hold) {
		if over || x.From < v.H.End {
			s.contended[v.H.Spans[x.Span].Invoked] = true
		}
	})
}

// trimGrants counts the grants that are about to be trimmed.
func (s *Stream) trimGrants(k *retention) {
	for _, x := range refs.All(k.Holds) {
		span := &k.H.Spans[x.Span]
		if k.keepsSpan(x.Span, span) {
			continue
		}
		if s.trimmed.grants++; s.contended[span.Invoked] {
			s.trimmed.contended++
			delete(s.contended, span.Invoked)
		}
	}
}

// exercised is the result of [Exercised], of which a stream judges only the contention.
func (s *Stream) exercised(spans int) property.Result {
	r := exercised.Exercised(s.o.ForProperty(property.Exercised), s.b.History(), "grant",
		map[string]int64{"operations": int64(spans),
			"grants": int64(s.grants), "contended_grants": int64(s.trimmed.contended + len(s.contended))}, nil)
	if len(s.b.History().Faults) > 0 {
		r.Summary += "; the effect of faults is not judged in a stream"
	}
	return r
}

// Unsure returns the reason why the verdict of j, a judgement of the stream, may differ from the verdict of [Judge] on
// the whole history, with the same properties and without samples of servers; "": it is the same.
func (s *Stream) Unsure(j Judgement) string {
	switch {
	case j.Verdict == Inconclusive:
		return "a stream leaves it undecided (" + j.Sentence + ")"
	case j.Verdict == Safe && len(s.b.History().Faults) > 0:
		return "a stream does not judge whether faults took effect"
	case j.Verdict == Safe && (s.belated || len(s.unknownOwners) > 0):
		return "a stream does not know which requests met a hold that a later event changes"
	}
	return ""
}
