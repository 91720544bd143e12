package reports

import (
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
)

// Requests that servers executed twice.

func executedTwiceMechanism() mechanism {
	return mechanism{name: "executed-twice", find: findExecutedTwice, advice: []adviceItem{{
		Text: "Send an id with each request and store it at the server, with the reply, so that a request that arrives " +
			"twice has no second effect; and delete a key only if its value is that of the client's own hold.",
		Cost: "a field or a key for each hold, and a script in place of a single command",
	}}}
}

// findExecutedTwice: requests were executed twice when one node granted the lock twice, or counted too many holds.
func findExecutedTwice(q *inquiry) *cause {
	from, until := q.v.Start, q.v.End
	if q.p != nil {
		from, until = q.p.a.Asked, q.p.b.From
	}
	all := q.r.effectiveFaults(from, until, "request-resent", "request-duplicated")
	if len(all) == 0 {
		return nil
	}
	f := all[0]
	if q.p != nil {
		node := q.node()
		if node == "" || q.p.outlived() {
			return nil
		}
		return &cause{faults: []*injection{f}, text: fmt.Sprintf("requests of clients were executed twice from %s (%s): %s",
			q.s.instant(f.took()), quote(f.name), q.twoGrants(node))}
	}
	asked, h := q.acquireOfEvidence()
	if h == nil {
		return nil
	}
	twice := q.countAbove(h)
	if twice == nil {
		return nil
	}
	return q.countedTwice(f, asked, h, twice, fmt.Sprintf("was executed twice (%s since %s)", quote(f.name),
		q.s.instant(f.took())))
}

// acquireOfEvidence is the first acquire that the violation names, and the hold that it began; nil if it names none.
func (q *inquiry) acquireOfEvidence() (*history.Span, *hold) {
	h := q.r.History
	for i := range h.Spans {
		s := &h.Spans[i]
		if (s.Op == history.OpAcquire || s.Op == history.OpTry) && s.Outcome == history.OK &&
			slices.Contains(q.v.Events, int(s.Ended)) {
			return s, q.r.lastHold(s.Owner, s.Key, s.Return)
		}
	}
	return nil, nil
}
