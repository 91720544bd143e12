package checker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// contention counts, event by event, the grants during which another owner requested the lock: what [Exercised] needs.
type contention struct {
	grants, contended int
	live              *LiveHolds
}

// add applies one event.
func (c *contention) add(e *history.Event) {
	k, owner, granted := c.live.add(e)
	if k == nil || e.F != history.Acquire && e.F != history.Try {
		return
	}
	switch e.Type {
	case history.Invoke:
		if k.asking == nil {
			k.asking = make(map[history.Process]string)
		}
		k.asking[e.Process] = owner
		for i := range k.holds {
			c.contend(&k.holds[i], owner)
		}
	case history.OK, history.Fail:
		if delete(k.asking, e.Process); granted {
			c.grant(k)
		}
	}
}

// contend notes that an owner requests what is held.
func (c *contention) contend(h *LiveHold, owner string) {
	if h.Owner != owner && !h.contended {
		h.contended = true
		c.contended++
	}
}

// grant counts the latest hold of a key, unless it is inside one of the same owner.
func (c *contention) grant(k *liveKey) {
	h, others := &k.holds[len(k.holds)-1], k.holds[:len(k.holds)-1]
	if h.Permits == 0 && slices.ContainsFunc(others, func(o LiveHold) bool { return o.Owner == h.Owner }) {
		h.contended = true
		return
	}
	c.grants++
	for _, owner := range k.asking { // order does not matter
		if c.contend(h, owner); h.contended {
			return
		}
	}
}

func (c *contention) result(o Options, spans int, h *history.History) Result {
	r := Result{Property: Exercised, Outcome: Holds, Counts: map[string]int64{"operations": int64(spans),
		"grants": int64(c.grants), "contended_grants": int64(c.contended)}}
	need := threshold(o.MinContendedGrants, 2)
	switch {
	case spans == 0:
		r.Outcome, r.Summary = Undecided, "the run tested too little: the history has no operations"
	case c.contended < need:
		r.Outcome = Undecided
		few := fewContendedText(h, "grant", c.contended, c.grants, need)
		r.Summary = "the run tested too little: " + strings.Join(append(Unanswered(h), few), "; ")
	default:
		r.Summary = fmt.Sprintf("%s, %d of them contended", format.Count(c.grants, "grant"), c.contended)
	}
	if len(h.Faults) > 0 {
		r.Summary += "; the effect of faults is not judged in a stream"
	}
	return r
}
