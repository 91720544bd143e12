package liveholds

import (
	"slices"

	"github.com/lockchaos/lockchaos/history"
)

// Contention counts the grants of a run in progress, and the contended ones of them: another owner requested the lock
// during the hold. It belongs to one goroutine.
type Contention struct {
	Grants, Contended int
	live              *Holds
}

// NewContention begins to count in a run of that many clients; 0 if it is not known.
func NewContention(clients int) *Contention { return &Contention{live: New(clients)} }

// Add applies the next event.
func (c *Contention) Add(e *history.Event) {
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

// contend notes that an owner requests a held lock.
func (c *Contention) contend(h *Hold, owner string) {
	if h.Owner != owner && !h.contended {
		h.contended = true
		c.Contended++
	}
}

// grant counts the latest hold of a key, unless it is inside one of the same owner.
func (c *Contention) grant(k *keyHolds) {
	h, others := &k.holds[len(k.holds)-1], k.holds[:len(k.holds)-1]
	if h.Permits == 0 && slices.ContainsFunc(others, func(o Hold) bool { return o.Owner == h.Owner }) {
		h.contended = true
		return
	}
	c.Grants++
	for _, owner := range k.asking { // order does not matter
		if c.contend(h, owner); h.contended {
			return
		}
	}
}
