package checker

import (
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/internal/clientfailures"
	"github.com/lockchaos/lockchaos/internal/format"
)

// exercised is the result of [Exercised], of which a stream judges only the contention.
func (s *Stream) exercised(spans int) Result {
	c, h := s.contention, s.b.History()
	r := Result{Property: Exercised, Outcome: Holds, Counts: map[string]int64{"operations": int64(spans),
		"grants": int64(c.Grants), "contended_grants": int64(c.Contended)}}
	need := threshold(s.o.MinContendedGrants, 2)
	switch why := noOperations(h); {
	case why != "" && len(h.Spans) == spans: // none was trimmed
		r.Outcome, r.Summary = Undecided, "the run tested too little: "+why
	case c.Contended < need || len(clientfailures.Ended(h)) > 0:
		r.Outcome = Undecided
		why := clientfailures.Describe(h)
		if c.Contended < need {
			why = append(why, fewContendedText(h, "grant", c.Contended, c.Grants, need))
		}
		r.Summary = "the run tested too little: " + strings.Join(why, "; ")
	default:
		r.Summary = fmt.Sprintf("%s, %d of them contended", format.Count(c.Grants, "grant"), c.Contended)
	}
	if len(h.Faults) > 0 {
		r.Summary += "; the effect of faults is not judged in a stream"
	}
	return r
}
